"""The answer on a terminal."""

import io
import re

import pytest

from gpusim.report import terminal
from gpusim.report.console import rendered
from gpusim.result import Result
from tests import synthetic


class Terminal(io.StringIO):
    def __init__(self, encoding="utf-8", *, terminal=False):
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    encoding = property(lambda self: self._encoding)

    def isatty(self):
        return self._terminal


def shown(result, stream=None, checked=()):
    return rendered(terminal.answer(result, checked), stream or Terminal())


def test_it_shows_what_the_issue_asks_for(first_touch):
    text = shown(first_touch)
    for words in (
        "How fast does a kernel stream",
        "`scale` takes 1.2",
        "2 ms recent-restore skip",  # what bounds it
        "2,048 granules ×",  # a formula to check by hand
        "latency p50",
        "gpu[0].pcie.h2d",
        "not modelled",
        "It is inferred",
        "events",
    ):
        assert words in text, words


def test_the_printed_breakdown_sums_to_one_hundred(first_touch, blur):
    for result in (first_touch, blur):
        block = shown(result).split("went\n")[1].split("\nsum")[0]
        printed = [float(number) for number in re.findall(r"([\d.]+) %", block)]
        assert round(sum(printed), 6) == 100


def test_no_line_is_wider_than_its_window(first_touch, blur):
    for result in (first_touch, blur):
        assert max(map(len, shown(result).splitlines())) <= 100


def test_colours_are_for_terminals_only(first_touch, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in shown(first_touch)
    assert "\x1b[" in shown(first_touch, Terminal(terminal=True))


def test_an_old_terminal_gets_question_marks_not_an_error(first_touch):
    stream = Terminal("ascii")
    shown(first_touch, stream).encode("ascii")


def test_ranks_on_gpus_of_their_own_are_listed_once(blur):
    text = shown(blur)
    assert "app[2]" in text
    assert "gpu2 " not in text  # the same faults by GPU


def test_repeats_are_one_line(blur):
    text = shown(blur)
    assert "blur[1:] ×396" in text
    assert text.count("blur") < 10


def test_a_dead_program_says_so(scenario):
    text = shown(Result.from_run(scenario, synthetic.died()))
    assert "vm_fault" in text
    assert "XNACK off" in text


def test_an_error_that_the_program_went_on_from_is_listed(scenario):
    data = synthetic.resident()
    process = data.processes[0]
    data.processes = [
        type(process)(process.name, "completed", "hipErrorInvalidValue at step copy", process.end_ps)
    ]
    assert "hipErrorInvalidValue" in shown(Result.from_run(scenario, data))


@pytest.mark.parametrize("record", ["summary", "off"])
def test_a_run_without_faults_or_recording_still_prints(scenario, record):
    text = shown(Result.from_run(scenario, synthetic.resident(record=record)))
    assert "latency" not in text
    assert ("Where" in text) is (record == "summary")


def test_expected_values_are_compared(first_touch):
    row = {
        "metric": "steps.scale.duration_ns",
        "value": "1s",
        "tolerance": "5%",
        "source": "row X",
        "kind": "fitted",
    }
    asked = first_touch.scenario.with_(expect=[row])
    text = shown(first_touch, checked=first_touch.check(asked.expect))
    assert "OUT" in text
    assert "row X" in text


def test_a_run_of_a_scenario_with_a_sweep_says_that_there_are_variants(scenario):
    swept = scenario.with_(
        sweep={"over": {"seed": [1, 2, 3], "processes.app.buffers.x.size": ["1GiB", "2GiB"]}}
    )
    assert "its sweep has 6 variants: gpusim sweep" in shown(Result.from_run(swept, synthetic.first_touch()))
    assert "variants" not in shown(Result.from_run(scenario, synthetic.first_touch()))
