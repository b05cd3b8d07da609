"""AMD Infinity Storage in KFD: one ioctl that moves bytes between a file and VRAM (`hipfile.md` 2.2).

A call is checked, its buffer pinned under the GPU's lock, the bytes moved by VFS direct I/O on pages of VRAM, and the
buffer unpinned under the same lock. Left out: splitting of very long scatter lists, NVMe-oF, the kernel's log.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from gpusim.driver.ais_spec import AisSpec
from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain
from gpusim.engine.server import Server
from gpusim.engine.stages import Do, Stage
from gpusim.errors import CallError
from gpusim.kinds import Kind
from gpusim.linux.file import File
from gpusim.linux.file_io import FileIo
from gpusim.spec import PAGE_BYTES

#: stages that return the number of bytes moved
Bytes = Generator[Stage, int, int]

_REACHED = Do(lambda: None)  # the clock catches up with what the stages have reached
_ATTEMPTS = 4  # in a row that move nothing: the first and three repeats


class Ais:
    """AMDKFD_IOC_AIS_OP of a node. `spec` is None for a driver without it.

    `visible[g]` is False for a GPU whose VRAM its peers do not see: a virtual function, or a small BAR.
    """

    def __init__(self, spec: AisSpec | None, *, env: Environment, visible: Sequence[bool]) -> None:
        self._spec = spec
        self._visible = visible
        #: the lock of each GPU under which buffers are pinned
        self.locks = [Server(env, f"gpu[{index}].pin_lock") for index in range(len(visible))]
        self._wanted = [False] * len(visible)  # did the last call wait for the lock?
        self._passed: set[tuple[int, str, int]] = set()  # (process, PCI device, GPU) found reachable
        self.checks = 0

    def forget(self, process: int) -> None:
        """The process has ended."""
        self._passed = {entry for entry in self._passed if entry[0] != process}

    def rw(
        self,
        vfs: FileIo,
        chain: Chain,
        *,
        process: int,
        gpu: int,
        file: File,
        offset: int,
        size: int,
        vram_offset: int,
        write: bool,
        lvm: bool,
        before_ps: int,
    ) -> Bytes:
        """One call, which blocks its thread; `before_ps` is what user space spent on the way here.

        With `lvm`, LVM over local drives counts as a PCI device.

        Returns the bytes moved, fewer than asked for at the end of the file. Raises CallError: EINVAL for what is not
        aligned, ENODEV where no PCI device is behind the file (md RAID, dm-crypt, multipath, loop) or it cannot reach
        the GPU, and what the file system says.
        """
        spec = self._spec
        if spec is None:
            yield Kind.IO_SUBMIT, before_ps
            raise CallError("ENODEV")
        submit = before_ps + spec.ioctl
        pci = file.device.name if lvm and file.lvm else file.pci
        if (process, pci, gpu) not in self._passed:
            reachable = pci is not None
            if pci is not None:
                submit += spec.p2p_check
                self.checks += 1
                reachable = self._visible[gpu] and vfs.p2p_distance(file, gpu) >= 0
            if not reachable:
                yield Kind.IO_SUBMIT, submit  # a pair that fails pays for the check at every call
                raise CallError("ENODEV")
            self._passed.add((process, str(pci), gpu))
        if not _aligned(file, offset | size, vram_offset):
            yield Kind.IO_SUBMIT, submit
            raise CallError("EINVAL")
        pages = spec.page * -(-size // PAGE_BYTES)
        lock = self.locks[gpu]
        if self._wanted[gpu]:  # calls queue for it: each takes its turn when it has come there, not before
            yield Kind.IO_SUBMIT, submit
            yield _REACHED
            submit = 0
        reached = chain.time_ps + submit
        start, _ = lock.reserve(spec.pin, reached)
        self._wanted[gpu] = start > reached
        yield Kind.IO_SUBMIT, submit, Kind.IO_LOCK, start - reached, Kind.IO_PIN, spec.pin + pages
        done = stalled = 0
        try:
            while True:  # the VFS until all is done, the file ends, or nothing moves any more
                moved = yield from vfs.dma(file, offset + done, size - done, gpu=gpu, write=write)
                done += moved
                if done == size or (not write and offset + done >= file.size):
                    break
                stalled = 0 if moved else stalled + 1
                if stalled == _ATTEMPTS:
                    raise CallError("EIO")
        except CallError:
            yield from self._unpin(chain, lock, spec.unpin)
            raise
        reached = chain.time_ps
        start, _ = lock.reserve(spec.unpin, reached)
        self._wanted[gpu] = start > reached
        yield Kind.IO_LOCK, start - reached, Kind.IO_PIN, spec.unpin
        return done

    @staticmethod
    def _unpin(chain: Chain, lock: Server, unpin: int) -> Generator[Stage, int, None]:
        start, _ = lock.reserve(unpin, chain.time_ps)
        yield Kind.IO_LOCK, start - chain.time_ps, Kind.IO_PIN, unpin


def _aligned(file: File, file_part: int, vram_offset: int) -> bool:
    """By what statx reports, else by pages."""
    offset_align, mem_align = file.dio_offset_align, file.dio_mem_align
    if offset_align is None:
        offset_align = PAGE_BYTES
    if mem_align is None:
        mem_align = PAGE_BYTES
    return bool(offset_align and mem_align and not file_part % offset_align and not vram_offset % mem_align)
