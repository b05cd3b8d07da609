"""A row that a number of a profile was fitted to is no prediction of the scenarios that use it."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from gpusim import shipped

ROW = re.compile(r"\b(?:[A-Z]{2,3}\d{3}|H200-\d{3})\b")
SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios" / "validation").glob("*.yaml"))
PROFILES = Path(shipped.__file__).parent / "scenario" / "profiles"
#: rows that say more than the number that was fitted to: these are about the rest
BEYOND = {
    "steps.first_touch[1:].duration_ns.mean": "FAU001 was fitted by its first iteration; this is about later ones",
    "steps.each_shared.duration_ns": "OTH007 was fitted by one CPU thread; this is about 24 of them",
    "steps.gpu_shared.duration_ns": "OTH007 was fitted by what a CPU thread keeps; this is about the GPU",
}


def fitted(node):
    """The rows that every fitted number names, under `rows` or in its source."""
    if isinstance(node, dict):
        if node.get("grade") == "fitted":
            yield from map(str, node.get("rows") or ())
            yield from ROW.findall(str(node.get("source", "")))
        for child in node.values():
            yield from fitted(child)
    elif isinstance(node, list):
        for child in node:
            yield from fitted(child)


@cache
def fitted_rows():
    every = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in PROFILES.rglob("*.yaml"))
    return {row for tree in every for row in fitted(tree)}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_no_prediction_is_of_a_row_that_was_fitted(path):
    expected = yaml.safe_load(path.read_text(encoding="utf-8")).get("expect", [])
    rows = fitted_rows()
    assert {"IO005", "IO051", "MAN064", "OTH007"} <= rows
    for row in expected:
        of_one_number = " / " not in row["metric"]  # how flat repeats are was fitted to nothing
        if row["kind"] == "predicted" and of_one_number and row["metric"] not in BEYOND:
            assert not rows & set(ROW.findall(row["source"])), row["metric"]
