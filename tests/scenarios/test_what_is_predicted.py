"""A row that a number of a drive or of file I/O was fitted to is no prediction of the scenarios that use it."""

import re
from pathlib import Path

import pytest
import yaml

from gpusim import shipped

ROW = re.compile(r"\b(?:IO\d{3}|H200-\d{3})\b")
FILES = ("hipfile_7drives", "hipfile_7drives_16_workers", "hipfile_16drives", "bounce_h200", "drive_h200")
PROFILES = Path(shipped.__file__).parent / "scenario" / "profiles"


def fitted(node):
    """The rows under `rows` of every number."""
    if isinstance(node, dict):
        if node.get("grade") == "fitted":
            yield from map(str, node.get("rows") or ())
        for child in node.values():
            yield from fitted(child)
    elif isinstance(node, list):
        for child in node:
            yield from fitted(child)


def fitted_rows():
    every = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in PROFILES.rglob("*.yaml"))
    return {row for tree in every for row in fitted(tree)}


@pytest.mark.parametrize("name", FILES)
def test_no_prediction_is_of_a_row_that_was_fitted(name):
    path = Path(__file__).parents[2] / "scenarios" / "validation" / f"{name}.yaml"
    expected = yaml.safe_load(path.read_text(encoding="utf-8"))["expect"]
    rows = fitted_rows()
    assert {"IO005", "IO051"} <= rows
    for row in expected:
        if row["kind"] == "predicted":
            assert not rows & set(ROW.findall(row["source"])), row["metric"]
