"""From rich renderables to one string, so that printing is one write."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

PLAIN_WIDTH = 100  # of files and pipes
WIDEST = 120  # longer lines are hard to read


def rendered(parts: Iterable[RenderableType], stream: TextIO) -> str:
    """The text of `parts` as it suits `stream`: colours and the window's width on a terminal, plain text
    elsewhere.

    Honours NO_COLOR. Characters that the stream's encoding lacks are replaced rather than refused.
    """
    from rich.console import Console

    terminal = stream.isatty()
    width = min(shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns, WIDEST) if terminal else PLAIN_WIDTH
    buffer = StringIO()
    console = Console(
        file=buffer,
        width=max(width, 60),
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for part in parts:
        console.print(part)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return "\n".join(lines).encode(encoding, "replace").decode(encoding) + "\n"
