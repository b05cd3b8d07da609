"""The record of file requests: exact in what it adds up, and bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.runtime.io_log import IoLog, Series


def series(most: int = 32, *, keep_all: bool = False) -> Series:
    return Series("app", "fastpath", "read", kinds=3, keep_all=keep_all, most=most)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**12), st.integers(1, 10**12), st.integers(0, 2**31), st.sampled_from("ab")
        ),
        min_size=1,
        max_size=300,
    )
)
def test_totals_are_exact_however_often_rows_are_binned(requests: list[tuple[int, int, int, str]]) -> None:
    log = series()
    for start, latency, size, reason in requests:
        log.add(start, start + latency, size, reason)
    log.settle()
    assert log.requests == len(requests) == int(log.rows()[:, 3].sum())
    assert log.bytes == sum(size for _, _, size, _ in requests)
    assert log.latency_ps == sum(latency for _, latency, _, _ in requests)
    assert log.longest_ps == max(latency for _, latency, _, _ in requests)
    assert log.first_start_ps == min(start for start, _, _, _ in requests)
    assert log.last_end_ps == max(start + latency for start, latency, _, _ in requests)
    assert sum(log.reasons.values()) == len(requests)
    assert log.first_latency_ps == requests[0][1]


def test_memory_does_not_grow_with_the_number_of_requests() -> None:
    log = series(most=1024)
    rng = np.random.default_rng(1)
    sizes = []
    for start in range(0, 200_000_000, 1000):
        log.add(start, start + int(rng.integers(50_000, 100_000)), 4096, "accepted")
        if start % 20_000_000 == 0:
            sizes.append(len(log.rows()))
    assert max(sizes) < 3 * 8192


def test_binned_percentiles_are_good_to_two_percent() -> None:
    rng = np.random.default_rng(2)
    latencies = rng.lognormal(11, 0.2, 20_000).astype(np.int64)
    log = series(most=2000)
    for index, latency in enumerate(latencies):
        log.add(index * 1000, index * 1000 + int(latency), 1, "accepted")
    rows = log.rows()
    spread = np.repeat(rows[:, 1] - rows[:, 0], rows[:, 3])
    assert len(rows) < 12_000
    for percent in (50, 95, 99):
        assert np.percentile(spread, percent) == pytest.approx(np.percentile(latencies, percent), rel=0.02)


def test_every_request_is_kept_when_spans_are_recorded() -> None:
    log = series(keep_all=True)
    for start in range(100):
        log.add(start, start + 5, 1, "accepted")
    assert len(log.rows()) == 100


def test_the_table_names_process_path_and_direction() -> None:
    log = IoLog(kinds=3, keep_all=False)
    log.of("app", "fastpath", write=False).add(0, 10, 5, "accepted")
    log.of("app", "fallback", write=True).add(5, 30, 6, "forced")
    table = log.table()
    assert table["path"] == ["fastpath", "fallback"]
    assert table["direction"] == ["read", "write"]
    assert list(table["bytes"]) == [5, 6]
    assert list(table["count"]) == [1, 1]
