"""What a node profile says about its PCIe fabric and its sockets."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Fraction, Rate, Spec


class UplinkSpec(Spec):
    """The link of a switch to its root port."""

    down: Rate = Field(gt=0, description="payload rate from the root port to the switch")
    up: Rate = Field(gt=0, description="payload rate from the switch to the root port")
    coupling: float = Field(ge=0, lt=1, description="rate one direction loses per unit of rate in the other")


class SwitchSpec(Spec):
    """A PCIe switch; what is below it reaches each other without the root port."""

    name: str = Field(description="its name: links are switch.NAME.up and switch.NAME.down")
    uplink: UplinkSpec
    gpus: tuple[str, ...] = Field(default=(), description="GPUs below it: gpu0, gpu1, ...")
    drives: tuple[str, ...] = Field(default=(), description="drives below it, by name")


class SocketSpec(Spec):
    """What has its root ports at one CPU socket."""

    name: str = Field(description="its name: links are socket.NAME.to.OTHER")
    gpus: tuple[str, ...] = Field(default=(), description="GPUs at it: gpu0, gpu1, ...")
    drives: tuple[str, ...] = Field(default=(), description="drives at it, by name")


class NumaSpec(Spec):
    """What it costs to use memory of another socket. Each socket has an equal part of the RAM and of its bandwidth."""

    thread: Fraction = Field(
        gt=0, le=1, description="rate of a CPU thread on memory of another socket over that on its own"
    )
    dma: Fraction = Field(
        gt=0, le=1, description="rate between a GPU and memory of another socket over that of its own socket"
    )


class SocketsSpec(Spec):
    """CPU sockets and the link between any two of them. What is not listed is at the first.

    Without `numa` host memory is one node, at the first socket; with it each socket is a NUMA node, numbered from 0.
    """

    members: tuple[SocketSpec, ...] = Field(min_length=2, description="the sockets")
    rate: Rate = Field(gt=0, description="payload rate of one direction between two sockets")
    latency: Duration = Field(description="added to a request whose data cross sockets")
    numa: NumaSpec | None = Field(default=None, description="memory at each socket")


class FabricSpec(Spec):
    """Switches, sockets, and what a transfer between two devices gets of a link."""

    peer_efficiency: Fraction = Field(
        gt=0,
        le=1,
        description="payload rate of peer-to-peer transfers over that of a copy engine on the GPU's link",
    )
    peer_to_peer: bool = Field(
        default=True, description="false: the host bridges forward nothing between their root ports"
    )
    switches: tuple[SwitchSpec, ...] = Field(default=(), description="PCIe switches")
    sockets: SocketsSpec | None = Field(default=None, description="CPU sockets, if there are several")
