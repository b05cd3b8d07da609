"""GPU families: how XNACK can be had on each, and why not where it cannot (`kfd_svm.md` 1.8).

By gfx target. Sources: amdkfd, kfd_process_xnack_mode and amdgpu_gmc_noretry_set; LLVM AMDGPUUsage, xnack feature.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.hardware.gpu_spec import XnackSupport


@dataclass(frozen=True, slots=True)
class Family:
    """`targets` begin the gfx names of its parts. `compiler` says whether code can be built xnack+ for it."""

    name: str
    targets: tuple[str, ...]
    support: XnackSupport
    compiler: bool
    why: str
    retry_by_default: bool = False  # amdgpu.noretry=-1 leaves retry faults on


_BOOT = "XNACK follows the module parameter amdgpu.noretry at boot, not the process"
_PREEMPTION = "a shader cannot be preempted while its page fault is served"

FAMILIES = (
    Family(
        "Carrizo and Stoney",
        ("gfx801", "gfx810"),
        XnackSupport.NEVER,
        True,
        "KFD considers GFX9 and later only",
    ),
    Family("Vega 10", ("gfx900",), XnackSupport.BOOT, True, _BOOT),
    Family("Vega 12", ("gfx904",), XnackSupport.BOOT, True, _BOOT, retry_by_default=True),
    Family("Vega 20", ("gfx906",), XnackSupport.BOOT, True, _BOOT),
    Family("MI100", ("gfx908",), XnackSupport.BOOT, True, _BOOT),
    Family(
        "Raven and Renoir",
        ("gfx902", "gfx909", "gfx90c"),
        XnackSupport.BOOT,
        True,
        _BOOT,
        retry_by_default=True,
    ),
    Family("MI200", ("gfx90a",), XnackSupport.PER_PROCESS, True, "each process has a mode"),
    Family(
        "MI300", ("gfx940", "gfx941", "gfx942"), XnackSupport.PER_PROCESS, True, "each process has a mode"
    ),
    Family("MI350", ("gfx950",), XnackSupport.PER_PROCESS, True, "each process has a mode"),
    Family("RDNA 1", ("gfx101", "gfx10-1"), XnackSupport.NEVER, True, _PREEMPTION),
    Family("RDNA 2", ("gfx103",), XnackSupport.NEVER, False, _PREEMPTION),
    Family("RDNA 3", ("gfx11",), XnackSupport.NEVER, False, _PREEMPTION),
    Family("RDNA 4", ("gfx12",), XnackSupport.NEVER, False, _PREEMPTION),
)


def family_of(gfx: str) -> Family | None:
    """The family of a gfx target; None for what is not an AMD target that is listed."""
    return next((family for family in FAMILIES if gfx.startswith(family.targets)), None)


def retry_allowed(gfx: str, support: XnackSupport, noretry: int) -> bool:
    """Does the driver leave retry faults on, by amdgpu.noretry (-1: by family, 0: on, 1: off)?"""
    if support is XnackSupport.NEVER:
        return False
    if noretry >= 0:
        return noretry == 0
    family = family_of(gfx)
    return family is not None and family.retry_by_default


def refusal(gpu: str, gfx: str, support: XnackSupport, noretry: int) -> str | None:
    """Why a process with this GPU cannot switch XNACK on; None if it can."""
    if support is XnackSupport.PER_PROCESS:
        return None
    family = family_of(gfx)
    name = f"{gpu} ({gfx}{', ' + family.name if family else ''})"
    if support is XnackSupport.NEVER:
        why = (
            family.why
            if family is not None and family.support is XnackSupport.NEVER
            else "it has no retry faults"
        )
        return f"{name} cannot retry faults: {why}"
    if retry_allowed(gfx, support, noretry):
        return None
    return f"{name}: {_BOOT}, and it is off; boot with amdgpu.noretry=0"
