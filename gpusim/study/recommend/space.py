"""All legal combinations of the knobs of a scenario."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusim.study.recommend.knob import Edit, Knob, edited

Choice = tuple[str, ...]  # the label of each knob, in their order

_MOST_COUNTED = 50_000  # combinations that are gone through to count the legal ones


@dataclass(slots=True)
class Capacity:
    """A memory of `size` bytes, and what it has to hold by (knob, label)."""

    size: int
    demands: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class Found:
    """What discovery finds: `forbidden` are labels that must not meet, `left_alone` is what has no knob, and why."""

    knobs: list[Knob] = field(default_factory=list)
    forbidden: list[dict[str, str]] = field(default_factory=list)
    capacities: dict[str, Capacity] = field(default_factory=dict)
    left_alone: dict[str, tuple[str, str]] = field(default_factory=dict)  # what -> group, why

    def leave(self, group: str, what: str, why: str) -> None:
        """Say why something stays as it is."""
        self.left_alone[what] = group, why


class Space:
    """`tree` is what the scenario was built from; `own` are its settings, which are there whether legal or not."""

    def __init__(self, tree: Mapping[str, Any], found: Found) -> None:
        self.tree = tree
        self.knobs: tuple[Knob, ...] = tuple(found.knobs)
        self.left_alone = {what: why for what, (_, why) in found.left_alone.items()}
        self.own: Choice = tuple(knob.options[knob.own].label for knob in self.knobs)
        self._index = {knob.name: number for number, knob in enumerate(self.knobs)}
        self._forbidden = [
            {self._index[name]: label for name, label in labels.items() if name in self._index}
            for labels in found.forbidden
            if all(name in self._index for name in labels)
        ]
        self._capacities = list(found.capacities.values())

    @property
    def product(self) -> int:
        """Combinations, whether legal or not, some of them the same."""
        made = 1
        for knob in self.knobs:
            made *= len(knob.options)
        return made

    def settle(self, choice: Sequence[str]) -> Choice | None:
        """The combination with knobs that do nothing at rest; None if machine or program do not allow it."""
        settled = tuple(
            label if self._active(knob, choice) else knob.options[knob.idle].label
            for knob, label in zip(self.knobs, choice, strict=True)
        )
        if settled == self.own or tuple(choice) == self.own:
            return self.own
        for labels in self._forbidden:
            if all(settled[number] == label for number, label in labels.items()):
                return None
        for capacity in self._capacities:
            used = sum(
                size
                for (name, label), size in capacity.demands.items()
                if name in self._index and settled[self._index[name]] == label
            )
            if used > capacity.size:
                return None
        return settled

    def _active(self, knob: Knob, choice: Sequence[str]) -> bool:
        known = [(self._index[name], labels) for name, labels in knob.active if name in self._index]
        return not known or any(choice[number] in labels for number, labels in known)

    def legal(self) -> list[Choice] | None:
        """All of them, the scenario's own first; None where they are too many to list."""
        if self.product > _MOST_COUNTED:
            return None
        made = dict.fromkeys([self.own])
        for labels in itertools.product(*(knob.labels for knob in self.knobs)):
            settled = self.settle(labels)
            if settled is not None:
                made[settled] = None
        return list(made)

    def neighbours(self, choice: Choice) -> Iterator[tuple[int, str, Choice]]:
        """(knob, label, combination) of all that differ from one in one knob, at rest what that lays to rest."""
        for number, knob in enumerate(self.knobs):
            if not self._active(knob, choice):
                continue
            for label in knob.labels:
                if label == choice[number]:
                    continue
                settled = self.settle((*choice[:number], label, *choice[number + 1 :]))
                if settled is not None and settled != choice:
                    yield number, label, settled

    def changed(self, choice: Choice) -> list[tuple[Knob, str]]:
        """The knobs that a combination sets otherwise than the scenario, and their labels."""
        return [
            (knob, label)
            for knob, label, own in zip(self.knobs, choice, self.own, strict=True)
            if label != own
        ]

    def distance(self, choice: Choice) -> tuple[int, int]:
        """How far a combination is from the scenario's own: knobs changed, and options between in all of them."""
        far = [
            abs(knob.labels.index(label) - knob.own) for knob, label in zip(self.knobs, choice, strict=True)
        ]
        return sum(map(bool, far)), sum(far)

    def edits(self, choice: Choice) -> list[Edit]:
        """What makes the scenario one with these settings."""
        return [
            edit
            for knob, label in zip(self.knobs, choice, strict=True)
            for edit in knob.options[knob.labels.index(label)].edits
        ]

    def changes(self, choice: Choice, tree: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The same as changes for `Scenario.with_`, also of a scenario of the same shape with another `tree`."""
        base = self.tree if tree is None else tree
        made = edited(base, self.edits(choice))
        return {key: value for key, value in made.items() if value != base.get(key)}
