"""Every decision of hipFile against the case file: scores, backend, retry and error code."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cases import decide_hipfile

CASES = Path(__file__).parents[2] / "data" / "hipfile_cases.csv"
ROWS = list(csv.DictReader(CASES.read_text(encoding="utf-8").splitlines()))
INPUTS = tuple(ROWS[0])[1:17]

#: the defaults of the fast path's own tests: they are accepted
ACCEPTED = {key: ROWS[0][key] for key in INPUTS}


def decide(**changes: str) -> dict[str, str]:
    return decide_hipfile(ACCEPTED | changes)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_row_of_the_case_file(row: dict[str, str]) -> None:
    assert decide_hipfile({key: row[key] for key in INPUTS}) == {
        "fastpath_score": row["expected_fastpath_score"],
        "fallback_score": row["expected_fallback_score"],
        "backend": row["expected_backend"],
        "outcome": row["expected_outcome"],
    }


def test_the_inputs_are_the_columns_from_operation_to_fallback_error() -> None:
    assert (INPUTS[0], INPUTS[-1]) == ("operation", "fallback_error")


@pytest.mark.parametrize(
    ("version", "backend", "outcome"),
    [
        ("0.2.0", "rejected", "error:hipFileInternalError"),
        ("0.5.0", "rejected", "error:hipFileInternalError"),
        ("0.6-dev", "fallback", "ok"),
    ],
)
def test_both_switches_set_fail_everything_until_the_fallback_comes_back(
    version: str, backend: str, outcome: str
) -> None:
    env = "HIPFILE_FORCE_COMPAT_MODE=true;HIPFILE_ALLOW_COMPAT_MODE=false"
    answer = decide(env=env, hipfile_version=version)
    assert (answer["backend"], answer["outcome"]) == (backend, outcome)


@pytest.mark.parametrize(
    ("version", "error"),
    [("0.2.0", "hipFileInvalidValue"), ("0.4.0", "EINVAL"), ("0.5.0", "EINVAL"), ("0.6-dev", "EINVAL")],
)
def test_a_negative_offset_is_accepted_by_the_fallback_and_fails_there(version: str, error: str) -> None:
    answer = decide(file_offset="-512", hipfile_version=version)
    assert answer == {
        "fastpath_score": "-1",
        "fallback_score": "1",
        "backend": "fallback",
        "outcome": f"error:{error}",
    }


def test_an_offset_at_the_end_of_the_buffer_fails_even_for_nothing() -> None:
    assert decide(buffer_offset="4096", buffer_length="4096", size="0")["outcome"].startswith("error:")
    assert decide(buffer_offset="0", buffer_length="4096", size="0")["outcome"] == "ok"


def test_the_cap_comes_before_the_range_check_on_the_fallback_only() -> None:
    exact = {"size": "2147483648", "buffer_offset": "0", "file_offset": "0", "buffer_length": "2147479552"}
    assert decide(**exact)["outcome"] == "error:hipFileInvalidValue"
    assert decide(**exact, env="HIPFILE_FORCE_COMPAT_MODE=true")["outcome"] == "ok"


def test_a_retry_needs_a_fallback_that_accepts() -> None:
    retried = decide(fastpath_runtime_error="EREMOTEIO")
    kept = decide(fastpath_runtime_error="EREMOTEIO", env="HIPFILE_ALLOW_COMPAT_MODE=false")
    assert (retried["backend"], retried["outcome"]) == ("fastpath_then_fallback", "ok")
    assert (kept["backend"], kept["outcome"]) == ("fastpath", "error:EREMOTEIO")
