"""Driver switches that the machine, or another switch, would ignore are mistakes; those of a preset are not."""

import pytest

from gpusim.errors import InputError
from tests.programs import launch, scenario


def program(node, **driver):
    return scenario([launch(writes="x")], buffers={"x": "4MiB malloc"}, node=node, driver=driver)


@pytest.mark.parametrize(
    ("node", "driver", "place"),
    [
        ("mi210-pcie4", {"apu": "ats_pri"}, "driver.apu"),
        ("mi210-pcie4", {"dedup": "filter", "ack": "on_success"}, "driver.ack"),
        ("mi210-pcie4", {"preset": "kfd-6.3", "ack": "on_success"}, "driver.ack"),
        ("mi300a", {"apu": "ats_pri", "throttle": "merge"}, "driver.throttle"),
        ("mi300a", {"apu": "ats_pri", "dedup": "filter"}, "driver.dedup"),
        ("mi300a", {"apu": "ats_pri", "recent_skip": "off"}, "driver.recent_skip"),
        ("mi300a", {"preset": "whitepaper", "service": "one_worker"}, "driver.service"),
    ],
)
def test_a_switch_that_does_nothing_is_a_mistake(node, driver, place):
    with pytest.raises(InputError) as caught:
        program(node, **driver)
    (problem,) = caught.value.problems
    assert problem.path == place
    assert "would ignore this key" in problem.message
    assert problem.legal


@pytest.mark.parametrize(
    ("node", "driver"),
    [
        ("mi210-pcie4", {"preset": "whitepaper"}),
        ("mi300a", {"preset": "whitepaper"}),
        ("mi300a", {"apu": "ats_pri", "throttle": "none"}),
        ("mi300a", {"preset": "whitepaper", "apu": "retry_hmm", "service": "one_worker"}),
        ("mi210-pcie4", {"dedup": "filter", "ack": "always"}),
        ("mi210-pcie4", {"dedup": "address_vmid", "ack": "on_success"}),
    ],
)
def test_what_a_preset_says_may_be_repeated_and_counts_where_it_can(node, driver):
    assert program(node, **driver).driver.preset


def test_every_mistake_among_switches_is_told_at_once():
    with pytest.raises(InputError) as caught:
        program("mi300a", apu="ats_pri", throttle="merge", unit="page")
    assert [problem.path for problem in caught.value.problems] == ["driver.throttle", "driver.unit"]
