"""The PCIe fabric: root ports, switches and sockets as links of the network, and the paths over them."""

from __future__ import annotations

from gpusim.engine.flows import Hop, Network
from gpusim.hardware.fabric_spec import FabricSpec, SwitchSpec

#: where a path ends that ends in host memory
HOST = -1
HOST_MEMORY = "host.memory"

Place = tuple[SwitchSpec | None, int]  # the switch above a device, if any, and its socket


class Fabric:
    """Paths between drives, GPUs and host memory, as hops in the network.

    A transfer between devices below one switch stays there; any other goes up to the root port, to the other socket
    if need be, and down again. The GPU's own link is `gpu[i].pcie.h2d` towards it. Host memory is at the first socket,
    or, with `numa`, at each: NUMA node i is that of socket i. Threads run at the first one, and what nobody places lies
    there: the page cache and the buffers of HIP.

    Left out: packets and credits, root complexes with several host bridges inside a socket, ACS and IOMMU settings.
    """

    def __init__(self, spec: FabricSpec, network: Network) -> None:
        self.spec = spec
        self.link_names: list[str] = []
        for switch in spec.switches:
            up, down = f"switch.{switch.name}.up", f"switch.{switch.name}.down"
            uplink = switch.uplink
            network.add_link(up, capacity_bytes_per_s=uplink.up, reverse=down, coupling=uplink.coupling)
            network.add_link(down, capacity_bytes_per_s=uplink.down, reverse=up, coupling=uplink.coupling)
            self.link_names += [up, down]
        self._sockets = spec.sockets.members if spec.sockets is not None else ()
        self.numa = spec.sockets.numa if spec.sockets is not None else None
        self.numa_nodes = len(self._sockets) if self.numa is not None else 1
        for one in self._sockets:
            for other in self._sockets:
                if one is not other and spec.sockets is not None:
                    name = f"socket.{one.name}.to.{other.name}"
                    network.add_link(name, capacity_bytes_per_s=spec.sockets.rate)
                    self.link_names.append(name)

    def place_of_gpu(self, index: int) -> Place:
        name = f"gpu{index}"
        above = next((switch for switch in self.spec.switches if name in switch.gpus), None)
        at = next((number for number, socket in enumerate(self._sockets) if name in socket.gpus), 0)
        return above, at

    def place_of_drive(self, name: str) -> Place:
        above = next((switch for switch in self.spec.switches if name in switch.drives), None)
        at = next((number for number, socket in enumerate(self._sockets) if name in socket.drives), 0)
        return above, at

    def host_hops(self, gpu: int, numa: int = 0) -> tuple[tuple[Hop, ...], tuple[Hop, ...]]:
        """What copies between a NUMA node's memory and a GPU pass besides the GPU's own link: towards it, and back."""
        place = self.place_of_gpu(gpu)
        return self.between((None, numa), place), self.between(place, (None, numa))

    def far_memory(self, gpu: int, numa: int) -> tuple[float, int]:
        """Of the rate of a GPU's own link, what memory of a NUMA node leaves, and the latency that it adds."""
        sockets = self.spec.sockets
        if self.numa is None or sockets is None or self.place_of_gpu(gpu)[1] == numa:
            return 1.0, 0
        return self.numa.dma, sockets.latency

    def memory_of(self, numa: int) -> str:
        """The memory of a NUMA node, as a link of the network."""
        return HOST_MEMORY if numa == 0 else f"{HOST_MEMORY}[{numa}]"

    def from_threads(self, numa: int, *, write: bool) -> tuple[tuple[Hop, ...], float]:
        """Between a CPU thread and a NUMA node's memory: hops besides the memory, and what is left of its rate."""
        if self.numa is None or numa == 0:
            return (), 1.0
        here, there = (None, 0), (None, numa)
        return (self.between(here, there) if write else self.between(there, here)), self.numa.thread

    def route(self, drive: str, target: int, *, write: bool) -> tuple[Hop, ...]:
        """The hops between a drive's own link and host memory (HOST) or a GPU; `write`: towards the drive."""
        here = self.place_of_drive(drive)
        if target == HOST:
            there: Place = (None, 0)
            end: tuple[Hop, ...] = ((HOST_MEMORY, 1.0),)
        else:
            there = self.place_of_gpu(target)
            end = ((f"gpu[{target}].pcie.{'d2h' if write else 'h2d'}", 1.0 / self.spec.peer_efficiency),)
        if write:
            return (*end, *self.between(there, here))
        return (*self.between(here, there), *end)

    def distance(self, drive: str, gpu: int) -> int:
        """How far a drive is from a GPU: below one switch 2, over root ports 4, over sockets 6; -1: no way."""
        here, there = self.place_of_drive(drive), self.place_of_gpu(gpu)
        if here[0] is not None and here[0] is there[0]:
            return 2
        if not self.spec.peer_to_peer:
            return -1
        return 4 if here[1] == there[1] else 6

    def delay_ps(self, drive: str, target: int) -> int:
        """Added to a request whose data cross sockets."""
        sockets = self.spec.sockets
        if sockets is None:
            return 0
        there = 0 if target == HOST else self.place_of_gpu(target)[1]
        return 0 if self.place_of_drive(drive)[1] == there else sockets.latency

    def between(self, here: Place, there: Place) -> tuple[Hop, ...]:
        """Switches and sockets on the way from one place to another."""
        if here[0] is not None and here[0] is there[0]:
            return ()
        hops: list[Hop] = []
        if here[0] is not None:
            hops.append((f"switch.{here[0].name}.up", 1.0))
        if here[1] != there[1]:
            names = self._sockets[here[1]].name, self._sockets[there[1]].name
            hops.append(("socket.{}.to.{}".format(*names), 1.0))
        if there[0] is not None:
            hops.append((f"switch.{there[0].name}.down", 1.0))
        return tuple(hops)
