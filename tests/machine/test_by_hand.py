"""Formulas: a step's time from few numbers of the machine, with its distance from the simulation."""

from __future__ import annotations

import re

import gpusim as gs
from gpusim.quantity import parse_duration, parse_rate, parse_size
from tests import file_programs, programs
from tests.programs import launch, memcpy, repeat, sleep

BUFFERS = {"x": "64MiB malloc", "d": "256MiB hipMalloc", "h": "64MiB hipHostMalloc"}


def by_hand(*steps: programs.Step) -> tuple[str | None, float | None]:
    """The formula, and how far it is from the simulation."""
    summary = gs.run(programs.scenario(list(steps), buffers=BUFFERS)).summary
    return summary["formula"], summary["formula_off"]


def found(pattern: str, words: str | None) -> tuple[str, ...]:
    match = re.search(pattern, words or "")
    assert match, words
    return match.groups()


def said(words: str | None) -> int:
    """What the formula says that it comes to, in picoseconds."""
    return parse_duration(found(r" = ([\d.]+ \S+);", words)[0].replace("µ", "u").replace(" ", ""))


def test_faults_one_after_another() -> None:
    words, off = by_hand(launch("scale", writes="x"))
    served, service = found(r"(\d+) faults x \(?([\d.]+us) of service", words)
    simulated, percent = found(r"simulated ([\d.]+ \S+) \(([+-][\d.]+) %\)", words)
    assert off is not None
    assert abs(off) < 0.1
    assert abs(int(served) * parse_duration(service) / said(words) - 1) < 0.05
    took = parse_duration(simulated.replace("µ", "u").replace(" ", ""))
    assert abs(said(words) / took - 1 - off) < 0.01
    assert abs(float(percent) - 100 * off) < 0.06


def test_a_copy_is_its_set_up_and_the_link() -> None:
    words, off = by_hand(memcpy("d", "h", size="64MiB"))
    setup, size, rate = found(r"(\S+) of set-up \+ (\S+) / (\S+) of the link", words)
    value = parse_duration(setup) + parse_size(size) / parse_rate(rate) * 1e12
    assert off is not None
    assert abs(off) < 0.01
    assert abs(value / said(words) - 1) < 0.01


def test_what_a_kernel_needs_on_mapped_memory_is_the_slowest_of_its_parts() -> None:
    words, off = by_hand(launch("scale", reads="d"))
    size, rate = found(r"(\S+) / (\S+) of HBM", words)
    assert off is not None
    assert abs(off) < 0.1
    assert abs(parse_size(size) / parse_rate(rate) * 1e12 / said(words) - 1) < 0.01


def test_requests_of_a_thread_one_after_another() -> None:
    ran = file_programs.run("load: {file_read: {file: f, buffer: x, io_size: 4KiB, size: 4MiB}}")
    assert "1024 requests x (" in ran.summary["formula"]
    assert abs(ran.summary["formula_off"]) < 0.05


def test_sleep_is_no_answer_and_has_no_formula() -> None:
    assert by_hand(sleep("1ms")) == (None, None)


def test_a_loop_that_is_asked_for_is_its_steps_one_after_another() -> None:
    loop = repeat(5, memcpy("d", "h", size="64MiB", name="up"), name="loop")
    expect = {
        "metric": "steps.loop.duration_ns",
        "value": "1ms",
        "tolerance": "20%",
        "kind": "input",
        "source": "-",
    }
    scenario = programs.scenario([loop], buffers=BUFFERS).with_(expect=[expect])
    summary = gs.run(scenario).summary
    assert summary["formula"].startswith("loop: 5 x up (")
    assert abs(summary["formula_off"]) < 0.02
