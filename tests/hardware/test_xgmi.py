"""xGMI: routes over bundles of links, hives, and what kernels and copy engines get of them."""

import pytest
from pydantic import ValidationError

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network
from gpusim.hardware.xgmi import Xgmi, XgmiSpec, pairs

FRONTIER = "0-1 x4, 2-3 x4, 4-5 x4, 6-7 x4, 0-6 x2, 2-4 x2, 0-2, 1-3, 1-5, 3-7, 4-6, 5-7"


def xgmi(joined, gpus=8, **numbers):
    given = {
        "rate": "50GB/s",
        "kernel_efficiency": 0.7,
        "sdma_efficiency": 0.8,
        "coupling": 0.0,
        "latency": "0.5us",
        **numbers,
    }
    network = Network(Environment())
    return Xgmi(XgmiSpec(joined=joined, **given), gpus, network), network


def test_four_links_carry_four_times_as_much():
    _, network = xgmi("0-1 x4, 2-3")
    assert network.link("gpu[0].xgmi[1]").capacity == 4 * network.link("gpu[2].xgmi[3]").capacity


def test_who_is_not_joined_is_reached_through_another():
    fabric, _ = xgmi("0-1, 1-2", gpus=3)
    assert [name for name, _ in fabric.path(0, 2, engine=True)] == ["gpu[0].xgmi[1]", "gpu[1].xgmi[2]"]
    assert fabric.hops(0, 2) == 2


def test_the_way_back_is_the_other_direction():
    fabric, _ = xgmi("0-1", gpus=2)
    assert [name for name, _ in fabric.path(1, 0, engine=True)] == ["gpu[1].xgmi[0]"]


def test_the_wider_of_two_equally_short_ways_is_taken():
    fabric, _ = xgmi("0-1, 0-2 x2, 1-3 x4, 2-3 x2", gpus=4)
    assert [name for name, _ in fabric.path(0, 3, engine=True)] == ["gpu[0].xgmi[2]", "gpu[2].xgmi[3]"]


def test_kernels_and_engines_pay_for_a_byte_by_their_efficiency():
    fabric, _ = xgmi("0-1", gpus=2)
    assert fabric.path(0, 1, engine=False)[0][1] == pytest.approx(1 / 0.7)
    assert fabric.path(0, 1, engine=True)[0][1] == pytest.approx(1 / 0.8)


def test_a_hive_is_what_hangs_together():
    fabric, _ = xgmi("0-1, 2-3", gpus=5)
    assert fabric.same_hive(0, 1)
    assert not fabric.same_hive(1, 2)
    assert fabric.same_hive(4, 4)
    assert not fabric.same_hive(3, 4)


def test_frontier_is_one_hive_of_at_most_two_hops():
    fabric, _ = xgmi(FRONTIER)
    hops = [fabric.hops(0, other) for other in range(8)]
    assert hops == [0, 1, 1, 2, 2, 2, 1, 2]
    assert max(fabric.hops(one, other) for one in range(8) for other in range(8)) == 2


def test_gpus_that_are_not_used_join_nobody():
    fabric, _ = xgmi(FRONTIER, gpus=2)
    assert fabric.link_names() == ["gpu[0].xgmi[1]", "gpu[1].xgmi[0]"]


def test_pairs_are_read_with_and_without_a_number_of_links():
    assert list(pairs("0-1 x4, 1-2")) == [(0, 1, 4), (1, 2, 1)]


@pytest.mark.parametrize("joined", ["0-0", "0-1 x0", "0-1 x9", "0:1", "0-1 x4 2-3", "a-b"])
def test_what_is_no_pair_is_refused(joined):
    with pytest.raises(ValidationError):
        xgmi(joined)
