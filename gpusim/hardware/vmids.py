"""The VMIDs that the KFD may give to processes on one GPU: few, so that of many processes some have to wait.

VMID 0 is the kernel's; the KFD has 3 to 15 on Instinct parts, 8 to 15 where graphics needs some (`kfd_svm.md` 5.1). A
process keeps its VMID as long as it has kernels in flight, and until another one needs it. Left out: the time slices by
which the hardware scheduler lets more processes take turns; here a kernel waits until a VMID is free.
"""

from __future__ import annotations

from gpusim.hardware.gpu_spec import VmidSpec
from gpusim.hardware.gpuvm import Vm

NO_VMID = -1


class Vmids:
    """Who has which VMID on one GPU."""

    def __init__(self, spec: VmidSpec) -> None:
        self._free = list(range(spec.last, spec.first - 1, -1))  # the lowest is taken first
        self._busy: dict[Vm, int] = {}  # kernels in flight; in the order in which VMIDs were taken
        self.taken_over = 0  # how often a process lost its VMID to another one

    def take(self, vm: Vm) -> bool:
        """One more kernel of `vm` begins; False if it has to wait. `vm.vmid` is set."""
        busy = self._busy
        if vm in busy:
            busy[vm] += 1
            return True
        if not self._free:
            idle = next((other for other, kernels in busy.items() if not kernels), None)
            if idle is None:
                return False
            del busy[idle]
            self._free.append(idle.vmid)
            idle.vmid = NO_VMID
            self.taken_over += 1
        vm.vmid = self._free.pop()
        busy[vm] = 1
        return True

    def end(self, vm: Vm) -> None:
        """A kernel of `vm` has ended."""
        self._busy[vm] -= 1
