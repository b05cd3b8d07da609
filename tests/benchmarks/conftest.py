"""Collects the figures of a session, and prints them as one table at its end."""

import pytest

FIGURES = pytest.StashKey[list[tuple[str, str, str, str]]]()


def pytest_configure(config):
    config.stash[FIGURES] = []


@pytest.fixture
def figure(request):
    """`figure(name, measured, most=...)` adds a line; `note` may be the spread of the measurement.

    A figure that is only measured here is not asserted: the line says so when it is above its target.
    """

    def add(name, measured, *, most=None, unit="", digits=2, note=""):
        shown = f"{measured:.{digits}f}{unit}"
        target = "" if most is None else f"{most:g}{unit}"
        above = most is not None and measured > most
        request.config.stash[FIGURES].append((name, target, shown + (" ABOVE" if above else ""), note))

    return add


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[FIGURES]
    if not rows:
        return
    terminalreporter.section("figures")
    table = [("figure", "at most", "measured", "spread"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    for name, target, measured, note in table:
        line = f"{name:{widths[0]}}  {target:>{widths[1]}}  {measured:{widths[2]}}  {note}"
        terminalreporter.write_line(line.rstrip())
