"""Random programs under the presets and single switches of the fault path: all end well, and the books agree.

`ack: on_success` alone is left out: a vector that the 2 ms rule drops keeps its slot for good, and programs may hang.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gpusim.errors import InputError
from tests.machine.invariants import check
from tests.machine.random_programs import programs
from tests.programs import run_inside, scenario

BIG = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
DRIVERS = (
    {"preset": "kfd-6.3"},
    {"preset": "kfd-6.8"},
    {"preset": "whitepaper"},
    {"dedup": "filter"},
    {"dedup": "filter", "service": "per_vmid"},
    {"dedup": "address_vmid"},
    {"service": "per_vmid"},
    {"throttle": "merge"},
    {"replay": "fault_done_command"},
    {"ack": "on_success", "recent_skip": "off"},
    {"unit": "range"},
)


@settings(BIG, max_examples=80)
@given(programs(), st.sampled_from(DRIVERS), st.sampled_from(["summary", "spans"]))
def test_programs_end_well_under_any_switch(program, driver, record):
    try:
        ran = run_inside(
            scenario(**program | {"driver": {**program.get("driver", {}), **driver}}), record=record
        )
    except InputError:
        event("not supported")
        return
    event(str(driver))
    assert ran.outcome in ("completed", "hip_error"), ran.data.processes
    check(ran)


@pytest.mark.parametrize("apu", ["retry_hmm", "ats_pri"])
@settings(BIG, max_examples=20)
@given(program=programs())
def test_programs_end_well_on_an_apu(apu, program):
    keys = {key: value for key, value in program.items() if key != "overrides"}
    try:
        ran = run_inside(scenario(**keys | {"node": "mi300a", "driver": {"apu": apu}}))
    except InputError:
        event("not supported")
        return
    assert ran.outcome in ("completed", "hip_error"), ran.data.processes
