"""UM04: slow on managed memory, and not because of paging."""

from pathlib import Path

import pytest

import gpusim as gs

FILE = Path(__file__).parents[2] / "scenarios" / "contention_or_paging.yaml"


def test_the_answer_is_contention_and_it_recurs():
    managed = gs.run(FILE)
    local = gs.run(FILE, set={"parameters.allocator": "hipMalloc"})
    assert managed.summary["bound_by"] == "contention on lines"
    slower = [
        managed.metric(f"steps.count[{repeat}].duration_ns")
        / local.metric(f"steps.count[{repeat}].duration_ns")
        for repeat in (1, 10, 19)
    ]
    assert slower == pytest.approx([100, 100, 100], rel=0.05)


def test_a_prefetch_would_not_help():
    """What faults cost is a small part of the first repeat, and nothing of the others."""
    ran = gs.run(FILE)
    first = ran.metric("steps.count[0].duration_ns")
    later = ran.metric("steps.count[1].duration_ns")
    assert first < 2 * later
    assert ran.metric("attribution.contention") > 0.9
