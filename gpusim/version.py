"""The version of the installed package, looked up only when somebody asks."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """E.g. `0.1.0`; `0+unknown` when the package is imported from a folder without being installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("gpusim")
    except PackageNotFoundError:
        return "0+unknown"
