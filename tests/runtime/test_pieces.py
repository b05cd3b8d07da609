"""Models in files: tensors one after the other, and calls that never reach over the end of one."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.errors import SimulatedFailure
from gpusim.runtime.file_job import FileApi, FileJob, Pieces
from gpusim.runtime.piece_layout import PieceLayout


def job(*pieces, io_size=100, threads=1, write=False, file_offset=0):
    return FileJob(
        files=("f",),
        buffer="x",
        write=write,
        api=FileApi.SYNC,
        io_size=io_size,
        size=None,
        file_offset=file_offset,
        buffer_offset=0,
        shuffled=False,
        threads=threads,
        depth=1,
        pieces=pieces,
    )


def calls(work, *, file_bytes=1 << 40, buffer_bytes=1 << 40):
    layout = PieceLayout(work, file_bytes=file_bytes, buffer_bytes=buffer_bytes)
    return [block for share in layout.shares() for block in layout.of(share, "")]


def test_each_piece_is_cut_into_calls_of_its_own():
    assert calls(job(Pieces(250, 2, 1))) == [
        (0, 0, 100),
        (100, 100, 100),
        (200, 200, 50),
        (250, 250, 100),
        (350, 350, 100),
        (450, 450, 50),
    ]


def test_pieces_begin_where_they_are_aligned():
    assert [call[0] for call in calls(job(Pieces(10, 2, 64), Pieces(5, 1, 256)))] == [0, 64, 256]


def test_a_small_buffer_is_used_again():
    assert [call[1] for call in calls(job(Pieces(100, 5, 1)), buffer_bytes=200)] == [0, 100, 0, 100, 0]


def test_pieces_beyond_the_file_cannot_be_read_but_written():
    with pytest.raises(SimulatedFailure, match="reach 500 bytes far"):
        calls(job(Pieces(100, 5, 1)), file_bytes=499)
    assert len(calls(job(Pieces(100, 5, 1), write=True), file_bytes=0)) == 5


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.builds(Pieces, st.integers(1, 500), st.integers(1, 4), st.sampled_from([1, 16, 64])), min_size=1
    ),
    st.integers(1, 200),
    st.integers(1, 5),
)
def test_every_byte_of_every_piece_is_moved_once(pieces, io_size, threads):
    work = job(*pieces, io_size=io_size, threads=threads)
    found = sorted(calls(work))
    assert sum(size for _, _, size in found) == sum(piece.size * piece.count for piece in pieces)
    assert all(one[0] + one[2] <= other[0] for one, other in pairwise(found))
