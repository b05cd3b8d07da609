"""The best of the settings that a scenario and its machine allow, how sure that is, and where it changes.

| file | what |
|---|---|
| `knob.py` | a setting that can be chosen, and the edits of the scenario that choose it |
| `program.py` | what a program does with its buffers, read off its steps |
| `discover.py` | the knobs of a scenario: which there are, and which values its machine and program allow |
| `machine.py` | what the machine can do |
| `memory_knobs.py`, `file_knobs.py` | those of paging and of file I/O |
| `space.py` | all legal combinations |
| `trials.py` | runs of combinations, with common random numbers |
| `study.py` | from a scenario to its `Recommendation` |
| `optimise.py` | all combinations where they are few, else a search |
| `crossover.py` | the values of a number of the scenario at which the best changes |
| `findings.py`, `display.py` | what `recommend` returns, and its view in a notebook |
"""

from __future__ import annotations

from gpusim.study.recommend.findings import Recommendation
from gpusim.study.recommend.study import BUDGET, GROUPS, REPLICATIONS, recommend

__all__ = ["BUDGET", "GROUPS", "REPLICATIONS", "Recommendation", "recommend"]
