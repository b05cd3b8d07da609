"""Slices of a track must nest; those that overlap otherwise go to further tracks of the same name."""

from __future__ import annotations

from collections.abc import Sequence


def assign(times: Sequence[tuple[float, float]], most: int) -> list[int | None]:
    """The lane of each (start, end), from 0; None for those that would need more than `most` lanes.

    In each lane any two slices follow each other or one holds the other.
    """
    order = sorted(range(len(times)), key=lambda index: (times[index][0], -times[index][1]))
    lanes: list[list[float]] = []  # ends of the open slices of each lane, the innermost last
    found: list[int | None] = [None] * len(times)
    for index in order:
        start, end = times[index]
        for number, opened in enumerate(lanes):
            while opened and opened[-1] <= start:
                opened.pop()
            if not opened or end <= opened[-1]:
                opened.append(end)
                found[index] = number
                break
        else:
            if len(lanes) < most:
                found[index] = len(lanes)
                lanes.append([end])
    return found
