"""Rings of interrupt vectors, the clock of re-sends, and the CAM."""

from dataclasses import dataclass

import pytest

from gpusim.engine.environment import Environment
from gpusim.hardware.access import AccessKind, Client
from gpusim.hardware.cam import RetryCam
from gpusim.hardware.gpuvm import LOCAL, Region, Vm
from gpusim.hardware.interrupt import Vector, VectorRing
from gpusim.hardware.senders import Senders

PERIOD = 100


@dataclass
class Sent:
    """An access that waits: page, first send, first tick."""

    region: Region
    page: int
    sent_ps: int = 0
    tick_ps: int = 10
    write: bool = True
    behind: int = 0
    client: Client = Client.COMPUTE_UNIT
    access: AccessKind = AccessKind.WRITE

    def path(self):
        return [0], 0


@pytest.fixture
def region():
    return Region(Vm("app", 3, retry=True), "x", 0x100, 64)


def vector(region, page, **keys):
    return Vector(Sent(region, page, **keys), pasid=1)


def numbers(vectors):
    return [item.page for item in vectors]


def test_a_soft_ring_loses_the_newest(region):
    ring = VectorRing(3)
    lost = [numbers(ring.push(vector(region, page))) for page in range(5)]
    assert lost == [[], [], [], [3], [4]]
    assert numbers(ring.take(10)) == [0, 1, 2]
    assert ring.pushed == ring.popped + ring.lost


def test_ring_0_loses_the_oldest_in_one_go(region):
    ring = VectorRing(4, margin=3)
    lost = [numbers(ring.push(vector(region, page))) for page in range(6)]
    assert lost == [[], [], [], [], [0, 1, 2], []]
    assert numbers(ring.take(10)) == [3, 4, 5]


def test_what_a_pass_has_read_keeps_its_place_until_the_read_pointer_is_published(region):
    ring = VectorRing(2)
    ring.push(vector(region, 0))
    ring.push(vector(region, 1))
    ring.take(2, hold=True)
    assert numbers(ring.push(vector(region, 2))) == [2]
    ring.release()
    assert ring.push(vector(region, 2)) == []


def test_a_vector_says_what_was_accessed(region):
    made = vector(region, 5)
    assert (made.virtual, made.vmid, made.pasid, made.client, made.access) == (
        0x105,
        3,
        1,
        "compute_unit",
        "write",
    )


def test_senders_come_round_once_a_period(region):
    senders = Senders(PERIOD)
    for page, tick in ((0, 30), (1, 10), (2, 70)):
        senders.add(vector(region, page, tick_ps=tick))
    found, now = [], 0
    for _ in range(6):
        now, sender, _ = senders.next_after(now)
        found.append((now, sender.page))
    assert found == [(10, 1), (30, 0), (70, 2), (110, 1), (130, 0), (170, 2)]
    region.valid[1] = LOCAL
    assert senders.next_after(300)[1].page == 0
    assert len(senders) == 2


class TestCam:
    """Two slots; each vector is acknowledged by the test."""

    @pytest.fixture
    def env(self):
        return Environment()

    @pytest.fixture
    def sent(self):
        return []

    @pytest.fixture
    def cam(self, env, sent):
        return RetryCam(
            2, period_ps=PERIOD, timers=True, env=env, emit=lambda item: sent.append((env.now, item.page))
        )

    def test_other_sends_to_a_page_are_absorbed(self, cam, sent, region):
        cam.offer(vector(region, 0))
        cam.offer(vector(region, 0))
        assert sent == [(0, 0)]

    def test_a_page_without_a_slot_gets_one_at_its_next_send(self, env, cam, sent, region):
        made = [vector(region, page, tick_ps=10 + page) for page in range(4)]
        for item in made:
            cam.offer(item)
        region.valid[0] = LOCAL
        env.call_at(50, lambda: cam.acknowledge(made[0]))
        env.run_to(1000)
        assert sent == [(0, 0), (0, 1), (112, 2)]

    def test_a_dropped_fault_sends_again_by_itself(self, env, cam, sent, region):
        made = vector(region, 0, tick_ps=10)
        cam.offer(made)
        env.call_at(215, lambda: cam.acknowledge(made))
        env.run_to(1000)
        assert sent == [(0, 0), (310, 0)]

    def test_a_slot_that_is_never_acknowledged_hides_later_faults_of_its_page(self, env, cam, sent, region):
        cam.offer(vector(region, 0))
        env.run_to(1000)
        cam.offer(vector(region, 0))
        env.run_to(2000)
        assert sent == [(0, 0)]
