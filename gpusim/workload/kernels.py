"""From a kernel's description to what it does on a GPU: its accesses, its wavefronts, and one wavefront's rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpusim.hardware.access import AccessStream
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpu_spec import CacheSpec, GpuSpec
from gpusim.hardware.gpuvm import HOST
from gpusim.runtime.launch import Argument, Plan
from gpusim.workload.kernel import KernelSpec, XnackMode
from gpusim.workload.patterns import PATTERNS


class Kernels:
    """The kernels of a scenario. `grouped` is false in the step-by-step mode."""

    def __init__(self, specs: Mapping[str, KernelSpec], *, grouped: bool, seed: int) -> None:
        self._specs = dict(specs)
        self.grouped = grouped
        self._seed = seed

    def add(self, name: str, spec: KernelSpec) -> None:
        """A kernel that the runtime brings along (hipMemset)."""
        self._specs.setdefault(name, spec)

    def loads(self, kernel: str, *, xnack: bool) -> bool:
        """xnack+ code loads only with the mode on, xnack- code only with it off."""
        built = self._specs[kernel].xnack
        return built is XnackMode.ANY or (built is XnackMode.ON) == xnack

    def duration_ps(self, kernel: str) -> int | None:
        """Its contention-free time, if that is given."""
        return self._specs[kernel].duration

    def passes(self, kernel: str) -> int:
        """How often it walks its buffers."""
        return self._specs[kernel].passes

    def plan(self, kernel: str, arguments: Sequence[Argument], gpu: Gpu, *, xnack: bool, number: int) -> Plan:
        """Walk the arguments with the kernel's pattern."""
        spec = self._specs[kernel]
        stream = PATTERNS[spec.pattern](spec, arguments, gpu, self._seed + number)
        slots = self._slots(spec, gpu.spec, stream)
        cap = self._cap(spec, arguments, gpu, stream, slots)
        compute = gpu.spec.compute
        across = compute.bytes_in_flight * 1e12 / (gpu.spec.hbm.latency + gpu.link_latency_ps)
        if spec.duration is not None:
            stream.translation_ps = 0  # the given time holds it already
            across = cap
        slowdown = compute.xnack_slowdown if xnack else 1.0
        return Plan(
            stream=stream,
            slots=slots,
            cap_bytes_per_s=cap / slowdown,
            link_cap_bytes_per_s=min(cap, across) / slowdown,
        )

    @staticmethod
    def _slots(spec: KernelSpec, gpu: GpuSpec, stream: AccessStream) -> int:
        slots = gpu.compute.slots_with(spec.vgprs)
        if spec.workgroups is not None:
            slots = min(slots, spec.workgroups * -(-spec.workgroup // gpu.compute.lanes))
        return min(slots, stream.steps * stream.passes)

    @staticmethod
    def _cap(
        spec: KernelSpec, arguments: Sequence[Argument], gpu: Gpu, stream: AccessStream, slots: int
    ) -> float:
        """Bytes a second of one wavefront that nobody disturbs."""
        compute = gpu.spec.compute
        step = sum(operand.read_bytes + operand.write_bytes for operand in stream.operands)
        if spec.duration is not None:
            return step * stream.steps * stream.passes * 1e12 / spec.duration / slots
        latency = _latency(gpu.spec, arguments, spec.passes)
        cap = compute.bytes_in_flight * 1e12 / latency
        if spec.flops_per_byte is not None:
            cap = min(cap, compute.fp64 / spec.flops_per_byte / compute.slots)
        return cap


def _latency(gpu: GpuSpec, arguments: Sequence[Argument], passes: int) -> int:
    """Load-to-use latency of the level that holds the kernel's data: a cache only from the second pass on."""
    footprint = sum(argument.size for argument in arguments)
    if passes > 1 and all(argument.region.valid[0] != HOST for argument in arguments):
        held = _cache(gpu, footprint)
        if held is not None:
            return round(gpu.hbm.latency / passes + held.latency * (1.0 - 1.0 / passes))
    return gpu.hbm.latency


def _cache(gpu: GpuSpec, footprint: int) -> CacheSpec | None:
    for cache in (gpu.l2, gpu.infinity_cache):
        if cache is not None and footprint <= cache.size:
            return cache
    return None
