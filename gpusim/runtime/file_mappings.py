"""mmap of a file: the mapping, and who hears of what happens to its pages."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.engine.record import Chain
from gpusim.engine.stages import Stages, run_stages
from gpusim.errors import InputError, Problem
from gpusim.linux.address_space import READ_ONLY, Vma
from gpusim.linux.mapped_file import MappedFile
from gpusim.linux.notifier import Event
from gpusim.runtime.allocation import FileMapping
from gpusim.runtime.hip import Declared, Hip


def map_file(hip: Hip, vma: Vma, declared: Declared) -> None:
    """Put the file of a buffer behind its VMA. Raises InputError where the node has no numbers for it."""
    node, kfd = hip.node, hip.kfd
    io = node.file_io
    if io is None or io.costs.mapped is None or declared.file is None:
        raise InputError(
            [
                Problem(
                    "the CPU profile of the node has no numbers for mapped files",
                    path="system.node",
                    legal="a node whose CPU profile has `io.mapped`; `gpusim profiles NAME` shows it",
                )
            ]
        )

    def run(stages: Stages, done: Callable[[], None]) -> None:
        """In the background: nobody waits for it."""
        recorder = node.recorder
        chain = Chain(recorder, recorder.actor(f"{kfd.name}.page_cache") if recorder.spans else 0)
        chain.time_ps = hip.env.now
        run_stages(hip.env, chain, stages, done, lambda _: done())

    def notify(changed: Vma, first: int, last: int, event: Event) -> None:
        if not kfd.dead:
            run(kfd.invalidate(changed, first, last, event), lambda: None)

    vma.backing = MappedFile(
        hip.files[declared.file],
        vma,
        io=io,
        costs=io.costs.mapped,
        paging=node.paging,
        notify=notify,
        run=run,
        shared=declared.mapping is FileMapping.SHARED,
    )
    if declared.mapping is FileMapping.READ_ONLY:
        vma.allow(vma.first, vma.last, READ_ONLY)
