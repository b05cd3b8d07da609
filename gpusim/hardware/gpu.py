"""One GPU: its parts, and the hand-out of wavefront slots to the kernels in flight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Hop, Network
from gpusim.engine.record import Recorder, Snapshot
from gpusim.engine.server import Server
from gpusim.hardware.caches import Caches
from gpusim.hardware.dispatch import Dispatch
from gpusim.hardware.engine_use import EngineUse
from gpusim.hardware.fabric import Fabric
from gpusim.hardware.gpu_spec import GpuSpec, LinkSpec
from gpusim.hardware.gpuvm import HOST, PEER, Vm, host_state
from gpusim.hardware.memory import Memory
from gpusim.hardware.retry import InterruptListener, RetryUnit
from gpusim.hardware.translation import Translation
from gpusim.hardware.vmids import Vmids
from gpusim.hardware.wavefronts import Wave
from gpusim.hardware.xgmi import Xgmi
from gpusim.kinds import Kind


@dataclass(frozen=True, slots=True)
class HostWays:
    """Ways between a GPU and the memory of one NUMA node, as its copy engines and its wavefronts use them."""

    h2d: tuple[Hop, ...]
    d2h: tuple[Hop, ...]
    reads: tuple[Hop, ...]
    writes: tuple[Hop, ...]


class Gpu:
    """A device as its node builds it. `link` is the prefix of its host link's names in the network."""

    def __init__(
        self,
        spec: GpuSpec,
        *,
        index: int,
        env: Environment,
        recorder: Recorder,
        network: Network,
        link: str,
        link_spec: LinkSpec,
        interrupt_ps: int,
        listener: InterruptListener,
        retry: type[RetryUnit] = RetryUnit,
        random: np.random.Generator,
    ) -> None:
        self.spec = spec
        self.index = index
        self.name = f"gpu[{index}]"
        self.env = env
        self.recorder = recorder
        self.network = network
        self.link = link_spec
        self.link_latency_ps = link_spec.latency
        #: from a miss to the start of the fault worker behind an empty ring
        self.delivery_ps = spec.retry.delivery + interrupt_ps
        self.interrupt_ps = interrupt_ps
        self.hbm = Memory(env, f"{self.name}.hbm", capacity_bytes_per_s=spec.hbm.bandwidth)
        self.caches = Caches(spec)
        self.translation = Translation(
            spec.utcl1,
            spec.utcl2,
            spec.walker,
            compute_units=spec.compute.compute_units,
            xcds=spec.compute.xcds,
        )
        self.retry = retry(spec.retry, env=env, listener=listener, random=random)
        self.sdma = Server(env, f"{self.name}.sdma", lanes=spec.sdma.engines)
        self.engines = EngineUse(f"{self.name}.sdma", spec.sdma.engines)
        self._link = link
        self.h2d: tuple[Hop, ...] = ((f"{link}.h2d", 1.0),)
        self.d2h: tuple[Hop, ...] = ((f"{link}.d2h", 1.0),)
        pace = recorder.pace(Kind.ZERO_COPY_LINK)
        #: of the links' payload rate, what loads and stores of wavefronts get
        self._efficiency = (spec.zero_copy.read_efficiency / pace, spec.zero_copy.write_efficiency / pace)
        self.zero_copy_reads: tuple[Hop, ...] = ((f"{link}.h2d", 1.0 / self._efficiency[0]),)
        self.zero_copy_writes: tuple[Hop, ...] = ((f"{link}.d2h", 1.0 / self._efficiency[1]),)
        #: by NUMA node; the four above are those of the first
        self.host_ways: list[HostWays] = [
            HostWays(self.h2d, self.d2h, self.zero_copy_reads, self.zero_copy_writes)
        ]
        #: ways to memory behind links, by where it lies (states of `gpuvm`); `add_peer` adds those of other GPUs
        self.far_reads: dict[int, tuple[Hop, ...]] = {HOST: self.zero_copy_reads}
        self.far_writes: dict[int, tuple[Hop, ...]] = {HOST: self.zero_copy_writes}
        #: what latency leaves of a wavefront's rate across the CPU link, where another way is longer or shorter
        self.far_pace: dict[tuple[Hop, ...], float] = {}
        #: ways of copies to other GPUs, by their number: of a copy engine, and of a blit kernel
        self.copies_to: dict[int, tuple[tuple[Hop, ...], tuple[Hop, ...]]] = {}
        #: critical path of whoever maps pages right now, for the wavefronts that this releases
        self.releasing: Snapshot = ([0] * recorder.kinds, 0)
        self.wave_steps = 0
        self.expected_reads = 0.0  # page-table reads of kernels, beside those that the walkers have counted
        self.vmids = Vmids(spec.vmids)
        self._dispatches: list[Dispatch] = []
        self._waiting: list[tuple[Dispatch, Snapshot, int]] = []  # for a VMID, since when

    def below(self, fabric: Fabric) -> None:
        """What lies between its link and host memory: a switch, another socket."""
        del self.host_ways[:]
        for numa in range(fabric.numa_nodes):
            down, up = fabric.host_hops(self.index, numa)
            left, latency = fabric.far_memory(self.index, numa)
            ways = self._host_ways(down, up, left)
            self.host_ways.append(ways)
            state = host_state(numa)
            self.far_reads[state], self.far_writes[state] = ways.reads, ways.writes
            if latency:
                at_home = self.spec.hbm.latency + self.link.latency
                for way in (ways.reads, ways.writes):
                    self.far_pace[way] = at_home / (at_home + latency)
        first = self.host_ways[0]
        self.h2d, self.d2h = first.h2d, first.d2h
        self.zero_copy_reads, self.zero_copy_writes = first.reads, first.writes

    def _host_ways(self, down: tuple[Hop, ...], up: tuple[Hop, ...], left: float) -> HostWays:
        """`left` is what distance leaves of the rate of its own link."""
        reads, writes = self._efficiency
        h2d, d2h = (f"{self._link}.h2d", 1.0 / left), (f"{self._link}.d2h", 1.0 / left)
        return HostWays(
            h2d=(*down, h2d),
            d2h=(d2h, *up),
            reads=_at((*down, h2d), reads),
            writes=_at((d2h, *up), writes),
        )

    def add_peer(self, other: Gpu, xgmi: Xgmi, fabric: Fabric) -> None:
        """Another GPU of the node: over xGMI where there is a way, else through the root complex."""
        here, there = self.index, other.index
        if xgmi.same_hive(here, there):
            faster = 1.0 / self.recorder.pace(Kind.ZERO_COPY_LINK)
            self.far_reads[PEER + there] = _at(xgmi.path(there, here, engine=False), faster)
            self.far_writes[PEER + there] = _at(xgmi.path(here, there, engine=False), faster)
            at_host = self.spec.hbm.latency + self.link.latency
            pace = at_host / (self.spec.hbm.latency + xgmi.latency_ps(here, there))
            for way in (self.far_reads[PEER + there], self.far_writes[PEER + there]):
                self.far_pace[way] = pace
            self.copies_to[there] = (
                xgmi.path(here, there, engine=True),
                xgmi.path(here, there, engine=False),
            )
            return
        reads, writes = self._efficiency
        to, back = self._over_pcie(other, fabric), other._over_pcie(self, fabric)
        self.far_reads[PEER + there] = _at(back, reads)
        self.far_writes[PEER + there] = _at(to, writes)
        self.copies_to[there] = (to, self.far_writes[PEER + there])

    def _over_pcie(self, other: Gpu, fabric: Fabric) -> tuple[Hop, ...]:
        """The way of data to another GPU: its own link, the fabric between, the other's link."""
        between = fabric.between(fabric.place_of_gpu(self.index), fabric.place_of_gpu(other.index))
        return ((f"{self._link}.d2h", 1.0), *between, (f"{other._link}.h2d", 1.0))

    def counters(self) -> dict[str, int]:
        """What its translation has done. Reads of closed forms are means."""
        looked_up = self.translation.counts()["table_reads"]
        return {
            "table_reads": looked_up + round(self.expected_reads),
            "vmids_taken_over": self.vmids.taken_over,
        }

    def start(self, dispatch: Dispatch, base: Snapshot) -> None:
        """Let a kernel begin, once its process has a VMID; those in flight share the slots equally."""
        before = self.vmids.taken_over
        if not self.vmids.take(dispatch.vm):
            self._waiting.append((dispatch, base, self.env.now))
            return
        if self.vmids.taken_over != before:
            self.translation.flush()  # of the entries of whoever had the VMID
        self._dispatches.append(dispatch)
        self._share_out(None)
        dispatch.start(base)

    def done_by(self, vm: Vm) -> int:
        """Wave steps and accesses of engines in an address space that have completed so far.

        Those of a stretch in flight count at its end.
        """
        return vm.steps_done + vm.engine_accesses + sum(d.steps_done for d in self._dispatches if d.vm is vm)

    def ended(self, dispatch: Dispatch, path: Snapshot | None) -> None:
        """A kernel has ended, or was killed (no path): its slots go to the others, who go on from its path."""
        self._dispatches.remove(dispatch)
        self.vmids.end(dispatch.vm)
        if self._dispatches:
            self.env.call_at(self.env.now, lambda: self._share_out(path))
        if self._waiting:
            self.env.call_at(self.env.now, lambda: self._start_waiting(path))

    def _start_waiting(self, path: Snapshot | None) -> None:
        """A VMID may have become free: kernels that wait for one begin, first come, first served."""
        waiting, self._waiting = self._waiting, []
        for dispatch, base, since_ps in waiting:
            if dispatch.dead:
                continue
            if path is None:  # nobody's path leads here: it waited by itself
                sums = base[0].copy()
                sums[Kind.WAVE_SLOTS] += self.env.now - since_ps
                released: Snapshot = (sums, base[1])
            else:
                released = path
            self.start(dispatch, released)

    def slot_freed(self, dispatch: Dispatch, wave: Wave) -> None:
        """A wavefront of `dispatch` has retired: another kernel that is below its share may use the slot."""
        if len(self._dispatches) < 2:
            return
        for other in self._dispatches:
            if other is not dispatch and other.in_flight < other.share:
                other.fill(wave.path())
                return

    def _share_out(self, base: Snapshot | None) -> None:
        """Equal shares of the slots; what one kernel cannot use goes to the others."""
        left = self.spec.compute.slots
        waiting = sorted(self._dispatches, key=_slots)
        for position, dispatch in enumerate(waiting):
            share = min(dispatch.slots, left // (len(waiting) - position))
            left -= share
            dispatch.set_share(share, base)

    def kill(self, vm: Vm) -> None:
        """All wavefronts of an address space die."""
        vm.dead = True
        for dispatch, _, _ in self._waiting:
            if dispatch.vm is vm:
                dispatch.dead = True
        for dispatch in [dispatch for dispatch in self._dispatches if dispatch.vm is vm]:
            dispatch.kill()
        for region in vm.regions.values():
            region.drop_waiters()


def _at(way: tuple[Hop, ...], efficiency: float) -> tuple[Hop, ...]:
    """A way as one uses it who gets that much payload out of its links."""
    return tuple((name, cost / efficiency) for name, cost in way)


def _slots(dispatch: Dispatch) -> int:
    return dispatch.slots
