"""What a notebook shows when a public object is the last line of a cell."""

import inspect
from html.parser import HTMLParser

import pytest

import gpusim as gs
from gpusim.errors import Problem
from gpusim.scenario import loader

formatters = pytest.importorskip("IPython.core.formatters")

SCENARIO = """
version: 1
name: shown
question: Is a < b & c?
system: {node: mi210-pcie4, gpus: 1}
parameters: {rounds: 3}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 4MiB, allocator: hipMallocManaged}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - name: loop
          repeat:
            times: "${rounds}"
            steps:
              - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
expect:
  - {metric: steps.fill.duration_ns, value: 1ms, tolerance: 1%, source: "<a guess>", kind: predicted}
"""
EMPTY = {"br", "rect", "hr"}


class Shown(HTMLParser):
    """Checks that tags are balanced, and keeps the words."""

    def __init__(self, text):
        super().__init__()
        self.opened, self.words, self.tags = [], "", []
        self.feed(text)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.opened.append(tag)

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.opened.pop() == tag

    def handle_data(self, data):
        self.words += data


def shown(value):
    """What the notebook shows of a value; fails where it has nothing but a repr."""
    text = formatters.HTMLFormatter()(value)
    assert text, f"{type(value).__name__} has no display"
    return Shown(text)


@pytest.fixture(scope="module")
def scenario():
    return loader.loads(SCENARIO)


@pytest.fixture(scope="module")
def result(scenario):
    return gs.run(scenario)


@pytest.fixture(scope="module")
def examples(scenario, result):
    """One object of every public class."""
    mistakes = [
        Problem("is no <size>", path="processes.app", read="'4G'", legal="4GiB", file="x.yaml", line=3)
    ]
    return {
        "GpusimError": gs.GpusimError("a < b"),
        "InputError": gs.InputError(mistakes),
        "InvariantError": gs.InvariantError("pieces do not tile"),
        "Kind": gs.Kind.RECENT_SKIP,
        "NotSupportedYet": gs.NotSupportedYet(mistakes),
        "Recommendation": gs.recommend(scenario, only=["xnack"]),
        "Result": result,
        "Scenario": scenario,
    }


def test_every_public_class_has_a_display(examples):
    classes = {name for name in gs.__all__ if inspect.isclass(getattr(gs, name))}
    assert set(examples) == classes
    for value in examples.values():
        assert shown(value).words.strip()


def test_what_the_public_functions_give_has_one_too(scenario, result):
    for value in (result.tables, result.check(), result.verify(), result.tables["faults"]):
        assert shown(value).words.strip()
    assert shown(gs.sweep(scenario, over={"parameters.rounds": [1, 2]})).words.strip()
    words = shown(gs.compare(result, scenario.with_(**{"parameters.rounds": 2}))).words
    for said in ("critical path", "parameters.rounds", "They part at"):
        assert said in words
    assert "Both do the same to the end." in shown(gs.compare(result, result)).words
    words = shown(gs.explain(result)).words
    for said in ("What would help", "twice as fast", "What limits it", "of its ceiling", "From start to end"):
        assert said in words


def test_nothing_loads_from_elsewhere_or_runs(examples, result):
    for value in (*examples.values(), result.tables, result.check(), result.verify()):
        for tag, attributes in shown(value).tags:
            assert tag not in ("script", "link", "img", "iframe")
            assert not {"src", "href", "onload", "onclick"} & set(attributes)


def test_a_scenario_shows_its_question_machine_memory_and_steps(scenario):
    words = shown(scenario).words
    for said in (
        "Is a < b & c?",
        "mi210-pcie4, 1 GPU",
        "rounds = 3",
        "HSA_XNACK=1",
        "4MiB",
        "scale",
        "times: 3",
    ):
        assert said in words


def test_tables_say_what_a_row_is_without_being_made(scenario):
    fresh = gs.run(scenario)
    assert "not made yet" in shown(fresh.tables).words
    rows = len(fresh.tables["faults"])
    assert f"faults{rows}a served retry fault" in shown(fresh.tables).words


def test_checks_are_lists_that_show_as_tables(result):
    (row,) = result.check()
    assert not row.ok
    words = shown(result.check()).words
    assert "OUT" in words
    assert "<a guess>" in words
    assert all(one.law in shown(result.verify()).words for one in result.verify())


def test_an_error_that_nobody_catches_shows_its_mistakes_and_no_traceback(capsys):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    try:
        shell.run_cell("import gpusim as gs\ngs.load('version: 1\\nname: x\\nsystem: {node: nowhere}\\n')")
    finally:
        shell.history_manager.enabled = False
    out = capsys.readouterr().out
    assert "InputError:" in out
    assert "nowhere" in out
    assert "Traceback" not in out
    assert "loader.py" not in out


def test_a_kind_says_what_it_means():
    assert "The driver drops faults of a range" in shown(gs.Kind.RECENT_SKIP).words
