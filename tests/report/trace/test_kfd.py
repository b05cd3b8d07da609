"""Starts and ends of KFD events become records with the names of ROCprofiler-SDK."""

import pandas as pd

from gpusim.driver.events import EventLog, EvictionTrigger, UnmapTrigger
from gpusim.report.trace.kfd import records
from gpusim.result.tables import _frame, _to_ns

US = 10**6
UNDEFINED = (-2, -2)


def log():
    return EventLog(on=True)


def table(events):
    return _frame("kfd_events", _to_ns(events.table(["app", "other"])))


def test_a_fault_and_its_migration_are_two_records():
    events = log()
    events.fault_start(10 * US, 0, 0x100, 0, write=True)
    events.migrate_start(12 * US, 0, 0x100, 512, (-1, 0), (-1, -1), "PAGEFAULT_GPU")
    events.migrate_end(90 * US, 0, 0x100, 512, (-1, 0), "PAGEFAULT_GPU")
    events.fault_end(99 * US, 0, 0x100, 0, migrated=True)
    (fault, move), unpaired = records(table(events))
    assert unpaired == 0
    assert fault.name == "PAGE_FAULT_WRITE_FAULT_MIGRATED"
    assert fault.track == "KFD Page Fault [GPU 0]"
    assert (fault.start_ns, fault.end_ns) == (10_000, 99_000)
    assert move.name == "PAGE_MIGRATE_PAGEFAULT_GPU"
    assert move.track == "KFD Page Migrate [CPU 0->GPU 0]"
    assert move.size_bytes == 2 * 2**20
    assert move.details["end_address"] == hex(0x100000 + 2**21)


def test_a_queue_that_is_put_off_ends_with_the_restore_that_is_not():
    events = log()
    events.queue_eviction(1 * US, 0, 1, EvictionTrigger.SVM)
    events.queue_restore(2 * US, 0, 1, rescheduled=True)
    events.queue_restore(5 * US, 0, 1, rescheduled=False)
    (queue, put_off), unpaired = records(table(events))
    assert (queue.name, queue.end_ns, unpaired) == ("QUEUE_EVICT_SVM", 5_000, 0)
    assert (put_off.name, put_off.track) == ("QUEUE_RESTORE_RESCHEDULED_EVENT", "KFD Event Queue [GPU 1]")


def test_two_processes_with_one_address_are_told_apart():
    events = log()
    events.fault_start(1 * US, 0, 0x100, 0, write=False)
    events.fault_start(2 * US, 1, 0x100, 0, write=False)
    events.fault_end(3 * US, 1, 0x100, 0, migrated=False)
    (fault,), unpaired = records(table(events))
    assert (fault.pid, fault.start_ns, unpaired) == (1001, 2_000, 1)


def test_an_unmap_stands_alone():
    events = log()
    events.unmap(4 * US, 0, 0x200, 16, 0, UnmapTrigger.MMU_NOTIFY)
    ((unmap,), unpaired) = records(table(events))
    assert (unmap.name, unmap.size_bytes, unpaired) == ("UNMAP_FROM_GPU_MMU_NOTIFY", 65_536, 0)


def test_the_table_repeats_the_lines_of_the_log():
    events = log()
    events.migrate_start(12 * US, 0, 0x100, 512, (0, -1), (0, -1), "TTM_EVICTION")
    events.vm_fault(13 * US, 1)
    frame = table(events)
    assert frame["line"].tolist() == list(events.lines(["app", "other"]))
    assert frame["line"].iloc[0] == "5 12000 -1000 @100(200) 1000->0 1000:0 3"
    row = frame.iloc[0]
    assert [row["from"], row["to"], row["prefetch"], row["preferred"]] == ["gpu[0]", "host", "gpu[0]", "host"]
    assert pd.Series(frame["event"]).tolist() == ["MIGRATE_START", "VMFAULT"]


def test_a_full_log_says_what_it_lost(monkeypatch):
    monkeypatch.setattr("gpusim.driver.events.MOST_ROWS", 2)
    events = log()
    for number in range(5):
        events.fault_start(number * US, 0, number, 0, write=False)
    found, unpaired = records(table(events))
    assert [(record.name, record.details) for record in found] == [("DROPPED_EVENTS", {"count": 3})]
    assert unpaired == 2
