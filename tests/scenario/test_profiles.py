"""The shipped profiles: each number says where it comes from, and together they give what was measured.

Times below are in picoseconds, as in the specs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpusim import quantity
from gpusim.driver.driver_spec import DriverSpec
from gpusim.hardware.drive_spec import DriveSpec
from gpusim.hardware.fabric_spec import FabricSpec
from gpusim.hardware.gpu_spec import GpuSpec, LinkSpec
from gpusim.linux.host_spec import HostSpec, PageCosts
from gpusim.linux.stack_spec import StackSpec
from gpusim.quantity import MIB, NS, US, S
from gpusim.scenario import profiles
from gpusim.shipped import profiles_dir
from gpusim.spec import Spec

FILES = sorted(profiles_dir().glob("*/*.yaml"))
SPECS: dict[str, type[Spec]] = {
    "gpus": GpuSpec,
    "cpus": HostSpec,
    "drivers": DriverSpec,
    "drives": DriveSpec,
}
HEADER = {"profile_version", "name", "description"}
#: facts of a driver version, and names of other profiles, of drives and of what they are part of
PLAIN = {"switches", "cpu", "profile", "count"}
PLAIN_IN_NODES = {"name", "kind", "members", "gpus", "drives"}
PAGES = 512  # of a 2 MiB granule
DUPLICATES = 31 * 512 / 3328  # the other 64 KiB steps of a granule, as far as the CAM holds them


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def is_leaf(node: object) -> bool:
    return isinstance(node, Mapping) and "value" in node


def is_plain(key: str, item: object, path: str) -> bool:
    """Names and facts, not numbers: the switches of a driver are, those of a fabric are not."""
    names = item if isinstance(item, list) else [item]
    if key in PLAIN_IN_NODES and all(isinstance(name, str) for name in names):
        return True
    return key in PLAIN and not (path and key == "switches")


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All leaves below a node; a bare value comes as it is, for the test to refuse."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from leaves(item, f"{path}[{index}]")
    elif isinstance(node, Mapping) and not is_leaf(node):
        for key, item in node.items():
            if not (path == "" and key in HEADER) and not is_plain(key, item, path):
                yield from leaves(item, f"{path}.{key}".lstrip("."))
    else:
        yield path, node


def flat(node: Any) -> Any:
    """The tree with its values in place of the leaves: what a spec reads."""
    if is_leaf(node):
        return node["value"]
    if isinstance(node, Mapping):
        return {key: flat(item) for key, item in node.items() if key not in HEADER}
    return node


def number(value: object) -> float:
    """A value with or without a unit, as a number to compare with others of its kind."""
    if isinstance(value, int | float):
        return float(value)
    for parse in (
        quantity.parse_size,
        quantity.parse_duration,
        quantity.parse_rate,
        quantity.parse_frequency,
    ):
        try:
            return float(parse(str(value)))
        except quantity.QuantityError:
            continue
    raise AssertionError(f"{value!r} is no quantity")


def spec_of(kind: str, name: str) -> Any:
    return SPECS[kind].model_validate(flat(read(profiles_dir() / kind / f"{name}.yaml")))


def link_of(node: str) -> LinkSpec:
    return LinkSpec.model_validate(flat(read(profiles_dir() / "nodes" / f"{node}.yaml")["gpus"][0]["link"]))


MI210: GpuSpec = spec_of("gpus", "mi210")
MI300X: GpuSpec = spec_of("gpus", "mi300x")
RADEON_VII: GpuSpec = spec_of("gpus", "radeon-vii")
H200: GpuSpec = spec_of("gpus", "h200")
MILAN: HostSpec = spec_of("cpus", "epyc-7003-mi210")
GENOA: HostSpec = spec_of("cpus", "epyc-9004-mi300x")
KFD: DriverSpec = spec_of("drivers", "kfd-6.12")


# -- form


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
class TestEachFile:
    def test_is_named_after_what_it_describes(self, path: Path) -> None:
        content = read(path)
        assert content["profile_version"] == 1
        assert content["name"] == path.stem
        assert content["description"]

    def test_gives_value_source_and_grade_of_each_number(self, path: Path) -> None:
        for where, leaf in leaves(read(path)):
            assert is_leaf(leaf), f"{where} is a bare value"
            assert set(leaf) <= {"value", "source", "grade", "range", "rows"}, where
            assert leaf["grade"] in {"measured", "datasheet", "fitted", "assumed"}, where
            assert len(leaf["source"]) > 5, where

    def test_gives_a_range_around_each_assumed_value(self, path: Path) -> None:
        for where, leaf in leaves(read(path)):
            if leaf["grade"] == "assumed":
                assert "range" in leaf, f"{where} is assumed without a range"
            if leaf["grade"] == "fitted":
                assert "range" in leaf or "rows" in leaf, f"{where} is fitted to nothing"
            if "range" in leaf:
                low, high = (number(bound) for bound in leaf["range"])
                assert low <= number(leaf["value"]) <= high, where

    def test_is_read_by_the_loader_with_all_its_parameters(self, path: Path) -> None:
        profile = profiles.load(path.parent.name, path.stem)
        assert len(profile.parameters) == sum(1 for _ in leaves(read(path)))
        assert profile.name == path.stem

    def test_fills_its_spec(self, path: Path) -> None:
        content = read(path)
        kind = path.parent.name
        if kind in SPECS:
            SPECS[kind].model_validate(flat(content))
            return
        assert kind == "nodes"
        assert (profiles_dir() / "cpus" / f"{content['cpu']}.yaml").is_file()
        for entry in content["gpus"]:
            assert set(entry) == {"profile", "count", "link"}
            assert (profiles_dir() / "gpus" / f"{entry['profile']}.yaml").is_file()
            assert entry["count"] >= 1
            LinkSpec.model_validate(flat(entry["link"]))
        tree = profiles.load(kind, path.stem).tree
        if "drives" in tree:
            FabricSpec.model_validate(tree["fabric"])
        for entry in tree.get("drives", []):
            assert (profiles_dir() / "drives" / f"{entry['profile']}.yaml").is_file()
        for stack in tree.get("stacks", []):
            StackSpec.model_validate(stack)


def test_the_nodes_are_there() -> None:
    nodes = {path.stem: read(path) for path in FILES if path.parent.name == "nodes"}
    found = {name: [(g["profile"], g["count"]) for g in node["gpus"]] for name, node in nodes.items()}
    assert (
        found.items()
        >= {
            "h200-pcie5": [("h200", 1)],
            "mi100-pcie4": [("mi100", 4)],
            "mi100-2s": [("mi100", 8)],
            "mi210-pcie4": [("mi210", 4)],
            "mi300a": [("mi300a", 4)],
            "mi300x-pcie5": [("mi300x", 8)],
            "radeonvii-pcie3": [("radeon-vii", 1)],
        }.items()
    )


# -- faults and migration


def clear_ps(gpu: GpuSpec, size_bytes: int) -> float:
    return gpu.sdma.job + size_bytes / gpu.sdma.clear_rate * S


def new_range_ps(gpu: GpuSpec) -> float:
    """What only the first granule of a range pays."""
    return KFD.costs.range_create + KFD.costs.bo_create + clear_ps(gpu, 2 * MIB)


def granule_ps(pages: PageCosts) -> float:
    """Service of one 2 MiB granule without its range's share: untouched pages, moved to VRAM and mapped."""
    page = (
        pages.migrate_setup + pages.device_page + pages.migrate_finish + pages.hmm_walk + KFD.costs.pte_write
    )
    return KFD.costs.restore + KFD.costs.migrate + PAGES * page + DUPLICATES * KFD.costs.skip


