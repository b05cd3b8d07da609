"""Files and drives of a scenario: built from the profiles, shared by ranks, reported as links."""

import pytest

import gpusim as gs
from gpusim.engine.record import Mode
from gpusim.errors import InputError
from gpusim.machine.build import Machine
from gpusim.scenario import loader

TEXT = """
version: 1
name: files
system: {node: NODE, gpus: 1}
processes:
  - name: app
    count: COUNT
    files:
      weights: {size: 1GiB, filesystem: ext4, drive: DRIVE, cached: 25%}
      own: {size: 1GiB, filesystem: xfs, drive: "nvme${rank}"}
    threads:
      main:
        - {name: drop, drop_caches: {file: weights}}
"""


def machine(node="mi300x-7nvme", drive="nvme0", count=2, **changes):
    text = TEXT.replace("NODE", node).replace("DRIVE", drive).replace("COUNT", str(count))
    return Machine(loader.loads(text).with_(**changes), Mode.SUMMARY)


def test_ranks_share_the_files_that_they_declare_alike():
    one, other = (process.hip.files for process in machine().processes)
    assert one["weights"].inode is other["weights"].inode
    assert one["own"].inode is not other["own"].inode
    assert (one["own"].pci, other["own"].pci) == ("nvme0", "nvme1")


def test_the_cached_share_is_in_the_page_cache_and_drop_caches_empties_it():
    built = machine(count=1)
    inode = built.processes[0].hip.files["weights"].inode
    assert inode.cached * 4096 == 256 << 20
    built.start()
    built.env.run_to()
    assert inode.cached == 0


def test_stacks_are_devices_without_a_pci_device():
    file = machine("mi300x-stacks", "md0").processes[0].hip.files["weights"]
    assert file.pci is None
    assert [drive.name for drive in file.device.drives] == ["nvme0", "nvme1"]


def test_overrides_reach_into_drives_and_the_fabric():
    built = machine(overrides={"drive.nvme0.read.bandwidth": "5GB/s", "node.fabric.peer_efficiency": 0.5})
    assert built.hardware.network.link("nvme0.read").capacity == pytest.approx(5e-3)
    assert built.hardware.fabric.spec.peer_efficiency == 0.5


def test_a_drive_that_cannot_be_is_refused_with_its_place():
    with pytest.raises(InputError, match=r"overrides.drive.nvme0.coupling.*leave nothing"):
        machine(overrides={"drive.nvme0.coupling": 0.99})


def test_a_file_on_a_drive_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="'nvme9' is no drive of the node"):
        machine(drive="nvme9")


def test_drives_are_links_of_the_summary():
    result = gs.run(
        loader.loads(TEXT.replace("NODE", "h200-pcie5").replace("DRIVE", "nvme0").replace("COUNT", "1"))
    )
    assert {"nvme0.read", "nvme0.write", "gpu[0].pcie.h2d"} <= set(result.summary["links"])
    assert {"host.memory", "host.page_cache"} <= set(result.summary["resources"])


def test_a_run_with_files_says_what_file_io_leaves_out():
    text = TEXT.replace("NODE", "h200-pcie5").replace("DRIVE", "nvme0").replace("COUNT", "1")
    assert any("NVMe commands" in words for words in gs.run(loader.loads(text)).summary["not_modelled"])
