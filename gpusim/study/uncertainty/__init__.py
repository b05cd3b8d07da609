"""How sure an answer is: what is fitted or assumed is drawn from its range, and the run repeated.

| file | what |
|---|---|
| `draws.py` | which numbers are drawn, from what distribution, and which are held |
| `ranks.py` | rank correlation and regression |
| `study.py` | the runs, the band of the answer, and the numbers that it hangs on |
"""

from __future__ import annotations

from gpusim.study.uncertainty.study import Uncertainty, uncertainty

__all__ = ["Uncertainty", "uncertainty"]
