"""The switches of the driver model: each is a named alternative, never an `if` on a model's name."""

from __future__ import annotations

from enum import StrEnum


class Dedup(StrEnum):
    """What recognises a fault that is on its way already."""

    CAM = "cam"
    FILTER = "filter"
    ADDRESS_VMID = "address_vmid"


class Ack(StrEnum):
    """When the CAM slot of a vector is freed."""

    ALWAYS = "always"
    ON_SUCCESS = "on_success"


class Replay(StrEnum):
    """What lets a waiting access go on."""

    RETRY_UNTIL_VALID = "retry_until_valid"
    FAULT_DONE_COMMAND = "fault_done_command"


class Placement(StrEnum):
    """How the location of a page is chosen."""

    KFD = "kfd"
    PREFERRED_IS_NODE = "preferred_is_node"


class Service(StrEnum):
    """How many faults of a GPU are served at once."""

    ONE_WORKER = "one_worker"
    PER_VMID = "per_vmid"


class Unit(StrEnum):
    """What one fault migrates and maps."""

    PAGE = "page"
    GRANULE = "granule"
    RANGE = "range"


class RecentSkip(StrEnum):
    """Whether faults of a range that was restored less than 2 ms ago are dropped."""

    ON = "2ms"
    OFF = "off"


class Apu(StrEnum):
    """How an APU resolves faults."""

    RETRY_HMM = "retry_hmm"
    ATS_PRI = "ats_pri"


class PeerMigration(StrEnum):
    """How pages go from one GPU to another."""

    THROUGH_RAM = "through_ram"
    DIRECT = "direct"


class Throttle(StrEnum):
    """What happens to many faults at once."""

    NONE = "none"
    MERGE = "merge"


class Hmm(StrEnum):
    """Whether the HMM walk may sleep."""

    MAY_SLEEP = "may_sleep"
    NON_BLOCKING = "non_blocking"


class XnackSwitch(StrEnum):
    """When a process may change its XNACK mode."""

    WHEN_NO_QUEUES = "when_no_queues"
    NEVER = "never"


#: switch -> values that this version simulates; the others are legal, and answered with "not supported yet"
SUPPORTED: dict[str, frozenset[str]] = {
    "dedup": frozenset({"cam", "filter", "address_vmid"}),
    "ack": frozenset({"always", "on_success"}),
    "replay": frozenset({"retry_until_valid", "fault_done_command"}),
    "placement": frozenset({"kfd", "preferred_is_node"}),
    "service": frozenset({"one_worker", "per_vmid"}),
    "unit": frozenset({"page", "granule", "range"}),
    "recent_skip": frozenset({"2ms", "off"}),
    "apu": frozenset({"retry_hmm", "ats_pri"}),
    "peer_migration": frozenset({"through_ram", "direct"}),
    "throttle": frozenset({"none", "merge"}),
    "hmm": frozenset({"may_sleep", "non_blocking"}),
    "xnack_switch": frozenset({"when_no_queues", "never"}),
}

#: presets: `profiles/drivers/*.yaml`
PRESETS = ("kfd-6.12", "kfd-6.8", "kfd-6.3", "whitepaper")
PRESETS_SUPPORTED = frozenset(PRESETS)
