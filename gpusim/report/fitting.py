"""Tables that choose their form by the width there is, so that no word is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_UNBOUNDED = 1000


class Fitting:
    """The first form that fits; the last one whatever its width. Forms are made when they are tried."""

    def __init__(self, *forms: Callable[[], RenderableType]) -> None:
        self._forms = forms

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.measure import Measurement

        wide = options.update(width=_UNBOUNDED, max_width=_UNBOUNDED)
        for form in self._forms[:-1]:
            made = form()
            if Measurement.get(console, wide, made).maximum <= options.max_width:
                yield made
                return
        yield self._forms[-1]()