def test_an_untouched_granule_on_mi210_takes_what_ghostexchange_measured() -> None:
    service = (granule_ps(MILAN.pages) + new_range_ps(MI210)) / 1e9
    assert 0.329 <= service <= 0.338
    assert service == pytest.approx(0.336, abs=0.001)
    granules = 800.6e6 / (2 * MIB)
    assert granules * service == pytest.approx(128.4, rel=0.01)  # FAU004


def test_mapping_a_page_that_exists_takes_what_the_parser_test_vector_implies() -> None:
    for host in (MILAN, GENOA):
        assert host.pages.hmm_walk + KFD.costs.pte_write == 0.165 * US  # FAU014


def test_fixed_cost_and_page_cost_of_a_fault_agree_with_mi300a() -> None:
    fixed = (
        MI300X.retry.delivery + MI300X.retry.period / 2 + KFD.costs.restore + KFD.costs.range_create
    ) / US
    assert 15.1 <= fixed <= 17.1
    assert (GENOA.pages.alloc + GENOA.pages.zero) / US == pytest.approx(0.715)
    page = (GENOA.pages.alloc + GENOA.pages.zero + GENOA.pages.hmm_walk + KFD.costs.pte_write) / US
    assert page == pytest.approx(0.88)
    assert 16 <= fixed + page <= 18  # FAU010, a lone page
    assert 114.4 * (fixed + PAGES * page) / 1e3 == pytest.approx(53.5, rel=0.02)  # FAU001
    assert 58_594 * GENOA.pages.free / US / 1e3 == pytest.approx(30, rel=0.01)  # MAN015


