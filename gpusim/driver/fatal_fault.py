"""An access that cannot be repaired: what kills its process, and why."""

from __future__ import annotations

from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.placement import Refusal
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpuvm import Region

PAGE_BYTES = 4096


def kill_for_fault(process: KfdProcess, gpu: str, region: Region, page: int, *, write: bool) -> None:
    """XNACK is off for its VMID: a missing page is fatal for all waves of it."""
    kind = "write" if write else "read"
    address = (region.first_page + page) * PAGE_BYTES
    process.kill(
        "vm_fault",
        f"memory access fault by {gpu} on address {address:#x} ({kind} of {region.name}): "
        + (
            _taken_back(process, region.first_page + page, write=write)
            or f"page not present or not mapped, and XNACK is off{_remedy(process)}"
        ),
    )


def _taken_back(process: KfdProcess, page: int, *, write: bool) -> str:
    """Why no mode and no allocator would help: the program itself has unmapped or protected the page. Else empty."""
    vma = process.mm.find(page)
    if vma is None or not vma.has_parts:
        return ""
    rights = vma.rights(page)
    if rights is None:
        return "the program has unmapped it"
    if rights.read and (rights.write or not write):
        return ""
    return "the program has protected it (mprotect)"


def _remedy(process: KfdProcess) -> str:
    others = "allocate with hipMalloc, hipHostMalloc or hipMallocManaged"
    if process.xnack_refused:
        return f": {process.xnack_refused}; {others}"
    return f"; set HSA_XNACK=1, or {others}"


def refused(gpu: str, page: int, refusal: Refusal) -> SimulatedFailure:
    """What kills a process whose fault the driver refuses: the poisoned PTE makes the next retry fatal."""
    at = f"memory access fault by {gpu} on address {page * PAGE_BYTES:#x}"
    if refusal is Refusal.NO_RANGE:
        return SimulatedFailure("vm_fault", f"{at}: nothing is mapped there any more; it was freed too early")
    _, _, why = refusal.value.partition(": ")
    return SimulatedFailure("vm_fault", f"{at}: {why} ({refusal.value.split(':')[0]})")
