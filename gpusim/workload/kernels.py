"""From a kernel's description to what it does on a GPU: its accesses, its wavefronts, and one wavefront's rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpu_spec import GpuSpec
from gpusim.hardware.gpuvm import LOCAL
from gpusim.runtime.launch import Argument, Plan
from gpusim.workload.kernel import KernelSpec, Pattern, XnackMode
from gpusim.workload.patterns import PATTERNS
from gpusim.workload.patterns.atomics import mark_atomics
from gpusim.workload.patterns.base import PatternStream
from gpusim.workload.patterns.code import WithCode
from gpusim.workload.patterns.pointer_chase import chasers
from gpusim.workload.patterns.trace import traced
from gpusim.workload.trace_file import read_trace


class Kernels:
    """The kernels of a scenario. `grouped` is false in the step-by-step mode."""

    def __init__(
        self, specs: Mapping[str, KernelSpec], *, grouped: bool, seed: int, folder: Path = Path()
    ) -> None:
        self._specs = dict(specs)
        self.grouped = grouped
        self._seed = seed
        self._traces = {
            name: read_trace(spec.file, folder) for name, spec in specs.items() if spec.file is not None
        }

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

    def asked_bytes(self, kernel: str, walked: int, lanes: int) -> int:
        """Bytes that its lanes ask for; `walked` is what one walk through its buffers reads and writes."""
        spec = self._specs[kernel]
        if spec.accesses is not None:
            return spec.accesses * spec.bytes_per_lane * chasers(spec, lanes) * spec.passes
        if spec.pattern is Pattern.TRACE:
            waves = self._traces[kernel].get(kernel, {})
            return sum(map(len, waves.values())) * lanes * spec.bytes_per_lane
        return walked * spec.passes

    def plan(self, kernel: str, arguments: Sequence[Argument], gpu: Gpu, *, xnack: bool, number: int) -> Plan:
        """Walk the arguments with the kernel's pattern."""
        spec = self._specs[kernel]
        code = [argument.region for argument in arguments if argument.execute]
        arguments = [argument for argument in arguments if not argument.execute]
        stream: PatternStream
        if spec.pattern is Pattern.TRACE:
            stream = traced(kernel, spec, self._traces[kernel], arguments, gpu)
        else:
            stream = PATTERNS[spec.pattern](spec, arguments, gpu, self._seed + number)
        stream.serial_ps = mark_atomics(spec, arguments, stream, gpu.spec)
        if code:
            stream = WithCode(stream, code)
        compute = gpu.spec.compute
        slots = self._slots(spec, gpu.spec, stream, xnack)
        in_flight = stream.in_flight_bytes
        across = in_flight * 1e12 / (gpu.spec.hbm.latency + gpu.link_latency_ps)
        _weigh(stream, gpu.spec)
        served = stream.served
        if spec.duration is not None:
            stream.translation_ps = 0  # the given time holds it already
            stream.table_reads = 0.0
            step = sum(operand.read_bytes + operand.write_bytes for operand in stream.operands)
            cap = across = step * stream.steps * stream.passes * 1e12 / spec.duration / slots
        else:
            cap = served.rate(in_flight, slots)
            if spec.flops_per_byte is not None:
                cap = min(cap, compute.fp64 / spec.flops_per_byte / compute.slots)
        slowdown = compute.xnack_slowdown if xnack else 1.0
        return Plan(
            stream=stream,
            slots=slots,
            cap_bytes_per_s=cap / slowdown,
            link_cap_bytes_per_s=min(cap, across) / slowdown,
            hbm_share=served.hbm,
        )

    @staticmethod
    def _slots(spec: KernelSpec, gpu: GpuSpec, stream: PatternStream, xnack: bool) -> int:
        slots = gpu.compute.slots_with(spec.vgprs, xnack=xnack)
        if spec.workgroups is not None:
            slots = min(slots, spec.workgroups * -(-spec.workgroup // gpu.compute.lanes))
        if stream.waves is not None:
            slots = min(slots, stream.waves)
        return min(slots, stream.steps * stream.passes)


def _weigh(stream: PatternStream, gpu: GpuSpec) -> None:
    """On an APU, memory of CPU allocators is reached through the coherent path, at rates of its own."""
    if gpu.apu is None:
        return
    for operand in stream.operands:
        if operand.region.valid[0] != LOCAL:
            operand.read_cost = gpu.hbm.bandwidth / gpu.apu.host_read
            operand.write_cost = gpu.hbm.bandwidth / gpu.apu.host_write
