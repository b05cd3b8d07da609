"""Notebooks are committed without outputs: they are executed in the tests, and diffs stay readable."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("**/*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_a_notebook_has_no_outputs(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for index, cell in enumerate(cells):
        ran = cell.get("outputs") or cell.get("execution_count") is not None
        assert not ran, f"cell {index} has outputs: run `make format`"
