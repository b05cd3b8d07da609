"""Where a scenario came from, and what was changed on the way in."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """The text of a scenario and the edits made to it: enough to load it again with other values.

    Two origins are equal whatever they hold, so that scenarios compare by what they say.
    """

    text: str
    file: Path | None = None
    edits: tuple[tuple[str, Any], ...] = field(default=())  # (dotted path, value), in order
    given: int = 0  # how many of the edits came with the file (`--set`); later ones were made in Python

    @property
    def shown(self) -> str | None:
        """The file's name in messages."""
        return None if self.file is None else str(self.file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)
