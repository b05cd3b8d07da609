"""The answer in one sentence."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpusim.result import Result, text
from gpusim.result.summary import build
from gpusim.rundata import Formula, ProcessData
from tests import synthetic


def answer(scenario, data):
    return build(scenario, data)["answer"]


def test_a_kernel_is_answered_with_time_bytes_and_rate(scenario):
    found = answer(scenario, synthetic.first_touch())
    assert found["text"].startswith("`scale` takes 1.2")
    assert "for 8 GiB" in found["text"]
    assert "the whole program takes 2.3" in found["text"]
    assert found["metric"] == "steps.scale.duration_ns"
    assert found["unit"] == "ns"


def test_the_metric_of_an_answer_gives_its_value(scenario):
    for make in (synthetic.first_touch, synthetic.blur, lambda: synthetic.blur(ranks=1), synthetic.resident):
        result = Result.from_run(scenario, make())
        assert result.metric(result.summary["answer"]["metric"]) == result.summary["answer"]["value"]


def test_a_slow_first_pass_is_told_apart(scenario):
    words = answer(scenario, synthetic.blur(ranks=1))["text"]
    assert "The first `blur` takes 128 ms" in words
    assert "the 99 after it 12.7 ms" in words


def test_ranks_are_counted(scenario):
    assert "on each of 4 ranks" in answer(scenario, synthetic.blur())["text"]
    assert "on each of 4 ranks" in answer(scenario, synthetic.blur(repeats=1))["text"]


def test_even_passes_are_averaged(scenario):
    data = synthetic.blur(ranks=1, repeats=10)
    data.steps = data.steps[1:]
    assert "on average of 9 passes" in answer(scenario, data)["text"]


def test_what_is_expected_decides_what_is_answered(scenario):
    row = {
        "metric": "steps.fill.duration_ns",
        "value": "1s",
        "tolerance": "20%",
        "source": "-",
        "kind": "input",
    }
    asked = scenario.with_(expect=[row])
    assert answer(asked, synthetic.first_touch())["metric"] == "steps.fill.duration_ns"


def test_a_program_that_died_is_answered_with_its_error(scenario):
    found = answer(scenario, synthetic.died())
    assert found["text"].startswith("app dies of vm_fault after 11.7 ms: page fault")
    assert (found["metric"], found["value"], found["unit"]) == ("outcome", "vm_fault", None)


def test_a_limit_and_a_livelock_are_said_in_words(scenario):
    data = synthetic.died()
    for outcome, words in (("limit", "limit of simulated time"), ("livelock", "makes no progress")):
        data.outcome = outcome
        data.processes = [ProcessData("app", outcome, None, data.makespan_ps)]
        assert words in answer(scenario, data)["text"]


def test_a_program_without_steps_still_has_an_answer(scenario):
    data = synthetic.resident()
    data.steps = []
    assert answer(scenario, data)["metric"] == "makespan_ns"


def named(data, name, *, path=None):
    """The data with every step called `name`, as when no step was given a name."""
    data.steps = [replace(step, name=name, path=f"steps.{path or name}", kind=name) for step in data.steps]
    return data


def test_steps_that_share_a_path_are_answered_together(scenario):
    data = named(synthetic.first_touch(), "memcpy")
    result = Result.from_run(scenario, data)
    times = [step.end_ps - step.start_ps for step in data.steps]
    answer = result.summary["answer"]
    assert answer["text"].startswith(f"Each of {len(times)} steps `memcpy` takes ")
    assert answer["metric"] == "steps.memcpy[*].duration_ns.mean"
    assert answer["value"] == result.metric(answer["metric"]) == pytest.approx(sum(times) / len(times) / 1000)


def test_no_step_takes_most_of_the_time_so_the_whole_leads(scenario):
    data = synthetic.resident()
    (step,) = data.steps[:1]
    third = data.makespan_ps // 3
    data.steps = [
        replace(step, name=name, path=f"steps.{name}", start_ps=start, end_ps=start + took, attribution=None)
        for name, start, took in (("a", 0, third), ("b", third, third // 2), ("c", 2 * third, third // 4))
    ]
    found = answer(scenario, data)
    assert (found["metric"], found["value"]) == ("makespan_ns", data.makespan_ps / 1000)
    assert found["text"].startswith(f"The whole program takes {text.time(data.makespan_ps / 1000)}; ")
    longest = f"`a` ({text.time(third / 1000)}), `b` ({text.time(third // 2 / 1000)}) and `c` ("
    assert longest in found["text"]


def test_a_scenario_says_itself_what_answers_its_question(scenario):
    asked = scenario.with_(
        answer=["The fill takes {steps.fill.duration_ns}, {steps.fill.duration_ns / makespan_ns :%} of all."]
    )
    data = synthetic.first_touch()
    found = answer(asked, data)
    share = text.percent(1.1e9 / (data.makespan_ps / 1000))
    assert found["text"] == f"The fill takes 1.10 s, {share} of all."
    assert (found["metric"], found["value"], found["unit"]) == ("steps.fill.duration_ns", 1.1e9, "ns")


def test_sentences_about_what_a_run_does_not_do_are_left_out(scenario):
    """Loading checks names; a run may leave out steps by `when`, here the synthetic one."""
    sentences = ["{steps.nothing.bytes} moved.", "{faults.serviced} faults.", "{links.none.bytes} crossed."]
    found = answer(SimpleNamespace(**vars_of(scenario), answer=sentences), synthetic.first_touch())
    assert found["text"] == "2,048 faults."
    assert (found["metric"], found["value"], found["unit"]) == ("faults.serviced", 2048, None)


def test_without_a_sentence_that_fits_the_answer_is_made_up(scenario):
    other = SimpleNamespace(**vars_of(scenario), answer=["{steps.nothing.bytes} moved.", "No number at all."])
    assert answer(other, synthetic.first_touch()) == answer(scenario, synthetic.first_touch())


def test_a_program_that_died_has_no_formula(scenario):
    data = synthetic.died()
    data.formulas = {0: Formula("1 + 1", 2)}
    made = build(scenario, data)
    assert (made["formula"], made["formula_off"]) == (None, None)


def vars_of(scenario):
    return {"name": scenario.name, "question": scenario.question, "expect": ()}
