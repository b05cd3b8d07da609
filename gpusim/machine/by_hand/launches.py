"""Kernels: faults that are served one after another, and what wavefronts need on mapped memory."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.kinds import Kind
from gpusim.machine.by_hand.case import LEAST, Candidate, Case, at_rate, quotient, together
from gpusim.quantity import format_duration_ps, format_rate, format_size

#: what wavefronts spend by themselves
_OWN = (Kind.COMPUTE, Kind.HBM, Kind.TRANSLATION, Kind.ZERO_COPY_LINK, Kind.CONTENTION)


def of_launch(case: Case) -> Iterator[Candidate]:
    """Faults alone, the kernel alone, and one after the other; which of them depends on what is on the path."""
    waves = case.share(*_OWN)
    running = list(_running(case))
    for served in _faults(case):
        if waves < 0.2:
            yield served
        if waves >= LEAST:
            for alone in running:
                yield together(served, alone)
        yield served
    yield from running


def _faults(case: Case) -> Iterator[Candidate]:
    faults = case.data.tables["faults"]
    inside = case.faults.of(case.gpu.name, case.step)
    served = int(inside.sum())
    if not served:
        return
    service = int((faults["mapped_ps"] - faults["started_ps"])[inside].sum()) // served
    window = case.driver.svm.recent_skip
    spread = _ranges_touched(case)
    together_ = f" / {spread} ranges at once" if spread > 1 else ""
    serving = format_duration_ps(service)
    skipped = int((faults["recent_skip_ps"][inside] > 0).sum())
    throwing = (case.step.attribution or {}).get(Kind.DUPLICATES, 0) // served
    if throwing > LEAST * service and 2 * skipped <= served:
        text = f"{served} faults x ({serving} of service + {format_duration_ps(throwing)} of duplicates)"
        yield text, served * (service + throwing)
    if 2 * skipped > served:
        text = f"{served} granules x ({format_duration_ps(window)} + {serving} of service){together_}"
        yield text, served * (window + service) // spread
        waits = f"{skipped} of them wait for {format_duration_ps(window)}"
        yield (
            f"{served} faults x {serving} of service + {waits}{together_}",
            (served * service + skipped * window) // spread,
        )
    yield f"{served} faults x {serving} of service, one at a time", served * service


def _ranges_touched(case: Case) -> int:
    """Registered ranges that were restored."""
    return max(
        1,
        sum(
            svm.registered and svm.validated_ps is not None
            for process in case.machine.processes
            for svm in process.hip.kfd.ranges
        ),
    )


def _running(case: Case) -> Iterator[Candidate]:
    """The slowest of what a kernel needs on mapped memory sets its pace."""
    facts = case.facts
    spec = case.machine.scenario.kernels.get(str(case.step.detail.get("kernel")))
    if spec is not None and spec.duration is not None:
        yield f"{format_duration_ps(spec.duration)}, which the scenario gives", spec.duration
    if not facts.get("bytes"):
        return
    slowest = max(_paces(case), key=lambda candidate: candidate[1])
    if case.share(Kind.WAVE_SLOTS) >= LEAST:
        beside = _at_once(case)
        yield f"{slowest[0]} x {beside:.3g} kernels at once", round(slowest[1] * beside)
    yield slowest
    if case.share(Kind.ZERO_COPY_LINK) >= LEAST:
        yield from _zero_copy(case)


def _at_once(case: Case) -> float:
    """Kernels on the step's GPU while it ran, in the mean, itself among them."""
    step, gpu = case.step, case.facts["gpu"]
    overlaps = (
        min(other.end_ps, step.end_ps) - max(other.start_ps, step.start_ps)
        for other in case.data.steps
        if other.facts.get("gpu") == gpu and other.start_ps < step.end_ps and other.end_ps > step.start_ps
    )
    return sum(overlaps) / case.length_ps


def _paces(case: Case) -> Iterator[Candidate]:
    facts = case.facts
    steps, slots, size = facts["steps"], facts["slots"], round(facts["bytes"])
    moving = quotient(size, slots * facts["cap"])
    added = round(steps * facts["translation_ps"] / slots)
    text = f"{format_size(size)} / ({slots} wavefronts x {format_rate(facts['cap'])})"
    if added > LEAST * moving:
        text += f" + {steps} steps x {format_duration_ps(round(facts['translation_ps']))} of translation"
        text += f" / {slots} wavefronts" if slots > 1 else ""
    yield text, moving + added
    if facts["hbm_bytes"]:
        yield at_rate(round(facts["hbm_bytes"]), case.gpu.spec.hbm.bandwidth, "HBM")
    if facts["walked_ps"]:
        reads = facts["table_reads"] * steps
        text = f"{reads:.4g} page-table reads, {facts['walked_ps'] / facts['table_reads'] / 1000:.3g} ns each"
        yield f"{text} with all walkers at work", round(steps * facts["walked_ps"])
    if facts["serial_ps"]:
        yield _atomics(case)


def _atomics(case: Case) -> Candidate:
    facts = case.facts
    spec = case.machine.scenario.kernels[str(case.step.detail["kernel"])]
    atomic = case.gpu.spec.atomic
    one = atomic.coherent if facts["coherent"] else atomic.near
    whole = round(facts["serial_ps"] * facts["steps"])
    if spec.lines is None:
        return f"{facts['steps']} steps x {format_duration_ps(round(facts['serial_ps']))} of atomics", whole
    count = round(whole * spec.lines / one)
    return f"{count} atomics x {format_duration_ps(one)} / {spec.lines} lines", whole


def _zero_copy(case: Case) -> Iterator[Candidate]:
    """The direction that takes longer; what moves the other way slows it down."""
    spec, link = case.gpu.spec.zero_copy, case.gpu.link
    read, written = case.facts["read_bytes"], case.facts["write_bytes"]
    up, down = read / spec.read_efficiency, written / spec.write_efficiency  # in bytes of a copy engine
    ways = (
        ("read", "written", "h2d", read, up, down, spec.read_efficiency),
        ("written", "read", "d2h", written, down, up, spec.write_efficiency),
    )
    for word, other, way, size, own, back, efficiency in sorted(ways, key=lambda way: -way[4]):
        if size:
            rate = case.link(way)
            text = f"{format_size(round(size))} {word} / {format_rate(rate * efficiency)} across the link"
            if back:
                text += f" x (1 + {link.coupling:g} for what is {other} meanwhile)"
            yield text, quotient(own + link.coupling * back, rate)
