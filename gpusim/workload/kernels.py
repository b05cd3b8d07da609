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
        compute = gpu.spec.compute
        slots = self._slots(spec, gpu.spec, stream)
        in_flight = min(compute.bytes_in_flight, compute.lanes * spec.bytes_per_lane) * 1e12
        across = in_flight / (gpu.spec.hbm.latency + gpu.link_latency_ps)
        held = _held(gpu.spec, arguments, spec.passes)
        hbm_share = 1.0 if held is None else 1.0 / spec.passes
        if spec.duration is not None:
            stream.translation_ps = 0  # the given time holds it already
            step = sum(operand.read_bytes + operand.write_bytes for operand in stream.operands)
            cap = across = step * stream.steps * stream.passes * 1e12 / spec.duration / slots
        else:
            cap = in_flight / gpu.spec.hbm.latency
            if held is not None:  # the first pass comes from HBM, the others from the cache
                again = min(in_flight / held.latency, held.bandwidth / slots)
                cap = spec.passes / (1.0 / cap + (spec.passes - 1) / again)
            if spec.flops_per_byte is not None:
                cap = min(cap, compute.fp64 / spec.flops_per_byte / compute.slots)
        slowdown = compute.xnack_slowdown if xnack else 1.0
        return Plan(
            stream=stream,
            slots=slots,
            cap_bytes_per_s=cap / slowdown,
            link_cap_bytes_per_s=min(cap, across) / slowdown,
            hbm_share=hbm_share,
        )

    @staticmethod
    def _slots(spec: KernelSpec, gpu: GpuSpec, stream: AccessStream) -> int:
        slots = gpu.compute.slots_with(spec.vgprs)
        if spec.workgroups is not None:
            slots = min(slots, spec.workgroups * -(-spec.workgroup // gpu.compute.lanes))
        return min(slots, stream.steps * stream.passes)


def _held(gpu: GpuSpec, arguments: Sequence[Argument], passes: int) -> CacheSpec | None:
    """The cache that serves a kernel from its second pass on: the first level that holds all of its local data."""
    if passes < 2 or any(argument.region.valid[0] == HOST for argument in arguments):
        return None
    footprint = sum(argument.size for argument in arguments)
    for cache in (gpu.l2, gpu.infinity_cache):
        if cache is not None and footprint <= cache.size:
            return cache
    return None
