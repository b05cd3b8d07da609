"""Who writes GPU page tables: the CPU through a large BAR, or SDMA, behind what it copies."""

import pytest

from gpusim.driver.page_tables import map_as_it_lies
from gpusim.hardware.gpuvm import Region, Vm
from gpusim.kinds import Kind
from gpusim.linux.address_space import RAM, AddressSpace, VmaKind
from tests.programs import US, costs, gpu_spec, launch, memcpy, run, run_inside, scenario, synchronize, touch

SDMA = gpu_spec().sdma
SMALL_BAR = {"link.large_bar": False}


def first_touch(**keys):
    return run(
        [launch(writes="x")],
        buffers={"x": "64MiB malloc"},
        driver={"recent_skip": "off"},
        record="spans",
        **keys,
    )


def test_the_cpu_pays_for_each_entry():
    ran = first_touch()
    assert ran.attribution[Kind.PTE_WRITE] == pytest.approx(32 * 512 * costs().pte_write, rel=0.05)


def test_sdma_pays_for_each_job():
    ran = first_touch(overrides=SMALL_BAR)
    assert ran.faults["serviced"] == 32
    assert ran.attribution[Kind.PTE_WRITE] == pytest.approx(32 * SDMA.job, rel=0.05)


@pytest.mark.parametrize("stepwise", [False, True])
def test_both_modes_write_as_many(stepwise):
    ran = run_inside(
        scenario(
            [launch(writes="x")],
            buffers={"x": "16MiB malloc"},
            driver={"recent_skip": "off"},
            overrides=SMALL_BAR,
            stepwise=stepwise,
        )
    )
    assert ran.machine.hardware.node.devices[0].tables.jobs == 8


def test_page_tables_wait_behind_copies():
    """Two long copies keep both engines busy: each write waits for half a packet of 4 MiB, 42 us."""

    def waited(copies):
        steps = [touch("x")]
        steps += [
            memcpy(f"d{number}", f"h{number}", is_async=True, stream=f"copy{number}")
            for number in range(copies)
        ]
        steps += [launch(writes="x"), synchronize()]
        buffers = {"x": "16MiB malloc"}
        for number in range(2):
            buffers |= {f"h{number}": "1GiB hipHostMalloc", f"d{number}": "1GiB hipMalloc"}
        ran = run(steps, buffers=buffers, driver={"recent_skip": "off"}, overrides=SMALL_BAR)
        return int(ran.data.tables["faults"]["pte_write_ps"].sum()) / 8

    half = SDMA.packet / SDMA.rate / 2 * 1e12
    assert waited(1) == pytest.approx(SDMA.job, abs=US)
    assert waited(2) == pytest.approx(SDMA.job + half, rel=0.05)


def test_sdma_writes_on_the_account_of_its_engine():
    ran = first_touch(overrides=SMALL_BAR)
    plain = first_touch()
    used, before = (
        next(use for use in each.data.uses if use.name == "gpu[0].sdma").bytes for each in (ran, plain)
    )
    assert used - before == 32 * 512 * 8


# -- what is written: fragments


def space(pages):
    vma = AddressSpace().map("x", pages, VmaKind.ANONYMOUS, 512)
    vma.where[:] = bytes([RAM]) * pages
    return vma, Region(Vm("app", 3, retry=True), "x", vma.first, pages)


def test_scattered_host_pages_are_translated_one_by_one():
    vma, region = space(4 * 512)
    map_as_it_lies(region, vma, vma.first, vma.last, 0)
    assert region.fragment_counts(4 * 512) == {0: 4 * 512}


def test_huge_pages_are_translated_whole():
    vma, region = space(4 * 512)
    vma.make_huge(1)
    vma.make_huge(2)
    map_as_it_lies(region, vma, vma.first, vma.last, 0)
    assert list(region.fragments) == [0, 9, 9, 0]


def test_a_huge_page_of_which_a_part_is_mapped_is_not():
    vma, region = space(2 * 512)
    vma.make_huge(0)
    vma.make_huge(1)
    map_as_it_lies(region, vma, vma.first + 100, vma.last, 0)
    assert list(region.fragments) == [0, 9]
