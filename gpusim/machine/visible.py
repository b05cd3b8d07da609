"""What a process's environment variables mean, parsed by the rules of the runtime that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

DeviceT = TypeVar("DeviceT")


def visible_devices(devices: Sequence[DeviceT], env: Mapping[str, str]) -> tuple[DeviceT, ...]:
    """ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES: lists of numbers; the list ends at the first bad entry."""
    chosen = list(devices)
    for variable in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        text = env.get(variable)
        if text is None:
            continue
        picked: list[DeviceT] = []
        for entry in map(str.strip, text.split(",")):
            if not entry.isdigit() or int(entry) >= len(chosen) or chosen[int(entry)] in picked:
                break
            picked.append(chosen[int(entry)])
        chosen = picked
    return tuple(chosen)


def copy_engines(env: Mapping[str, str]) -> tuple[bool, bool]:
    """Do copy engines serve copies with the host, and between GPUs? As ROCr reads its two variables: 0 says no.

    HSA_ENABLE_SDMA=0 turns all copies into blit kernels, HSA_ENABLE_PEER_SDMA=0 those between GPUs.
    """
    every = env.get("HSA_ENABLE_SDMA", "").strip() != "0"
    return every, every and env.get("HSA_ENABLE_PEER_SDMA", "").strip() != "0"


def locks_from(env: Mapping[str, str]) -> int | None:
    """GPU_PINNED_MIN_XFER_SIZE in KiB, as bytes, at most 32 MiB: pageable copies from there on lock their memory.

    None where it is not set: the measured rates of pageable copies, to which the model is fitted, are those of staging.
    """
    text = env.get("GPU_PINNED_MIN_XFER_SIZE", "").strip()
    return min(int(text) << 10, 32 << 20) if text.isdigit() else None
