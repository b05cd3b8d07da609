"""Whatever a job looks like: the bytes that it asks for cross the link once, and nothing is left over."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.file_programs import run

KIB = 1 << 10


@settings(max_examples=20, deadline=None)
@given(
    verb=st.sampled_from(["file_read", "file_write"]),
    api=st.sampled_from(["sync", "async", "posix", "batch"]),
    version=st.sampled_from(["0.2.0", "0.5.0", "0.6-dev"]),
    forced=st.booleans(),
    io_kib=st.sampled_from([4, 60, 64, 1000, 1024, 20 * 1024]),
    size_kib=st.integers(1, 40 * 1024),
    threads=st.integers(1, 9),
    depth=st.integers(1, 5),
    cached=st.sampled_from(["0%", "50%", "100%"]),
    short=st.booleans(),
)
@example(  # a library goes on to free its buffer when the program has ended
    verb="file_read",
    api="async",
    version="0.2.0",
    forced=False,
    io_kib=4,
    size_kib=129,
    threads=1,
    depth=1,
    cached="0%",
    short=False,
)
def test_bytes_in_are_bytes_out(
    verb: str,
    api: str,
    version: str,
    forced: bool,
    io_kib: int,
    size_kib: int,
    threads: int,
    depth: int,
    cached: str,
    short: bool,
) -> None:
    way = verb.removeprefix("file_")
    entries = max(1, size_kib // io_kib)
    size = f"{size_kib * KIB}B" if api != "batch" else f"{entries * io_kib * KIB}B"
    about = f"file: f, buffer: x, io_size: {io_kib}KiB, threads: {threads}"
    if api == "batch":
        job = f"file_batch: {{operation: {way}, {about}, entries: {entries}, capacity: {depth}}}"
    else:
        more = f", depth: {depth}" if api == "async" else ""
        job = f"{verb}: {{{about}, size: {size}, api: {api}{more}}}"
    fault = "{where: pread, short: 50%, at: [1, 2]}" if short and api in ("sync", "posix") else ""
    ran = run(
        f"job: {{{job}}}",
        version=version,
        hipfile=", pool_threads: 3",
        env=f'HIPFILE_FORCE_COMPAT_MODE: "{str(forced).lower()}"',
        facts=f"cached: {cached}",
        faults=fault,
    )
    asked = int(size.removesuffix("B"))
    io = ran.summary["io"]
    blocks = [io[path][way] for path in ("fastpath", "fallback", "posix") if path in io]
    assert ran.outcome == "completed"
    assert sum(block["bytes"] for block in blocks) == asked == ran.step("job", "bytes")
    link = ran.summary["links"][f"gpu[0].pcie.{'h2d' if way == 'read' else 'd2h'}"]["bytes"]
    assert link == asked
    for block in blocks:
        assert sum(block["reasons"].values()) == block["requests"] == block["latency_ns"]["count"]
        assert block["errors"] == {}
