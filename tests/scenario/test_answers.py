"""The sentences of `answer:`."""

import pytest

from gpusim.scenario import loader
from gpusim.scenario.answers import Blank, pieces


def test_text_and_blanks_in_turn():
    found = pieces("It takes {makespan_ns}, {a / b :%} of all.")
    assert found == ["It takes ", Blank("makespan_ns", False), ", ", Blank("a / b", True), " of all."]


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("{steps.scale[0].duration_ns", "no partner"),
        ("a } alone", "no partner"),
        ("{steps.skale[0].duration_ns}", "there is no step 'skale'"),
        ("{steps.scale.duration_ns}", "does 'scale' 3 times"),
        ("{}", "not a metric"),
        ("{makespan_ns :%}", "no percentage has a unit"),
        ("{makespan_ns / faults.raised / 0 -}", "ends too early"),
        ("{${rounds} * outcome}", "words cannot"),
    ],
)
def test_a_sentence_is_checked_with_the_file(spoil, sentence, why):
    (problem,) = spoil(("seed: 7", f'answer: ["It is {sentence}"]\nseed: 7'))
    assert problem.path == "answer[0]"
    assert why in problem.message


def test_it_may_speak_of_steps_that_are_left_out(right):
    text = right + 'answer: ["The move takes {steps.move.duration_ns}, of ${rounds} rounds."]\n'
    scenario = loader.loads(text)
    assert scenario.answer == ("The move takes {steps.move.duration_ns}, of 3 rounds.",)
    assert loader.loads(loader.resolved_yaml(scenario)).answer == scenario.answer


def test_it_is_a_list(spoil):
    (problem,) = spoil(("seed: 7", "answer: It takes long.\nseed: 7"))
    assert problem.path == "answer"
