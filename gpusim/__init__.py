"""gpusim: a discrete-event performance simulator of AMD GPU memory.

    import gpusim as gs

    result = gs.run("scenarios/first_touch.yaml")
    print(result.summary["answer"]["text"])
    base = gs.load("scenarios/prefetch_or_fault.yaml")
    gs.run(base.with_(**{"parameters.prefetch": True})).metric("makespan_ns")

Names are looked up when they are first used, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim import native

if TYPE_CHECKING:
    from gpusim import quantity
    from gpusim.errors import GpusimError, InputError, InvariantError, NotSupportedYet
    from gpusim.kinds import Kind
    from gpusim.public import compare, explain, load, open_result, recommend, run, sweep
    from gpusim.result import Result
    from gpusim.scenario.schema import Scenario
    from gpusim.study.recommend import Recommendation

    __version__: str

__all__ = [
    "GpusimError",
    "InputError",
    "InvariantError",
    "Kind",
    "NotSupportedYet",
    "Recommendation",
    "Result",
    "Scenario",
    "__version__",
    "compare",
    "explain",
    "load",
    "open_result",
    "quantity",
    "recommend",
    "run",
    "sweep",
]

_HOMES = {
    "GpusimError": "gpusim.errors",
    "InputError": "gpusim.errors",
    "InvariantError": "gpusim.errors",
    "Kind": "gpusim.kinds",
    "NotSupportedYet": "gpusim.errors",
    "Recommendation": "gpusim.study.recommend",
    "Result": "gpusim.result",
    "Scenario": "gpusim.scenario.schema",
    "compare": "gpusim.public",
    "explain": "gpusim.public",
    "load": "gpusim.public",
    "open_result": "gpusim.public",
    "recommend": "gpusim.public",
    "run": "gpusim.public",
    "sweep": "gpusim.public",
}


native.install()


def __getattr__(name: str) -> Any:
    """Look a public name up where it lives (PEP 562)."""
    from importlib import import_module

    if name == "__version__":
        return import_module("gpusim.version").version()
    if name == "quantity":
        return import_module("gpusim.quantity")
    if name not in _HOMES:
        raise AttributeError(f"module 'gpusim' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