def test_one_large_range_is_held_to_0_90_gb_per_s_by_the_2_ms_rule() -> None:
    later = granule_ps(MILAN.pages) + KFD.costs.tlb_flush
    whole = clear_ps(MI210, 1024 * MIB) + PAGES * later
    assert (1024 * MIB) / (whole / S) / 1e9 == pytest.approx(6.2, rel=0.10)
    cadence = KFD.svm.recent_skip + later + MI210.retry.period / 2
    assert (2 * MIB) / (cadence / S) / 1e9 == pytest.approx(0.90, rel=0.05)


def test_six_hipmalloc_calls_take_what_mi210_took() -> None:
    assert 6 * KFD.costs.vram_alloc / 1e9 == pytest.approx(0.299, rel=0.01)  # OTH002


def test_xnack_slows_the_steady_blur_as_measured() -> None:
    assert 1.064 <= MI210.compute.xnack_slowdown <= 1.093
    assert 11.656 * MI210.compute.xnack_slowdown == pytest.approx(12.744, rel=0.05)  # MAN043, MAN041


def test_a_registered_range_is_at_most_1_gib_on_mi210_and_512_mib_on_a_16_gib_card() -> None:
    def largest(gpu: GpuSpec) -> int:
        pages = min(max(gpu.hbm.size // KFD.svm.range_divisor, KFD.svm.range_min), KFD.svm.range_max)
        return 1 << (pages.bit_length() - 1)

    assert largest(MI210) == largest(MI300X) == 1024 * MIB
    assert largest(RADEON_VII) == 512 * MIB


# -- wavefronts, memory, translation


def test_wave_slots() -> None:
    assert MI210.compute.slots == 3_328
    assert MI300X.compute.slots == 9_728
    assert RADEON_VII.compute.slots == 2_400


def wave_gb_per_s(gpu: GpuSpec) -> float:
    return gpu.compute.bytes_in_flight / (gpu.hbm.latency / S) / 1e9


def test_a_lone_wavefront_streams_at_the_rate_measured() -> None:
    assert wave_gb_per_s(MI210) == pytest.approx(24 / 26, rel=0.01)  # HBM012
    assert wave_gb_per_s(MI300X) == pytest.approx(75 / 76, rel=0.01)  # HBM028


@pytest.mark.parametrize(("waves", "read"), [(104, 92), (208, 185), (416, 345), (832, 662)])
def test_wavefronts_of_mi210_add_up_until_hbm_is_full(waves: int, read: float) -> None:
    assert waves * wave_gb_per_s(MI210) == pytest.approx(read, rel=0.17)  # HBM013-HBM016
    assert MI210.hbm.bandwidth / MI210.compute.slots / 1e9 == pytest.approx(0.41, rel=0.01)  # HBM019


@pytest.mark.parametrize("gpu", [MI210, MI300X, RADEON_VII, H200], ids=lambda gpu: gpu.gfx)
def test_full_occupancy_fills_hbm(gpu: GpuSpec) -> None:
    assert gpu.compute.slots * wave_gb_per_s(gpu) * 1e9 > gpu.hbm.bandwidth


@pytest.mark.parametrize(
    ("gpu", "footprint_bytes", "latency_ns"),
    [
        (MI210, 65_821_400, 345.0),
        (MI210, 183_741_500, 387.9),
        (MI210, 2_142_410_100, 411.9),
        (MI300X, 627_823_000, 424.5),
        (MI300X, 2_143_794_600, 432.9),
    ],
    ids=["LAT008", "LAT010", "LAT013", "LAT038", "LAT039"],
)
def test_a_random_chase_takes_latency_and_utcl1_misses(
    gpu: GpuSpec, footprint_bytes: int, latency_ns: float
) -> None:
    reach = gpu.utcl1.entries * 2 * MIB
    assert reach == 64 * MIB
    missing = max(0.0, 1 - reach / footprint_bytes)
    assert (gpu.hbm.latency + missing * gpu.utcl1.miss) / NS == pytest.approx(latency_ns, rel=0.02)
    assert gpu.utcl2.entries * 2 * MIB >= footprint_bytes


# -- links


def test_one_coupling_serves_both_nodes_that_it_is_fitted_to() -> None:
    assert link_of("radeonvii-pcie3").coupling == link_of("h200-pcie5").coupling


def test_babelstream_on_host_resident_memory_comes_out_right_on_radeon_vii() -> None:
    link = link_of("radeonvii-pcie3")
    k = link.coupling
    reads = link.h2d * RADEON_VII.zero_copy.read_efficiency / 1e9
    writes = link.d2h * RADEON_VII.zero_copy.write_efficiency / 1e9
    dot = reads
    copy = 2 / max(1 / writes + k / reads, 1 / reads + k / writes)
    triad = 3 / max(2 / reads + k / writes, 1 / writes + 2 * k / reads)
    assert 0.97 * 13.47 <= dot <= 13.47  # MAN070
    assert copy == pytest.approx(21.99, rel=0.08)  # MAN062
    assert triad == pytest.approx(19.23, rel=0.08)  # MAN068
    assert copy / dot == pytest.approx(1.63, abs=0.15)


@pytest.mark.parametrize(
    ("direction", "size_bytes", "time_us"),
    [
        ("h2d", 64 << 10, 10.614),
        ("h2d", 1 << 20, 28.073),
        ("h2d", 16 << 20, 313.226),
        ("h2d", 256 << 20, 4848.73),
        ("d2h", 256 << 10, 12.479),
        ("d2h", 4 << 20, 83.515),
        ("d2h", 64 << 20, 1220.95),
        ("d2h", 1 << 30, 19411.7),
    ],
)
def test_pinned_copies_of_h200(direction: str, size_bytes: int, time_us: float) -> None:
    link = link_of("h200-pcie5")
    fixed, rate = {"h2d": (H200.sdma.copy_h2d, link.h2d), "d2h": (H200.sdma.copy_d2h, link.d2h)}[direction]
    assert fixed / US + size_bytes / rate * 1e6 == pytest.approx(time_us, rel=0.035)


def test_copies_both_ways_and_zero_copy_on_h200() -> None:
    link = link_of("h200-pcie5")
    both_ms = 512 * MIB / (link.h2d / (1 + link.coupling)) * 1e3
    assert both_ms == pytest.approx(10.6287, rel=0.05)  # H200-053
    zero_copy_ms = 512 * MIB / (link.h2d * H200.zero_copy.read_efficiency) * 1e3
    assert zero_copy_ms == pytest.approx(10.885, rel=0.10)  # H200-055


@pytest.mark.parametrize(
    ("node", "gpu"),
    [
        ("mi210-pcie4", MI210),
        ("mi300x-pcie5", MI300X),
        ("radeonvii-pcie3", RADEON_VII),
        ("h200-pcie5", H200),
    ],
)
def test_a_copy_engine_is_faster_than_its_link(node: str, gpu: GpuSpec) -> None:
    link = link_of(node)
    assert gpu.sdma.rate > max(link.h2d, link.d2h)
