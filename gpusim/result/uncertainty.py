"""The block `uncertainty` of a summary in words, for the terminal and for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gpusim.result import text


def band_words(found: Mapping[str, Any]) -> str:
    """`steps.scale.duration_ns: 96.5 ms, 90 % of the draws within 82.0 ms to 250 ms (median 110 ms)`."""
    unit = found["unit"]
    value, low, median, high = (text.value(found[key], unit) for key in ("value", "p5", "p50", "p95"))
    if found["p50"] is None:
        return f"{found['metric']}: {value}; no draw completed"
    return f"{found['metric']}: {value}, 90 % of the draws within {low} to {high} (median {median})"


def draws_words(found: Mapping[str, Any]) -> str:
    """How the band came about, and what it leaves out."""
    died = {outcome: count for outcome, count in found["outcomes"].items() if outcome != "completed"}
    lost = "".join(f"; {count} ended with {outcome}" for outcome, count in died.items())
    reasons = Counter(found["held"].values())
    held = "; ".join(
        f"{count} {'is' if count == 1 else 'are'} held ({why})" for why, count in sorted(reasons.items())
    )
    words = f"{found['draws']} draws of {found['drawn']} fitted or assumed numbers from their ranges{lost}"
    explained = found["explained"]
    if explained is not None:
        words += f"; those below explain {text.percent(explained, 0)} of it"
    return f"{words}. {held}".rstrip(". ") + "."
