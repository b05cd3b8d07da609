"""What every server of faults is given: the clock, and where it reports what it does."""

from __future__ import annotations

from typing import NamedTuple

from gpusim.driver.events import EventLog
from gpusim.driver.fault_log import FaultLog
from gpusim.engine.environment import Environment
from gpusim.engine.record import Recorder


class Reporting(NamedTuple):
    """Clock, spans, fault lives and KFD events of one run."""

    env: Environment
    recorder: Recorder
    faults: FaultLog
    events: EventLog
