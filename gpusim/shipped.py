"""Where the data that ships with gpusim lies, in a checkout as in an installed wheel.

Profiles are inside the package in both. The validation scenarios are in `scenarios/validation/` of a
checkout; the wheel carries them in `gpusim/scenarios/validation/` (`force-include` in pyproject.toml).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def profiles_dir() -> Path:
    """The folder of the shipped profiles, with a folder for each kind in it: `gpus/`, `nodes/`, ..."""
    return _PACKAGE / "scenario" / "profiles"


def validation_dir() -> Path:
    """The folder of the shipped validation scenarios."""
    installed = _PACKAGE / "scenarios" / "validation"
    return installed if installed.is_dir() else _PACKAGE.parent / "scenarios" / "validation"
