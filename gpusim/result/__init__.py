"""One `Result` out of one run: numbers, tables, files, and the language that names a metric.

| file | what |
|---|---|
| `result.py` | `Result`: summary, tables, save and load, metric |
| `summary.py`, `answer.py` | the contract of `summary.json` and the one-line answer in it |
| `tables.py`, `schema.py` | DataFrames of a run, and what each of their columns means |
| `paths.py`, `expect.py` | `steps.blur[1:100].duration_ns.mean`, and expected against simulated values |
| `directory.py` | result directories that are whole or absent |
| `verify.py` | checks that any result must pass |
| `display.py` | the view in a notebook |
"""

from __future__ import annotations

from gpusim.result.result import Result

__all__ = ["Result"]
