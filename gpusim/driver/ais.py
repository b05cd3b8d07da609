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


_SUBMIT, _LOCK, _PIN = int(Kind.IO_SUBMIT), int(Kind.IO_LOCK), int(Kind.IO_PIN)
_FILE_SYSTEM, _DRIVE = int(Kind.FILE_SYSTEM), int(Kind.DRIVE)


class Ais:
    """AMDKFD_IOC_AIS_OP of a node. `spec` is None for a driver without it.

    `visible[g]` is False for a GPU whose VRAM its peers do not see: a virtual function, or a small BAR. `linked`: spans
    are recorded, so each turn under a lock tells whose turn was before.
    """

    def __init__(self, spec: AisSpec | None, *, visible: Sequence[bool], linked: bool = False) -> None:
        self.spec = spec
        self.linked = linked
        self._visible = visible
        #: the lock of each GPU under which buffers are pinned
        self.locks = [PinLock(f"gpu[{index}].pin_lock") for index in range(len(visible))]
        self._reached: set[tuple[int, str | None, int]] = set()  # (process, PCI device, GPU)
        self._files: dict[tuple[int, File, int, bool], AisFile] = {}
        self.checks = 0

    def forget(self, process: int) -> None:
        """The process has ended."""
        self._reached = {entry for entry in self._reached if entry[0] != process}
        self._files = {key: found for key, found in self._files.items() if key[0] != process}

    def of(self, vfs: FileIo, *, process: int, gpu: int, file: File, lvm: bool) -> AisFile:
        """A file and a GPU's VRAM in one process. With `lvm`, LVM over local drives counts as a PCI device."""
        key = (process, file, gpu, lvm)
        found = self._files.get(key)
        if found is None:
            pci = file.device.name if lvm and file.lvm else file.pci
            found = self._files[key] = AisFile(self, vfs, process=process, gpu=gpu, file=file, pci=pci)
        return found

    def reaches(self, process: int, pci: str | None, gpu: int) -> bool:
        """Is it known that the device reaches the GPU?"""
        return (process, pci, gpu) in self._reached

    def check(self, vfs: FileIo, process: int, pci: str, gpu: int, file: File) -> None:
        """May the device reach the GPU? Kept where it may."""
        self.checks += 1
        if self._visible[gpu] and vfs.p2p_distance(file, gpu) >= 0:
            self._reached.add((process, pci, gpu))


class AisFile:
    """One file and the VRAM of one GPU, as one process has them: its calls of the ioctl."""

    __slots__ = ("_ais", "_checked", "_lock", "_masks", "_pci", "_process", "_vfs", "file", "gpu")

    def __init__(self, ais: Ais, vfs: FileIo, *, process: int, gpu: int, file: File, pci: str | None) -> None:
        self._ais = ais
        self._vfs = vfs
        self._process = process
        self.gpu = gpu
        self.file = file
        self._pci = pci
        self._lock = ais.locks[gpu]
        self._checked = False  # the device reaches the GPU
        self._masks: tuple[int, int] | None = None  # what offsets have to be multiples of

    def rw(
        self, chain: Chain, offset: int, size: int, vram_offset: int, *, write: bool, before_ps: int
    ) -> Bytes:
        """One call, which blocks its thread; `before_ps` is what user space spent on the way here.

        Returns the bytes moved, fewer than asked for at the end of the file. Raises CallError: EINVAL for what is not
        aligned, ENODEV where no PCI device is behind the file (md RAID, dm-crypt, multipath, loop) or it cannot reach
        the GPU, and what the file system says.
        """
        spec = self._ais.spec
        if spec is None:
            yield _SUBMIT, before_ps
            raise CallError("ENODEV")
        submit = before_ps + spec.ioctl
        if not self._checked:
            submit += self._check(spec)
            if not self._checked:
                yield _SUBMIT, submit  # a pair that fails pays for the check at every call
                raise CallError("ENODEV")
        masks = self._masks
        if masks is None or offset % masks[0] or size % masks[0] or vram_offset % masks[1]:
            yield _SUBMIT, submit
            raise CallError("EINVAL")
        pin = spec.pin + spec.page * -(-size // PAGE_BYTES)
        lock = self._lock
        if lock.wanted:  # calls queue for it: each takes its turn when it has come there, not before
            yield _SUBMIT, submit
            yield REACH
            submit = 0
        reached = chain.time_ps + submit
        wait = lock.take(reached, spec.pin) - reached
        begun = reached + wait + pin
        if self._ais.linked:
            yield _SUBMIT, submit
            _turn(chain, lock, reached + wait, spec.pin)
            chain.spend(_PIN, begun)
            submit = wait = pin = 0
        file, vfs = self.file, self._vfs
        if vfs.plain(file, offset, size):  # the usual request
            direct = vfs.costs.direct
            begun += direct
            device, gpu = file.inode.device, self.gpu
            end = -1
            if size <= EXPRESS_BYTES:
                end = device.reserve(offset, size, gpu, begun, write=write)
            drive = end - begun if end >= 0 else 0
            known = 0 if self._ais.linked else drive
            chain.spend_five(_SUBMIT, submit, _LOCK, wait, _PIN, pin, _FILE_SYSTEM, direct, _DRIVE, known)
            if drive:
                if not known:
                    chain.spend(_DRIVE, end, alone_ps=device.alone_ps(offset, size, gpu, write=write))
                yield REACH
            else:
                at = chain.time_ps
                alone = vfs.alone_ps(file.inode, offset, size, gpu, write=write)
                yield Early(
                    _DRIVE,
                    lambda moved: device.submit(offset, size, gpu, moved, write=write, at_ps=at),
                    alone,
                )
            done = size
        else:
            yield _SUBMIT, submit, _LOCK, wait, _PIN, pin
            try:
                done = yield from self._move(chain, offset, size, write)
            except CallError:
                self._unpin(chain, spec.unpin)
                raise
        self._unpin(chain, spec.unpin)
        return done

    def _unpin(self, chain: Chain, unpin: int) -> None:
        reached = chain.time_ps
        start = self._lock.take(reached, unpin)
        if self._ais.linked:
            _turn(chain, self._lock, start, unpin)
        else:
            chain.spend_two(_LOCK, start - reached, _PIN, unpin)

    def _move(self, chain: Chain, offset: int, size: int, write: bool) -> Bytes:
        """The VFS until all is done, the file ends, or nothing moves any more."""
        done = stalled = 0
        while True:
            moved = yield from self._vfs.dma(
                self.file, offset + done, size - done, gpu=self.gpu, write=write, at_ps=chain.time_ps
            )
            done += moved
            if done == size or (not write and offset + done >= self.file.size):
                return done
            stalled = 0 if moved else stalled + 1
            if stalled == _ATTEMPTS:
                raise CallError("EIO")

    def _check(self, spec: AisSpec) -> int:
        """Ask whether the device reaches the GPU, where that is not known; returns the time that it takes."""
        ais, pci = self._ais, self._pci
        if pci is None:
            return 0
        known = ais.reaches(self._process, pci, self.gpu)
        if not known:
            ais.check(self._vfs, self._process, pci, self.gpu, self.file)
        if ais.reaches(self._process, pci, self.gpu):
            self._checked = True
            self._masks = _alignment(self.file)
        return 0 if known else spec.p2p_check


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
