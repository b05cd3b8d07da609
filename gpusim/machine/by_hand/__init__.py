"""Formulas that a person can check: a step put together from few numbers of the machine and of what was counted.

| file | what it puts together |
|---|---|
| `launches.py` | kernels: faults one after another, wavefronts at their own rate, HBM, atomics, translation |
| `files.py` | jobs of file requests: what each request of a thread pays |
| `calls.py` | what host threads do: touching pages, copies, prefetch, registration, free |
| `full.py` | any step: what a resource carried meanwhile over what it can carry |

Each gives candidates, the most telling first. The first that is near to the simulation is shown; else the nearest, as
long as it says something, with its distance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpusim.machine.by_hand.calls import of_call
from gpusim.machine.by_hand.case import LEAST, Candidate, Case, Faults
from gpusim.machine.by_hand.files import of_requests
from gpusim.machine.by_hand.full import of_the_fullest
from gpusim.machine.by_hand.launches import of_launch
from gpusim.rundata import Formula

if TYPE_CHECKING:
    from gpusim.machine.build import Machine
    from gpusim.rundata import RunData

#: a candidate this near is taken at once; what is further off than the second says nothing
CLOSE, FAR = 0.03, 0.25
#: names of steps that get a formula: those that took longest
_NAMES = 64
_NOT_WORK = ("parallel", "fork", "synchronize", "wait", "record", "barrier", "sleep")
_LOOPS = ("repeat",)
_INSIDE = 4  # names of steps in a loop that are put together


def formulas(machine: Machine, data: RunData) -> dict[int, Formula]:
    """By place in the run's steps, for the first and the longest execution of the steps that took most of the time.

    A loop has that of its steps, one after another.
    """
    length = [step.end_ps - step.start_ps for step in data.steps]
    groups: dict[str, list[int]] = {}
    loops: dict[str, int] = {}
    for number, step in enumerate(data.steps):
        if step.kind in _LOOPS:
            loops.setdefault(step.name, number)
        elif step.attribution and step.kind not in _NOT_WORK and length[number]:
            groups.setdefault(step.name, []).append(number)
    longest = sorted(groups.values(), key=lambda numbers: -sum(length[number] for number in numbers))
    found: dict[int, Formula] = {}
    faults = Faults(data)
    for numbers in longest[:_NAMES]:
        for number in {numbers[0], max(numbers, key=length.__getitem__)}:
            made = formula(Case(machine, data, data.steps[number], faults))
            if made is not None:
                found[number] = made
    for number in sorted(loops.values(), key=lambda number: -length[number])[:_NAMES]:
        made = _loop(data, number, found)
        if made is not None and abs(made.value_ps / length[number] - 1) <= FAR:
            found[number] = made
    for number, step in enumerate(data.steps):
        if step.kind == "parallel" and length[number]:
            made = _longest_branch(data, number, found)
            if made is not None and abs(made.value_ps / length[number] - 1) <= FAR:
                found[number] = made
    return found


def _longest_branch(data: RunData, number: int, found: dict[int, Formula]) -> Formula | None:
    """That of the longest step inside a `parallel`, which holds up the rest; None without."""
    whole = data.steps[number]
    inside = [
        at
        for at in found
        if data.steps[at].process == whole.process
        and whole.start_ps <= data.steps[at].start_ps
        and data.steps[at].end_ps <= whole.end_ps
        and data.steps[at].kind not in (*_LOOPS, "parallel")
    ]
    if not inside:
        return None
    longest = max(inside, key=lambda at: data.steps[at].end_ps - data.steps[at].start_ps)
    return Formula(
        f"its longest, {data.steps[longest].name} ({found[longest].text})", found[longest].value_ps
    )


def _loop(data: RunData, number: int, found: dict[int, Formula]) -> Formula | None:
    """What is inside a loop, by name: as often as it is done, with the formula of one; None without."""
    loop = data.steps[number]
    inside = [
        (at, step)
        for at, step in enumerate(data.steps)
        if loop.start_ps <= step.start_ps and step.end_ps <= loop.end_ps and step.kind not in _LOOPS
        if (step.process, step.thread) == (loop.process, loop.thread)
    ]
    if loop.end_ps <= loop.start_ps or not inside:
        return None
    total = Counter[str]()
    for _, step in inside:
        total[step.name] += step.end_ps - step.start_ps
    words, value = [], 0
    for name, spent in total.most_common(_INSIDE):
        if spent < LEAST * (loop.end_ps - loop.start_ps):
            break
        made = next((found[at] for at, step in inside if step.name == name and at in found), None)
        if made is None:
            return None
        count = sum(step.name == name for _, step in inside)
        words.append(f"{count} x {name} ({made.text})" if count > 1 else f"{name} ({made.text})")
        value += count * made.value_ps
    return Formula(" + ".join(words), value)


def formula(case: Case) -> Formula | None:
    """Of one step; None where no simple one comes near."""
    nearest: Candidate | None = None
    for candidate in _candidates(case):
        if case.off(candidate) <= CLOSE:
            return Formula(*candidate)
        if nearest is None or case.off(candidate) < case.off(nearest):
            nearest = candidate
    return Formula(*nearest) if nearest is not None and case.off(nearest) <= FAR else None


def _candidates(case: Case) -> Iterator[Candidate]:
    verb = case.step.kind
    if verb in ("launch", "memset"):
        yield from of_launch(case)
    elif verb in ("file_read", "file_write", "file_batch"):
        yield from of_requests(case)
    else:
        yield from of_call(case)
    yield from of_the_fullest(case)
