"""Programs with files, for tests: one process on the node with seven drives, and what became of its requests.

ran = run("load: {file_read: {file: f, buffer: x, io_size: 1MiB}}")
assert ran.io("fastpath", "read")["requests"] == 64
"""

from __future__ import annotations

from typing import Any

import gpusim as gs
from gpusim.result import Result
from gpusim.scenario import loader

HEAD = """\
version: 1
name: files
system: {{node: {node}, gpus: 1}}
{top}
processes:
  - name: app
    env: {{{env}}}
    on_error: {on_error}
    buffers:
      x: {{size: 64MiB, allocator: hipMalloc}}
      {buffers}
    files:
      f: {{size: {size}, filesystem: {filesystem}, drive: {drive}, {facts}}}
      {files}
    threads:
      main:
"""


class Ran:
    """A finished run."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.summary: dict[str, Any] = result.summary
        self.outcome: str = self.summary["outcome"]
        self.error: str | None = self.summary["processes"][0]["error"]

    def io(self, path: str, direction: str) -> dict[str, Any]:
        return self.summary["io"][path][direction]  # type: ignore[no-any-return]

    def step(self, name: str, field: str = "duration_ns") -> float:
        return float(self.result.metric(f"steps.{name}.{field}"))  # type: ignore[arg-type]

    @property
    def statistics(self) -> dict[str, Any]:
        return self.summary["io"]["statistics"]["app"]  # type: ignore[no-any-return]


def run(*steps: str, record: str = "summary", **about: str) -> Ran:
    """Run steps; `about` as in `text`."""
    return Ran(gs.run(loader.loads(text(*steps, **about)), record=record))


def text(
    *steps: str,
    version: str = "0.5.0",
    faults: str = "",
    env: str = "",
    node: str = "mi300x-7nvme",
    drive: str = "nvme0",
    size: str = "64MiB",
    filesystem: str = "ext4",
    facts: str = "",
    files: str = "",
    buffers: str = "",
    top: str = "",
    on_error: str = "stop",
    hipfile: str = "",
) -> str:
    """A scenario of `name: {verb: {...}}` steps, one after another."""
    if version:
        top += f"\nruntime: {{hipfile: {{version: {version}{hipfile}}}}}"
    if faults:
        top += f"\nfaults: [{faults}]"
    made = HEAD.format(
        node=node,
        top=top,
        env=env,
        on_error=on_error,
        buffers=buffers,
        size=size,
        filesystem=filesystem,
        drive=drive,
        facts=facts,
        files=files,
    )
    for step in steps:
        name, _, body = step.partition(": ")
        made += f"        - {{name: {name}, {body[1:-1]}}}\n"
    return made
