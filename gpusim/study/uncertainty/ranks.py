"""How much an answer follows numbers that were drawn: by ranks, so that only the order counts, not the shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each value, from 0; equal values share the mean of theirs. Standardised: mean 0, and deviation 1 or 0."""
    import numpy as np

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts
    ranked: NDArray[np.float64] = (first + (counts - 1) / 2)[inverse]
    ranked = ranked - ranked.mean()
    deviation = float(ranked.std())
    return ranked / deviation if deviation else ranked


def correlations(inputs: NDArray[np.float64], answer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's rank correlation of each column of `inputs` (draws by numbers) with the answer."""
    import numpy as np

    target = ranks(answer)
    found = [float((ranks(column) * target).mean()) for column in inputs.T]
    return np.array(found, dtype=np.float64)


def regression(inputs: NDArray[np.float64], answer: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Standardised coefficients of the ranks, all columns at once, and the share of the variance that they explain."""
    import numpy as np

    target = ranks(answer)
    if not inputs.shape[1] or not target.any():
        return np.zeros(inputs.shape[1]), 0.0
    columns = np.stack([ranks(column) for column in inputs.T], axis=1)
    coefficients, *_ = np.linalg.lstsq(columns, target, rcond=None)
    left = target - columns @ coefficients
    made: NDArray[np.float64] = coefficients.astype(np.float64)
    return made, 1.0 - float(left @ left) / float(target @ target)


def selected(inputs: NDArray[np.float64], answer: NDArray[np.float64], most: int) -> list[int]:
    """Columns that the answer follows, one after the other: each time the one that goes most with what those before
    it leave unexplained.
    """
    import numpy as np

    chosen: list[int] = []
    left = ranks(answer)
    columns = [ranks(column) for column in inputs.T]
    for _ in range(min(most, len(columns))):
        strength = [
            -1.0 if index in chosen else abs(float(column @ left)) for index, column in enumerate(columns)
        ]
        best = int(np.argmax(strength))
        if strength[best] <= 0.0:
            break
        chosen.append(best)
        taken = np.stack([columns[index] for index in chosen], axis=1)
        coefficients, *_ = np.linalg.lstsq(taken, ranks(answer), rcond=None)
        left = ranks(answer) - taken @ coefficients
    return chosen
