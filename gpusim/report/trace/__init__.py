"""What `gpusim run --trace` adds to a result directory, in the formats of the tools that people have.

| file | what |
|---|---|
| `perfetto-trace.proto` | the run on a time line, for ui.perfetto.dev |
| `kfd_events.txt` | the KFD events, a line each, as the kernel writes them |
| `unified_memory-PID.txt`, `.json` | the unified-memory profile of each process, as rocprofiler-systems writes it |

Tracks, categories and files have the names of rocprofiler-systems where it has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.quantity import MIB
from gpusim.report.trace import kfd, unified_memory
from gpusim.report.trace.content import fill

if TYPE_CHECKING:
    from gpusim.result import Result

BUDGET_BYTES = 32 * MIB
TRACE = "perfetto-trace.proto"
EVENTS = "kfd_events.txt"


def save(result: Result, directory: Path, *, budget_bytes: int = BUDGET_BYTES) -> dict[str, Any]:
    """Write all into `directory`; what was written and dropped, as it stands in summary.json under `trace`.

    The result must have the table `kfd_events` (`gpusim.run(..., trace=True)`).
    """
    from gpusim.report.trace.perfetto import Trace

    events = result.tables["kfd_events"]
    records, unpaired = kfd.records(events)
    trace = Trace(budget_bytes)
    fill(trace, result, records)
    size = trace.write(directory / TRACE)
    with (directory / EVENTS).open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in events["line"])
    dropped = dict(trace.dropped)
    dropped |= {"KFD events without a partner": unpaired} if unpaired else {}
    lost = int(events["dropped"].sum())
    dropped |= {"KFD events beyond the log": lost} if lost else {}
    profiles = unified_memory.save(result, records, directory)
    return {
        "files": [TRACE, EVENTS, *profiles],
        "bytes": size,
        "budget_bytes": budget_bytes,
        "dropped": dropped,
    }
