"""Traces, read back with Perfetto's own classes: every track has its place, and slices nest."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Message
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

import gpusim as gs
from gpusim.report import trace as traces
from gpusim.report.trace.counters import faults_so_far, throughput
from gpusim.report.trace.perfetto import Slice, Trace

SCENARIO = """
version: 1
name: traced
system: {node: NODE, gpus: 1}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 16MiB, allocator: malloc}
      pinned: {size: 8MiB, allocator: hipHostMalloc}
      device: {size: 8MiB, allocator: hipMalloc}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - name: rounds
          repeat:
            times: 2
            steps:
              - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
        - {name: upload, stream: copies, memcpy: {dst: device, src: pinned, async: true}}
        - {name: all, synchronize: {}}
        - {name: back, host_touch: {buffer: x, access: read}}
"""


class Read:
    """A trace as a viewer sees it."""

    def __init__(self, data):
        message = Message()
        message.ParseFromString(data)
        self.tracks, self.names, self.categories, self.details = {}, {}, {}, {}
        self.slices, self.counters, self.instants = defaultdict(list), defaultdict(list), defaultdict(list)
        opened = defaultdict(list)
        events = []
        for packet in message.packet:
            for entry in packet.interned_data.event_names:
                self.names[entry.iid] = entry.name
            for entry in packet.interned_data.event_categories:
                self.categories[entry.iid] = entry.name
            for entry in packet.interned_data.debug_annotation_names:
                self.details[entry.iid] = entry.name
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                events.append((packet.timestamp, packet.track_event))
        for time_ns, event in sorted(events, key=lambda one: one[0]):  # a stable sort, as the viewer's
            where = event.track_uuid
            if event.type == TrackEvent.TYPE_COUNTER:
                self.counters[self.path(where)].append((time_ns, event.double_counter_value))
            elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
                opened[where].append((time_ns, event))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                start, begun = opened[where].pop()  # fails where nothing is open
                self.slices[self.path(where)].append((self.names[begun.name_iid], start, time_ns, begun))
            else:
                self.instants[self.path(where)].append((self.names[event.name_iid], time_ns, event))
        assert not any(opened.values())

    def path(self, uuid):
        """`gpu[0] / GPU Kernel Dispatch [0] Queue 0`."""
        descriptor = self.tracks[uuid]
        own = descriptor.name or descriptor.process.process_name or descriptor.thread.thread_name
        return f"{self.path(descriptor.parent_uuid)} / {own}" if descriptor.parent_uuid else own

    def told(self, event):
        """Details of a slice."""
        return {
            self.details[one.name_iid]: getattr(one, one.WhichOneof("value"))
            for one in event.debug_annotations
        }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("traced")


@pytest.fixture(scope="module")
def result(place):
    return gs.run(SCENARIO.replace("NODE", "mi210-pcie4"), trace=True, out=place / "run")


@pytest.fixture(scope="module")
def trace(result):
    return Read((result.path / "perfetto-trace.proto").read_bytes())


def test_the_track_tree_has_a_process_for_each_part(trace):
    tree = {trace.path(uuid) for uuid in trace.tracks}
    assert {
        "app / main",
        "gpu[0] / GPU Kernel Dispatch [0] Queue 0",
        "gpu[0] / GPU Memory Copy to Agent [1]",
        "gpu[0] / Unified Memory Page Faults [Device 1]",
        "gpu[0] / Unified Memory Migration Throughput [Device 1]",
        "gpu[0] / gpu[0].pcie.h2d",
        "gpu[0] / retry faults",
        "KFD / KFD Page Fault [GPU 0]",
        "KFD / KFD Page Migrate [CPU 0->GPU 0]",
        "KFD / KFD Page Migrate [GPU 0->CPU 0]",
        "KFD / KFD Unmap from GPU [GPU 0]",
    } <= tree
    numbers = [one.process.pid for one in trace.tracks.values() if one.HasField("process")]
    assert len(numbers) == len(set(numbers))
    assert all(one.parent_uuid in trace.tracks for one in trace.tracks.values() if one.parent_uuid)


def test_steps_of_a_thread_nest_in_what_repeats_them(trace, result):
    slices = {name: (start, end) for name, start, end, _ in trace.slices["app / main"]}
    assert set(slices) == {"fill", "rounds", "all", "back"}
    step = next(step for step in result.summary["steps"] if step["path"] == "back")
    assert slices["back"] == (round(step["start_ns"]), round(step["end_ns"]))


def test_kernels_and_copies_say_what_they_are(trace):
    kernels = trace.slices["gpu[0] / GPU Kernel Dispatch [0] Queue 0"]
    assert [name for name, *_ in kernels] == ["scale", "scale"]
    ((name, _, _, event),) = trace.slices["gpu[0] / GPU Memory Copy to Agent [1]"]
    assert name == "MEMORY_COPY_HOST_TO_DEVICE"
    assert trace.categories[event.category_iids[0]] == "rocm_memory_copy"
    told = trace.told(event)
    assert (told["bytes"], told["stream"], told["src"], told["dst"]) == (
        8 * 2**20,
        "copies",
        "pinned",
        "device",
    )


def test_the_fault_counter_ends_at_the_faults_of_the_summary(trace, result):
    points = trace.counters["gpu[0] / Unified Memory Page Faults [Device 1]"]
    values = [value for _, value in points]
    assert values == sorted(values)
    assert values[-1] == result.summary["faults"]["serviced"]
    assert len(trace.slices["KFD / KFD Page Fault [GPU 0]"]) == values[-1]


def test_the_area_under_the_throughput_is_what_migrated(trace, result):
    points = trace.counters["gpu[0] / Unified Memory Migration Throughput [Device 1]"]
    moved = sum(value * (end - start) for (start, value), (end, _) in pairwise(points))
    events = result.tables["kfd_events"]
    pages = int(events.loc[events["event"] == "MIGRATE_START", "pages"].sum())
    assert moved == pytest.approx(4096 * pages, rel=1e-3)  # times are whole nanoseconds


def test_a_fault_shows_its_parts_and_what_they_were_spent_on(trace, result):
    lives = [one for one in trace.slices["gpu[0] / retry faults"] if one[0].endswith("fault")]
    assert len(lives) == result.summary["faults"]["serviced"]
    _, start, end, event = max(lives, key=lambda one: one[2] - one[1])
    told = trace.told(event)
    spent = sum(value for name, value in told.items() if name.endswith("_ns"))
    assert spent == pytest.approx(end - start, abs=2)
    parts = {name for name, *_ in trace.slices["gpu[0] / retry faults"]}
    assert {"wait for service", "service"} <= parts


def test_the_kernel_s_lines_lie_beside_it(result):
    lines = (result.path / "kfd_events.txt").read_text().splitlines()
    assert lines == result.tables["kfd_events"]["line"].tolist()
    assert {line.split()[0] for line in lines} >= {"5", "6", "7", "8", "b"}
    times = [int(line.split()[1]) for line in lines]
    assert times == sorted(times)


def test_the_profile_counts_what_the_summary_counts(result):
    made = json.loads((result.path / "unified_memory-1000.json").read_text())
    (device,) = made["devices"]
    assert made["summary"]["total_page_faults"] == result.summary["faults"]["serviced"]
    up = device["migrations"]["host_to_device"]
    assert up["count"] == result.summary["migrations"]["host_to_device"]["count"]
    assert up["total_size_bytes"] == 16 * 2**20


def test_an_apu_has_faults_and_no_migrations(place):
    alone = gs.run(SCENARIO.replace("NODE", "mi300a"), trace=True, out=place / "apu")
    made = json.loads((alone.path / "unified_memory-1000.json").read_text())
    assert made["devices"] == []
    assert made["summary"]["total_page_faults"] > 0
    names = {one.name for one in Read((alone.path / "perfetto-trace.proto").read_bytes()).tracks.values()}
    assert "Unified Memory Page Faults [Device 1]" in names
    assert not any("Migration Throughput" in name for name in names)


def test_spans_are_linked_to_what_released_them(place):
    whole = gs.run(SCENARIO.replace("NODE", "mi210-pcie4"), record="spans", trace=True, out=place / "spans")
    seen = Read((whole.path / "perfetto-trace.proto").read_bytes())
    spans = [one for path, found in seen.slices.items() if path.startswith("spans / ") for one in found]
    given = {number for *_, event in spans for number in event.flow_ids}
    taken = {number for *_, event in spans for number in event.terminating_flow_ids}
    assert taken
    assert len(taken & given) > 0.9 * len(taken)  # some are shorter than a nanosecond


def test_a_small_budget_keeps_programs_and_says_what_it_dropped(result, tmp_path):
    budget = 8 * 1024
    told = traces.save(result, tmp_path, budget_bytes=budget)
    data = (tmp_path / "perfetto-trace.proto").read_bytes()
    assert len(data) == told["bytes"] <= budget
    assert told["dropped"]
    seen = Read(data)
    assert len(seen.slices["app / main"]) == 4
    words = " ".join(one.name for one in seen.tracks.values())
    for what, count in told["dropped"].items():
        assert f"{count:,} {what}" in words


def test_the_shortest_slices_are_the_ones_that_go(tmp_path):
    trace = Trace(4096 + 600)
    parent = trace.process("part", 1)
    slices = [Slice("s", 100.0 * at, 100.0 * at + 1 + at) for at in range(50)]
    trace.slices("things", parent, "track", "x", slices)
    trace.write(tmp_path / "t")
    kept = [end - start for _, start, end, _ in Read((tmp_path / "t").read_bytes()).slices["part / track"]]
    assert 0 < len(kept) < 50
    assert len(kept) + trace.dropped["things"] == 50
    assert min(kept) == 51 - len(kept)


def test_the_same_run_gives_the_same_bytes(result, place):
    again = gs.run(SCENARIO.replace("NODE", "mi210-pcie4"), trace=True, out=place / "again")
    one, two = ((Path(path) / "perfetto-trace.proto").read_bytes() for path in (result.path, again.path))
    assert one == two


def test_a_run_without_record_cannot_be_traced():
    with pytest.raises(gs.InputError, match="a trace needs what a run records"):
        gs.run(SCENARIO.replace("NODE", "mi210-pcie4"), trace=True, record="off")


def test_many_faults_are_thinned_to_exact_points():
    points = faults_so_far([float(at) for at in range(10_000)])
    assert len(points) < 5000
    assert points[-1] == (9999.0, 10_000.0)
    assert all(value == time_ns + 1 for time_ns, value in points[1:])


def test_migrations_side_by_side_add_up():
    assert throughput([(0, 100, 1000), (50, 150, 500)]) == [(0, 10), (50, 15), (100, 5), (150, 0)]


def test_the_command_line_writes_it_and_says_so(tmp_path, monkeypatch, capsys):
    from gpusim.cli import main

    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text(SCENARIO.replace("NODE", "mi210-pcie4"))
    with pytest.raises(SystemExit) as end:
        main(["run", "one.yaml", "--trace", "--out", "here"])
    assert end.value.code == 0
    assert "ui.perfetto.dev" in capsys.readouterr().out
    summary = json.loads(Path("here/summary.json").read_text())
    assert all(Path("here", name).is_file() for name in summary["trace"]["files"])
    with pytest.raises(SystemExit) as end:
        main(["run", "one.yaml", "--trace", "--record", "off", "--out", "there"])
    assert end.value.code == 2
    assert not Path("there").exists()


def test_file_requests_lie_on_tracks_of_their_path(place):
    drives = Path(__file__).parents[3] / "scenarios" / "validation" / "hipfile_7drives.yaml"
    ran = gs.run(drives, set={"limits.simulated_time": "20ms"}, trace=True, out=place / "files")
    seen = Read((ran.path / "perfetto-trace.proto").read_bytes())
    writes = seen.slices["file I/O / fastpath write [fio]"]
    block = ran.summary["io"]["fastpath"]["write"]
    assert len(writes) == block["requests"] > 0
    assert sum(seen.told(event)["bytes"] for *_, event in writes) == block["bytes"]
    longest = max(end - start for _, start, end, _ in writes)
    assert longest == pytest.approx(block["latency_ns"]["max"], abs=2)
    assert any(path.startswith("host / nvme") for path in seen.counters)
