"""AMD Infinity Storage in KFD: one ioctl that moves bytes between a file and VRAM (`hipfile.md` 2.2).

A call is checked, its buffer pinned under the GPU's lock, the bytes moved by VFS direct I/O on pages of VRAM, and the
buffer unpinned under the same lock. Left out: splitting of very long scatter lists, NVMe-oF, the kernel's log.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from gpusim.driver.ais_spec import AisSpec
from gpusim.driver.pin_lock import PinLock
from gpusim.engine.record import Chain
from gpusim.engine.stages import REACH, Early, Stage
from gpusim.errors import CallError
from gpusim.hardware.drive import EXPRESS_BYTES
from gpusim.kinds import Kind
from gpusim.linux.file import File
from gpusim.linux.file_io import FileIo
from gpusim.spec import PAGE_BYTES

#: stages that return the number of bytes moved
Bytes = Generator[Stage, int, int]

_ATTEMPTS = 4  # in a row that move nothing: the first and three repeats


class Ais:
    """AMDKFD_IOC_AIS_OP of a node. `spec` is None for a driver without it.

    `visible[g]` is False for a GPU whose VRAM its peers do not see: a virtual function, or a small BAR. `linked`: spans
    are recorded, so each turn under a lock tells whose turn was before.
    """

    def __init__(self, spec: AisSpec | None, *, visible: Sequence[bool], linked: bool = False) -> None:
        self._spec = spec
        self._linked = linked
        self._visible = visible
        #: the lock of each GPU under which buffers are pinned
        self.locks = [PinLock(f"gpu[{index}].pin_lock") for index in range(len(visible))]
        self._reached: set[tuple[int, str | None, int]] = set()  # (process, PCI device, GPU)
        self._passed: dict[tuple[int, File, int], tuple[int, int] | None] = {}  # what a file may be asked for
        self.checks = 0

    def forget(self, process: int) -> None:
        """The process has ended."""
        self._reached = {entry for entry in self._reached if entry[0] != process}
        self._passed = {key: masks for key, masks in self._passed.items() if key[0] != process}

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
        masks = self._passed.get((process, file, gpu))
        if masks is None:
            pci = file.device.name if lvm and file.lvm else file.pci
            submit += self._check(vfs, process, pci, gpu, file)
            if (process, pci, gpu) not in self._reached:
                yield Kind.IO_SUBMIT, submit  # a pair that fails pays for the check at every call
                raise CallError("ENODEV")
            masks = self._passed[process, file, gpu] = _alignment(file)
        if masks is None or offset % masks[0] or size % masks[0] or vram_offset % masks[1]:
            yield Kind.IO_SUBMIT, submit
            raise CallError("EINVAL")
        pin = spec.pin + spec.page * -(-size // PAGE_BYTES)
        lock = self.locks[gpu]
        if lock.wanted:  # calls queue for it: each takes its turn when it has come there, not before
            yield Kind.IO_SUBMIT, submit
            yield REACH
            submit = 0
        reached = chain.time_ps + submit
        wait = lock.take(reached, spec.pin) - reached
        begun = reached + wait + pin
        if self._linked:
            yield Kind.IO_SUBMIT, submit
            _turn(chain, lock, reached + wait, spec.pin)
            chain.spend(Kind.IO_PIN, begun)
            submit = wait = pin = 0
        if vfs.plain(file, offset, size):  # the usual request
            direct = vfs.costs.direct
            device = file.inode.device
            end = -1
            if size <= EXPRESS_BYTES:
                end = device.reserve(offset, size, gpu, begun + direct, write=write)
            chain.spend_all(
                (Kind.IO_SUBMIT, submit, Kind.IO_LOCK, wait, Kind.IO_PIN, pin, Kind.FILE_SYSTEM, direct)
            )
            if end >= 0:
                yield Kind.DRIVE, end - begun - direct
                yield REACH
            else:
                at = chain.time_ps
                yield Early(
                    Kind.DRIVE,
                    lambda moved: device.submit(offset, size, gpu, moved, write=write, at_ps=at),
                )
            done = size
        else:
            yield Kind.IO_SUBMIT, submit, Kind.IO_LOCK, wait, Kind.IO_PIN, pin
            try:
                done = yield from self._move(vfs, chain, file, offset, size, gpu=gpu, write=write)
            except CallError:
                yield self._unpinned(chain, lock, spec.unpin)
                raise
        chain.spend_all(self._unpinned(chain, lock, spec.unpin))
        return done

    def _unpinned(self, chain: Chain, lock: PinLock, unpin: int) -> tuple[int, ...]:
        reached = chain.time_ps
        if self._linked:
            _turn(chain, lock, lock.take(reached, unpin), unpin)
            return ()
        return Kind.IO_LOCK, lock.take(reached, unpin) - reached, Kind.IO_PIN, unpin

    @staticmethod
    def _move(
        vfs: FileIo, chain: Chain, file: File, offset: int, size: int, *, gpu: int, write: bool
    ) -> Bytes:
        """The VFS until all is done, the file ends, or nothing moves any more."""
        done = stalled = 0
        while True:
            moved = yield from vfs.dma(
                file, offset + done, size - done, gpu=gpu, write=write, at_ps=chain.time_ps
            )
            done += moved
            if done == size or (not write and offset + done >= file.size):
                return done
            stalled = 0 if moved else stalled + 1
            if stalled == _ATTEMPTS:
                raise CallError("EIO")

    def _check(self, vfs: FileIo, process: int, pci: str | None, gpu: int, file: File) -> int:
        """May the device reach the GPU? Kept where it may; returns the time that asking takes."""
        if pci is None or (process, pci, gpu) in self._reached or self._spec is None:
            return 0
        self.checks += 1
        if self._visible[gpu] and vfs.p2p_distance(file, gpu) >= 0:
            self._reached.add((process, pci, gpu))
        return self._spec.p2p_check


def _turn(chain: Chain, lock: PinLock, start_ps: int, length_ps: int) -> None:
    """A turn under the lock from `start_ps` on: who comes to it waits for the end of the turn before."""
    if start_ps > chain.time_ps:
        chain.spend(Kind.IO_LOCK, start_ps, alone_ps=0, behind=lock.row)
    else:
        chain.meet(Kind.IO_LOCK, lock.row)
    chain.spend(Kind.IO_PIN, start_ps + length_ps)
    lock.row = chain.row


def _alignment(file: File) -> tuple[int, int] | None:
    """Of the file and of memory, by what statx reports, else pages; None where direct I/O is refused."""
    offset, memory = file.dio_offset_align, file.dio_mem_align
    offset = PAGE_BYTES if offset is None else offset
    memory = PAGE_BYTES if memory is None else memory
    return (offset, memory) if offset and memory else None
