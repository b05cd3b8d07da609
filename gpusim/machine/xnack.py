"""The XNACK mode that a process starts with (`kfd_svm.md` 1.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpusim.hardware.families import refusal, retry_allowed
from gpusim.hardware.gpu_spec import GpuSpec


@dataclass(frozen=True, slots=True)
class XnackStart:
    """`enabled` is the mode; `refused` says why it cannot be on, if a GPU of the process stands against it."""

    enabled: bool
    refused: str
    asked: bool


def xnack_at_start(env: Mapping[str, str], gpus: Sequence[tuple[str, GpuSpec]], noretry: int) -> XnackStart:
    """HSA_XNACK as ROCr reads it: 0 or 1 asks the driver; unset or anything else leaves the driver's default.

    The default is on only if every GPU of the process retries faults by amdgpu.noretry. One GPU that cannot retry
    disables XNACK for the process, whatever the others can.
    """
    asked = env.get("HSA_XNACK", "").strip()
    against = [
        why for name, spec in gpus if (why := refusal(name, spec.gfx, spec.xnack, noretry)) is not None
    ]
    default = bool(gpus) and all(retry_allowed(spec.gfx, spec.xnack, noretry) for _, spec in gpus)
    enabled = default
    if asked in ("0", "1"):
        enabled = asked == "1" and bool(gpus) and not against
    return XnackStart(enabled, against[0] if against else "", asked == "1")
