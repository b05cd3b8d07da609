"""Compiled twins of the modules that a run spends its time in.

`python -m gpusim.native` translates `MODULES` to C with mypyc and compiles them, about two minutes once. The twins do
what the Python modules do, in the same order with the same numbers; they are only faster. They lie in `built/`, under a
digest of the sources that they came from, and are taken when that still fits: an edited source is never shadowed.
Without them, or where `GPUSIM_PURE_PYTHON` is set (to anything but 0), the Python modules run.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PURE = "GPUSIM_PURE_PYTHON"
#: the library that the twins share
GROUP = "gpusim_native"
_PACKAGE = Path(__file__).parent.parent
#: packages whose sources the twins may depend on
_SOURCES = (
    "engine",
    "hardware",
    "linux",
    "driver",
    "runtime",
    "workload",
    "kinds.py",
    "errors.py",
    "spec.py",
    "rundata.py",
)


def built() -> Path:
    """Where the twins of the sources as they are now lie, or would lie."""
    return Path(__file__).parent / "built" / f"{sys.implementation.cache_tag}-{_digest()}"


def _digest() -> str:
    from hashlib import blake2b

    digest = blake2b(digest_size=8)
    for name in _SOURCES:
        place = _PACKAGE / name
        for source in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(source.relative_to(_PACKAGE).as_posix().encode())
            digest.update(source.read_bytes())
    digest.update((Path(__file__).parent / "modules.py").read_bytes())
    return digest.hexdigest()


class TwinFinder(MetaPathFinder):
    """Finds the twins; what lies where is looked up when the first of them may be needed."""

    def __init__(self) -> None:
        self._places: dict[str, Path] | None = None

    @property
    def active(self) -> bool:
        """Are modules loaded from twins?"""
        return bool(self._places)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The twin of a module, if it has one."""
        if not fullname.startswith(("gpusim.", GROUP)):
            return None
        if self._places is None:
            if not fullname.startswith(_TWINNED):
                return None
            self._places = self._look()
        if fullname not in self._places:
            return None
        place = str(self._places[fullname])
        return spec_from_file_location(fullname, place, loader=ExtensionFileLoader(fullname, place))

    @staticmethod
    def _look() -> dict[str, Path]:
        folder = built()
        if not folder.is_dir():
            return {}
        suffix = EXTENSION_SUFFIXES[0]
        return {
            place.relative_to(folder).as_posix().removesuffix(suffix).replace("/", "."): place
            for place in folder.rglob(f"*{suffix}")
        }


_TWINNED = (
    "gpusim.engine.",
    "gpusim.hardware.",
    "gpusim.linux.",
    "gpusim.driver.",
    "gpusim.runtime.",
    "gpusim.workload.",
)
_finder = TwinFinder()


def install() -> None:
    """Let imports find the twins, if the user does not refuse them."""
    if os.environ.get(PURE, "0") in {"", "0"} and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def active() -> bool:
    """Do the compiled twins run?"""
    return _finder.active
