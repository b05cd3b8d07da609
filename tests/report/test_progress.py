"""The line that shows how far a run is."""

from types import SimpleNamespace

from gpusim.report import progress
from tests.report.test_terminal import Terminal


def reading(wall_s, *, now_ps=10**12, faults=34_211, events=1_000_000):
    return SimpleNamespace(wall_s=wall_s, now_ps=now_ps, faults=faults, events=events)


def test_nobody_is_told_where_nobody_looks():
    for stream, wanted in ((Terminal(), True), (Terminal(terminal=True), False)):
        with progress.live(stream=stream, wanted=wanted) as show:
            assert show is None
        with progress.counting("runs", stream=stream, wanted=wanted) as count:
            assert count is None
        assert stream.getvalue() == ""


def test_a_short_run_shows_nothing():
    stream = Terminal(terminal=True)
    with progress.live(stream=stream) as show:
        show(reading(0.2))
    assert stream.getvalue() == ""


def test_a_long_run_shows_time_faults_and_rate_and_cleans_up():
    stream = Terminal(terminal=True)
    with progress.live(limit_ns=60e9, stream=stream) as show:
        show(reading(1.0, events=0))
        show(reading(2.0, events=400_000))
    text = stream.getvalue()
    assert "simulated 1.00 s of at most 60.0 s" in text
    assert "400,000 events/s" in text
    assert "34,211 faults" in text
    assert text.endswith("\r\x1b[2K")


def test_a_line_never_wraps(monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda _: SimpleNamespace(columns=20, lines=5))
    stream = Terminal(terminal=True)
    with progress.live(stream=stream) as show:
        show(reading(5))
    assert all(len(part) <= 19 for part in stream.getvalue().split("\r\x1b[2K"))


def test_a_sweep_counts_and_estimates():
    stream = Terminal(terminal=True)
    with progress.counting("runs", stream=stream) as show:
        show(1, 4)
        show(4, 4)
    assert "1 of 4 runs, about" in stream.getvalue()
    assert "4 of 4 runs" in stream.getvalue()


def test_a_terminal_that_goes_away_does_not_stop_the_run():
    class Gone(Terminal):
        def write(self, text):
            raise OSError("gone")

    with progress.live(stream=Gone(terminal=True)) as show:
        show(reading(3))
