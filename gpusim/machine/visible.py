"""What a process's environment variables mean, parsed by the rules of the runtime that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpusim.runtime.hip import Device


def visible_devices(devices: Sequence[Device], env: Mapping[str, str]) -> tuple[Device, ...]:
    """ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES: lists of numbers; the list ends at the first bad entry."""
    chosen = list(devices)
    for variable in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        text = env.get(variable)
        if text is None:
            continue
        picked: list[Device] = []
        for entry in map(str.strip, text.split(",")):
            if not entry.isdigit() or int(entry) >= len(chosen) or chosen[int(entry)] in picked:
                break
            picked.append(chosen[int(entry)])
        chosen = picked
    return tuple(chosen)
