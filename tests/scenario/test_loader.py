"""A right file becomes a frozen scenario; a wrong one tells every mistake, its place, cause and remedy."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gpusim.errors import InputError, Problem
from gpusim.quantity import GIB, KIB
from gpusim.scenario import loader
from gpusim.scenario.words import Allocator
from gpusim.workload.steps.control import Repeat
from gpusim.workload.steps.launch import Launch

Spoil = Callable[..., list[Problem]]

STARTER = Path(loader.__file__).with_name("starter.yaml")


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, "\n".join(map(str, problems))
    return problems[0]


def right_or_refused(attempt: Callable[[], object]) -> bool:
    """A scenario, or a refusal that says something; any other exception goes through."""
    try:
        attempt()
    except InputError as error:
        return all(problem.message for problem in error.problems) and bool(error.problems)
    return True


def test_a_right_scenario_is_frozen_data(right: str) -> None:
    scenario = loader.loads(right)
    process = scenario.processes[0]
    assert (scenario.name, scenario.seed, process.label) == ("small", 7, "app")
    assert process.buffers["x"].size == 4 * GIB
    assert process.buffers["x"].allocator is Allocator.HIP_MALLOC_MANAGED
    assert scenario.kernels["scale"].step == 64 * KIB
    fill, move, rounds = process.threads["main"]
    assert (fill.name, fill.verb, fill.when) == ("fill", "host_touch", True)
    assert move.when is False
    assert isinstance(rounds.args, Repeat)
    assert rounds.args.times == 3
    assert isinstance(rounds.args.steps[0].args, Launch)
    with pytest.raises(ValidationError):
        scenario.seed = 8  # type: ignore[misc]


def test_a_file_and_its_text_are_the_same_scenario(right: str, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(right)
    scenario = loader.load(file)
    assert scenario == loader.load(str(file)) == loader.load(right)
    assert scenario.source == file


def test_a_scenario_travels_to_other_processes(right: str) -> None:
    scenario = pickle.loads(pickle.dumps(loader.loads(right)))
    assert scenario == loader.loads(right)
    assert scenario.with_(**{"parameters.prefetch": True}).processes[0].threads["main"][1].when is True


def test_the_starter_is_a_right_scenario() -> None:
    assert loader.load(STARTER) == loader.loads(loader.starter())


def test_every_mistake_is_told_in_the_order_of_the_file(spoil: Spoil) -> None:
    problems = spoil(
        ("version: 1", "version: 2"),
        ("seed: 7", "sead: 7"),
        ("size: 4GiB", "size: 4G"),
        ("host_touch", "host_tuch"),
        ("pattern: stream", "pattern: steam"),
    )
    lines = [problem.line for problem in problems]
    assert lines == sorted(lines)  # type: ignore[type-var]
    assert [problem.path for problem in problems] == [
        "version",
        "kernels.scale.pattern",
        "processes.app.buffers.x.size",
        "processes.app.threads.main.fill.host_tuch",
        "sead",
    ]


@pytest.mark.parametrize(
    ("old", "new", "where", "message", "read", "legal", "nearest"),
    [
        ("4GiB", "4G", (13, 17), "ambiguous: write GB (powers of 1000) or GiB", "'4G'", "64KiB", None),
        ("4GiB", "4096", (13, 17), "a size needs a unit", "4096", "64KiB", None),
        ("4GiB", "4s", (13, 17), "the unit 's' is unknown", "'4s'", "64KiB", None),
        ("4GiB", "0B", (13, 17), "must be above 0", "'0B'", None, None),
        ("4GiB", "-1GiB", (13, 17), "cannot be negative", "'-1GiB'", "64KiB", None),
        ("4GiB", ".nan", (13, 17), "needs a unit", "nan", "64KiB", None),
        ("4GiB", "1e30 GiB", (13, 17), "too large", "'1e30 GiB'", "64KiB", None),
        ("4GiB", "true", (13, 17), "needs a unit", "true", "64KiB", None),
        ("4GiB", "[4GiB]", (13, 11), "needs a unit", "a list of 1", "64KiB", None),
        (
            "hipMallocManaged",
            "hipMallocManged",
            (13, 34),
            "legal values",
            "hipMallocManged",
            "malloc",
            "hipMallocManaged",
        ),
        (
            "mi210-pcie4",
            "mi210-pci4",
            (4, 16),
            "no node profile",
            "'mi210-pci4'",
            "mi210-pcie4",
            "mi210-pcie4",
        ),
        ("kfd-6.12", "kfd-6.1", (5, 18), "legal values", "'kfd-6.1'", "whitepaper", "kfd-6.12"),
        ("pattern: stream", "pattern: strem", (8, 20), "legal values", "'strem'", "gather", "stream"),
        ("host_touch:", "host_tuch:", (17, 24), "unknown step 'host_tuch'", None, "memcpy", "host_touch"),
        ("seed: 7", "seeds: 7", (24, 1), "unknown key 'seeds'", None, "sweep", "seed"),
        ("seed: 7", "seed: seven", (24, 7), "needs a whole number", "'seven'", None, None),
        ("seed: 7", "seed: -1", (24, 7), "must be at least 0", "-1", None, None),
        ("seed: 7", "seed: 1.5", (24, 7), "needs a whole number", "1.5", None, None),
        ("gpus: 2", 'gpus: "2"', (4, 35), "needs a whole number", "'2'", None, None),
        ("gpus: 2", "gpus: 9", (4, 35), "node mi210-pcie4 has 4 GPUs", "9", "1 to 4", None),
        ("wait: true", "wait: on", (23, 86), "needs true or false", "'on'", "true, false", None),
        (
            'HSA_XNACK: "1"',
            "HSA_XNACK: 1",
            (11, 22),
            "environment variables are text: quote it",
            "1",
            '"1"',
            None,
        ),
        ('HSA_XNACK: "1"', "HSA_XNACK: true", (11, 22), "quote it", "true", '"true"', None),
        ("name: small", "name: a small one", (2, 7), "not a name", "'a small one'", "a letter or _", None),
        ("reads: [x]", "reads: x", (23, 62), "needs a list", "'x'", "[first, second]", None),
        ("version: 1", "version: 2", (1, 10), "this gpusim reads version 1", "2", "1", None),
        ("version: 1", "version: true", (1, 10), "this gpusim reads version 1", "true", "1", None),
    ],
)
def test_a_mistake_has_its_place_cause_and_remedy(
    spoil: Spoil,
    old: str,
    new: str,
    where: tuple[int, int],
    message: str,
    read: str | None,
    legal: str | None,
    nearest: str | None,
) -> None:
    problem = only(spoil((old, new)))
    assert (problem.line, problem.column) == where
    assert message in problem.message
    assert read is None or read in str(problem.read)
    assert legal is None or legal in str(problem.legal)
    assert nearest is None or problem.nearest == nearest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("system: {node: mi210-pcie4, gpus: 2}\n", "", "the key 'system' is missing"),
        ("size: 4GiB, ", "", "the key 'size' is missing"),
        ("kernel: scale, ", "", "the key 'kernel' is missing"),
        ("buffer: x, access: write", "access: write", "the key 'buffer' is missing"),
    ],
)
def test_a_missing_key_says_what_it_is_for(spoil: Spoil, old: str, new: str, message: str) -> None:
    problem = next(problem for problem in spoil((old, new)) if message in problem.message)
    assert problem.line is not None
    assert problem.legal is not None


def test_a_step_has_exactly_one_verb(spoil: Spoil) -> None:
    two = only(spoil(("host_touch: {", "sleep: {duration: 1s}, host_touch: {")))
    assert two.message == "a step has exactly one verb"
    assert two.read == "sleep and host_touch"
    none = spoil(("host_touch: {buffer: x, access: write}", "when: true"))[0]
    assert none.message == "a step needs a verb"
    word = spoil(("{name: fill, host_touch: {buffer: x, access: write}}", "fill"))[0]
    assert word.message == "a step is a mapping with one verb"
    assert word.read == "'fill'"
    scalar = only(spoil(("host_touch: {buffer: x, access: write}", "host_touch: x")))
    assert scalar.message == "needs a mapping of arguments"


def test_an_argument_in_the_wrong_place_is_sent_to_the_right_one(spoil: Spoil) -> None:
    problem = spoil(("reads: [x], writes: [w], wait: true}", "reads: [x], writes: [w]}, gpu: gpu1"))[0]
    assert problem.message == "the key 'gpu' belongs inside 'launch'"


def test_a_bad_step_gives_one_message_and_not_one_for_each_verb(spoil: Spoil) -> None:
    problem = only(spoil(("buffer: x, access: write", "buffer: x, access: wriet")))
    assert problem.legal == "read, write, atomic"
    assert problem.nearest == "write"


def test_what_is_no_mapping_is_no_scenario() -> None:
    for text in ("- a\n- b\n", "just text\n", "5\n"):
        with pytest.raises(InputError, match="a scenario is a mapping of keys"):
            loader.loads(text)


def test_duplicate_keys_are_told_with_all_other_mistakes(spoil: Spoil) -> None:
    problems = spoil(("seed: 7", "seed: 7\nseed: 8"), ("4GiB", "4G"))
    assert [problem.message for problem in problems][1] == "the key 'seed' is here twice (first in line 24)"


def test_a_path_that_is_no_file_says_so(tmp_path: Path) -> None:
    for path, said in [
        (tmp_path, "directory"),
        (tmp_path / "x.yaml", "no such file"),
        ("x\0y", "cannot be read"),
    ]:
        with pytest.raises(InputError, match=said):
            loader.load(path)


@given(st.text(max_size=300))
def test_arbitrary_text_raises_nothing_but_input_errors(text: str) -> None:
    with pytest.raises(InputError):
        loader.loads(text)


@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_scenario_raises_nothing_but_input_errors(data: st.DataObject) -> None:
    text = STARTER.read_text()
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 30))
    put = data.draw(st.text("abx019.:-{}[]'\"$&*!%#\n \t~", max_size=8))
    assert right_or_refused(lambda: loader.loads(text[:start] + put + text[start + length :]))


_JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["x", "4GiB", "${a}", "$", ""])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "size", "x", "launch", "repeat", "steps"]), inner, max_size=3
        ),
    ),
    max_leaves=8,
)
_PLACES = [
    "version", "name", "question", "system", "system.node", "system.gpus", "driver", "driver.preset",
    "overrides", "parameters", "limits", "kernels", "kernels.scale", "kernels.scale.pattern", "processes",
    "processes.app",
    "processes.app.count", "processes.app.env", "processes.app.buffers", "processes.app.buffers.x",
    "processes.app.threads", "processes.app.threads.main", "processes.app.threads.main.fill",
    "processes.app.threads.main.scale.launch", "runtime", "faults", "policy", "engine", "seed", "sweep",
    "sweep.over", "expect",
]  # fmt: skip


@settings(max_examples=300)
@given(place=st.sampled_from(_PLACES), junk=_JUNK)
def test_any_value_at_any_place_is_legal_or_an_input_error(place: str, junk: object) -> None:
    assert right_or_refused(lambda: loader.load(STARTER, sets={place: junk}))


def test_loading_needs_neither_numpy_nor_simpy_nor_pandas() -> None:
    code = (
        "import sys; from gpusim.scenario import loader; loader.load(sys.argv[1])\n"
        "print([name for name in ('numpy', 'pandas', 'simpy', 'matplotlib', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, STARTER], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
