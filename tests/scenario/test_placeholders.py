"""`${name}` stands for a parameter, `${rank}` for the rank of a process; `when` may compare them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpusim.errors import InputError, Problem
from gpusim.quantity import GIB
from gpusim.scenario import loader
from gpusim.scenario.placeholders import condition

Spoil = Callable[..., list[Problem]]


def test_a_value_that_is_one_placeholder_takes_the_type_of_the_parameter(right: str) -> None:
    text = right.replace("rounds: 3", "rounds: 3, size: 4GiB").replace(
        "{size: 4GiB, a", '{size: "${size}", a'
    )
    assert loader.loads(text).processes[0].buffers["x"].size == 4 * GIB


def test_a_placeholder_inside_text_becomes_text(right: str) -> None:
    text = right.replace("rounds: 3", "rounds: 3, gib: 4").replace(
        "{size: 4GiB, a", '{size: "${ gib }GiB", a'
    )
    assert loader.loads(text).processes[0].buffers["x"].size == 4 * GIB


def test_environment_variables_stay_text(right: str) -> None:
    text = right.replace("rounds: 3", "rounds: 3, xnack: 1").replace(
        'HSA_XNACK: "1"', 'HSA_XNACK: "${xnack}"'
    )
    assert loader.loads(text).processes[0].env == {"HSA_XNACK": "1"}


def test_parameters_may_use_each_other(right: str) -> None:
    text = right.replace("rounds: 3", 'rounds: "${n}", n: 3')
    assert loader.loads(text).parameters == {"prefetch": False, "rounds": 3, "n": 3}


def test_a_dollar_can_be_written(right: str) -> None:
    text = right.replace("How long does it take?", "What does $${rounds} mean?")
    assert loader.loads(text).question == "What does ${rounds} mean?"


def test_ranks_are_processes_with_numbers(right: str) -> None:
    text = right.replace("- name: app", "- name: app\n    count: 2").replace("gpu: gpu1", 'gpu: "gpu${rank}"')
    first, second = loader.loads(text.replace("steps.scale[0]", "steps.scale[0][1]")).processes
    assert (first.label, first.rank, first.buffers["w"].gpu) == ("app[0]", 0, "gpu0")
    assert (second.label, second.rank, second.buffers["w"].gpu) == ("app[1]", 1, "gpu1")


def test_ranks_that_do_not_differ_share_their_parts(right: str) -> None:
    text = right.replace("- name: app", "- name: app\n    count: 1000")
    processes = loader.loads(text).processes
    assert [process.rank for process in processes] == list(range(1000))
    assert processes[0].threads is processes[999].threads


@pytest.mark.parametrize(
    ("old", "new", "message", "nearest"),
    [
        ('"${prefetch}"', '"${prefetsch}"', "there is no parameter 'prefetsch'", "prefetch"),
        ('"${prefetch}"', '"${prefetch"', "a placeholder is not closed", None),
        ('"${prefetch}"', '"${pre fetch}"', "not a placeholder", None),
        ("mi210-pcie4", '"mi${rank}"', "${rank} has a meaning inside a process only", None),
        ("rounds: 3", 'rounds: 3, a: "${b}", b: "${a}"', "parameters use each other in a circle", None),
        (
            "rounds: 3",
            "rounds: 3, idle: 5",
            "no value uses ${idle}: this parameter would change nothing",
            None,
        ),
        ("rounds: 3", "rounds: 3, rank: 5", "${rank} already means the rank of a process", None),
        ("rounds: 3", "rounds: [3]", "needs one value: a number, text, true or false", None),
        ("rounds: 3", "rounds: .nan", "needs a finite number", None),
        ('"${prefetch}"', '"${rounds}"', "`when` needs true or false", None),
    ],
)
def test_a_wrong_placeholder_is_told_once(
    spoil: Spoil, old: str, new: str, message: str, nearest: str | None
) -> None:
    found = [problem for problem in spoil((old, new)) if problem.message == message]
    assert found
    assert found[0].nearest == nearest
    assert found[0].line is not None


def test_a_count_without_bound_is_refused(spoil: Spoil) -> None:
    problem = spoil(("- name: app", "- name: app\n    count: 1000000000"))[0]
    assert (problem.path, problem.message) == ("processes.app.count", "must be at most 1024")


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        (True, True),
        ("true", True),
        ("not true", False),
        ("not false", True),
        ("fault == fault", True),
        ("fault == prefetch", False),
        ("fault != prefetch", True),
        ("3 == 3.0", True),
    ],
)
def test_when_may_negate_and_compare(said: object, meaning: bool) -> None:
    assert condition(said) is meaning


@pytest.mark.parametrize("said", [None, 1, "maybe", "not", "on", [True]])
def test_when_refuses_what_is_neither_true_nor_false(said: object) -> None:
    assert isinstance(condition(said), Problem)


def test_a_mistake_of_all_ranks_is_told_once(right: str) -> None:
    text = right.replace("- name: app", "- name: app\n    count: 8").replace("gpu: gpu1", 'gpu: "cpu${rank}"')
    with pytest.raises(InputError) as refusal:
        loader.loads(
            text.replace("steps.scale[0]", "steps.scale[0][1]").replace("buffer: x, acc", "buffer: y, acc")
        )
    messages = [problem.message for problem in refusal.value.problems]
    assert messages.count("'y' is no buffer of the process") == 1
