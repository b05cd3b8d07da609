"""Paths over switches, root ports and sockets."""

import pytest

from gpusim.hardware.fabric import HOST
from tests.storage import MIB, US, Rig

UPLINK = {"down": "10GB/s", "up": "10GB/s", "coupling": 0.0}
SWITCHED = {
    "peer_efficiency": 1.0,
    "switches": [
        {"name": "a", "uplink": UPLINK, "gpus": ["gpu0"], "drives": ["nvme0"]},
        {"name": "b", "uplink": UPLINK, "drives": ["nvme1"]},
    ],
}
SOCKETS = {
    "peer_efficiency": 1.0,
    "sockets": {
        "members": [
            {"name": "s0", "gpus": ["gpu0"], "drives": ["nvme0"]},
            {"name": "s1", "gpus": ["gpu1"], "drives": ["nvme1"]},
        ],
        "rate": "3GB/s",
        "latency": "1us",
    },
}


def names(hops):
    return [name for name, _ in hops]


def test_below_one_switch_data_stay_below_it():
    fabric = Rig(2, fabric=SWITCHED).fabric
    assert names(fabric.route("nvme0", 0, write=False)) == ["gpu[0].pcie.h2d"]
    assert names(fabric.route("nvme1", 0, write=False)) == [
        "switch.b.up",
        "switch.a.down",
        "gpu[0].pcie.h2d",
    ]
    assert names(fabric.route("nvme1", 1, write=True)) == ["gpu[1].pcie.d2h", "switch.b.down"]
    assert names(fabric.route("nvme0", HOST, write=False)) == ["switch.a.up", "host.memory"]


def test_distance_grows_with_what_lies_between():
    switched, sockets = Rig(2, fabric=SWITCHED).fabric, Rig(2, fabric=SOCKETS).fabric
    assert switched.distance("nvme0", 0) < switched.distance("nvme1", 0) < sockets.distance("nvme1", 0)


def test_without_peer_to_peer_only_a_switch_connects():
    fabric = Rig(2, fabric={**SWITCHED, "peer_to_peer": False}).fabric
    assert fabric.distance("nvme0", 0) > 0
    assert fabric.distance("nvme1", 0) < 0


def test_a_copy_to_a_gpu_below_a_switch_passes_its_uplink():
    fabric = Rig(2, fabric=SWITCHED).fabric
    assert (names(fabric.host_hops(0)[0]), names(fabric.host_hops(0)[1])) == (
        ["switch.a.down"],
        ["switch.a.up"],
    )
    assert fabric.host_hops(1) == ((), ())


@pytest.mark.parametrize(("drive", "gpu", "rate"), [(0, 0, 4e9), (1, 0, 3e9), (0, 1, 3e9), (1, 1, 4e9)])
def test_the_other_socket_is_slower_and_farther(drive, gpu, rate):
    rig = Rig(2, fabric=SOCKETS)
    ends = []
    rig.disks[drive].submit(0, 16 * MIB, gpu, lambda: ends.append(rig.env.now), write=False)
    rig.run()
    latency = 80 * US if drive == gpu else 81 * US
    assert ends[0] == pytest.approx(latency + 16 * MIB / rate * 1e12, rel=1e-6)


def test_peer_to_peer_gets_a_part_of_the_gpus_link():
    """Two drives of 40 GB/s into a link of 50 GB/s, of which peer-to-peer gets four fifths."""
    fast = {"latency": "80us", "units": 8, "bandwidth": "40GB/s", "stream": "40GB/s"}
    rig = Rig(2, fabric={"peer_efficiency": 0.8}, read=fast)
    for disk in rig.disks:
        disk.submit(0, 512 * MIB, 0, lambda: None, write=False)
    assert 1024 * MIB / rig.run() * 1e12 == pytest.approx(40e9, rel=0.01)
