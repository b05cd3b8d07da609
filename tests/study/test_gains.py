"""What limits a run and what would help it, from its spans, against simulating the change."""

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import gpusim as gs
from gpusim.kinds import Kind
from gpusim.report import why as report
from gpusim.report.console import rendered
from gpusim.study import gains, limits, spans
from tests import file_programs
from tests.report.test_terminal import Terminal

FOLDER = Path(__file__).parents[2] / "scenarios"


@cache
def run(name, **sets):
    one_way = {"parameters.copy": False} if name == "zero_copy" else {}
    return gs.run(
        FOLDER / f"{name}.yaml",
        set=one_way | {key.replace("__", "."): value for key, value in sets.items()},
        record="spans",
    )


def small_touch():
    return run("first_touch", processes__app__buffers__x__size="256MiB")


def test_without_spans_there_is_no_graph():
    assert spans.of(gs.run(FOLDER / "zero_copy.yaml")) is None


@pytest.mark.parametrize("name", ["explicit_copy", "zero_copy"])
def test_the_path_sums_to_the_whole_to_the_picosecond(name):
    found = spans.of(run(name))
    assert sum(found.on_path) == found.makespan_ps == round(run(name).summary["makespan_ns"] * 1000)


def test_the_best_suggestion_for_a_first_touch_is_the_2_ms_rule():
    result = small_touch()
    best = gains.predicted(result, spans.of(result))[0]
    assert best.kind is Kind.RECENT_SKIP
    assert best.twice_ns == pytest.approx(gains.resimulated(result.scenario, Kind.RECENT_SKIP), rel=0.02)


@pytest.mark.parametrize("name", ["explicit_copy", "zero_copy"])
def test_predictions_agree_with_simulating_again(name):
    result = run(name)
    predicted = gains.predicted(result, spans.of(result))
    verified = gains.verified(result.scenario, predicted[:4])
    for gain in verified:
        assert gain.twice_ns == pytest.approx(gain.resimulated_ns, rel=0.01)
    assert verified[0].resimulated_ns == min(gain.resimulated_ns for gain in verified)


def test_a_bounce_copy_for_free_still_waits_for_the_engine_beside_it():
    """By its share alone a free bounce copy would gain more: SDMA empties the other buffer meanwhile."""
    result = run("explicit_copy")
    bounce = next(g for g in gains.predicted(result, spans.of(result)) if g.kind is Kind.BOUNCE_COPY)
    whole = result.summary["makespan_ns"]
    assert bounce.free_ns > whole * (1 - bounce.share) * 1.02
    free = gains.resimulated(result.scenario, Kind.BOUNCE_COPY, gains.FREE)
    assert bounce.free_ns == pytest.approx(free, rel=0.01)


def test_a_saturated_memory_cannot_make_compute_faster():
    """A kernel at HBM's rate spends nothing on compute; one at its own rate gains until HBM is full."""
    result = run("explicit_copy")
    for gain in gains.predicted(result, spans.of(result)):
        if gain.kind is Kind.HBM:
            assert gain.free_ns > result.summary["makespan_ns"] * (1 - gain.share) * 1.001


def test_resources_on_the_path_are_named_and_nothing_exceeds_its_ceiling():
    result = run("mixed")
    found = {limit.name: limit for limit in limits.limits(result, spans.of(result))}
    assert found["gpu[0].fault_worker"].path > 0.15
    assert found["gpu[0].hbm"].peak > 0.95
    for limit in found.values():
        assert 0 <= limit.path <= 1
        assert limit.ceiling is None or 0 <= limit.ceiling <= 1 + 1e-6
    assert sum(limit.path for limit in found.values()) <= 1 + 1e-9


def test_phases_follow_each_other_from_start_to_end():
    result = run("mixed")
    phases = limits.phases(result, spans.of(result))
    assert phases[0].start_ns == 0
    assert phases[-1].end_ns == pytest.approx(result.summary["makespan_ns"])
    for one, following in pairwise(phases):
        assert one.end_ns == following.start_ns
    assert any(phase.kind is Kind.HBM and phase.resource == "gpu[0].hbm" for phase in phases)


def test_a_saved_result_gives_the_same_reasons(tmp_path):
    result = run("zero_copy")
    result.save(tmp_path / "out")
    again = gs.open_result(tmp_path / "out")
    assert gains.predicted(again, spans.of(again)) == gains.predicted(result, spans.of(result))


def test_the_report_says_what_would_help_and_what_was_simulated():
    result = run("zero_copy")
    why = report.why(result)
    checked = report.Why(why.limits, why.phases, gains.verified(result.scenario, why.gains[:2]))
    text = rendered(report.sections(checked, result.summary["makespan_ns"]), Terminal())
    for words in ("What would help", "twice as fast", "re-simulated", "What limits it", "From start to end"):
        assert words in text
    data = report.as_data(checked)
    assert data["gains"][0]["kind"] == "page_alloc"
    assert data["phases"][0]["start_ns"] == 0


def predictions(steps, **about):
    """Predicted and simulated makespans over the recorded one by kind, of a program with files."""
    result = file_programs.run(steps, record="spans", **about).result
    whole = result.summary["makespan_ns"]
    found = gains.verified(result.scenario, gains.predicted(result, spans.of(result)))
    return {gain.kind: (gain.twice_ns / whole, gain.resimulated_ns / whole) for gain in found}


def test_a_job_that_goes_on_for_a_time_gains_nothing_from_a_faster_drive():
    steps = "load: {file_read: {file: f, buffer: x, io_size: 1MiB, threads: 4, duration: 20ms}}"
    predicted, simulated = predictions(steps)[Kind.DRIVE]
    assert predicted > 0.97
    assert predicted == pytest.approx(simulated, rel=0.02)


def test_who_queues_for_the_pin_lock_gains_nothing_from_a_faster_drive():
    steps = "load: {file_read: {file: f, buffer: x, io_size: 4KiB, size: 8MiB, order: random, threads: 64}}"
    found = predictions(steps)
    for predicted, simulated in found.values():
        assert predicted == pytest.approx(simulated, rel=0.1)
    assert found[Kind.IO_PIN][1] < 0.7
    assert found.get(Kind.DRIVE, (1.0, 1.0))[0] > 0.9


def test_the_media_behind_a_write_cache_are_part_of_the_drive():
    steps = "save: {file_write: {file: f, buffer: x, io_size: 4MiB, size: 16GiB, threads: 8}}"
    predicted, simulated = predictions(steps, size="16GiB")[Kind.DRIVE]
    assert predicted == pytest.approx(simulated, rel=0.05)
    assert simulated < 0.6


def test_threads_that_queue_for_the_svm_mutex_gain_from_what_its_holder_does():
    result = run("migration_lock", processes__app__buffers__x__size="256MiB")
    found = gains.verified(result.scenario, gains.predicted(result, spans.of(result))[:3])
    for gain in found:
        assert gain.twice_ns == pytest.approx(gain.resimulated_ns, rel=0.01)


def test_who_waits_is_laid_to_what_it_waits_for():
    result = run("migration_lock", processes__app__buffers__x__size="256MiB")
    found = {limit.name: limit for limit in limits.limits(result, spans.of(result))}
    assert 1 < found["app.svms"].queueing < 3  # of four threads one has the mutex
    assert found["gpu[0].fault_worker"].queueing > 100  # wavefronts
    assert found["gpu[0].hbm"].queueing < 0.01
    assert found["gpu[0].pcie.d2h"].queueing < 0.01  # one copy at a time
    alone = {limit.name: limit for limit in limits.limits(result, None)}
    assert alone["app.svms"].queueing is None
    assert alone["app.svms"].use == found["app.svms"].use


@pytest.mark.parametrize("kind", [Kind.CONTENTION, Kind.HOST_MEMORY])
def test_atomics_of_cpu_threads_that_gpus_hold_up_gain_as_predicted(kind):
    """A line of its own costs a thread memory access, and one that it has to fetch costs contention on top."""
    result = run("validation/shared_atomics_mi300a")
    gain = next(one for one in gains.predicted(result, spans.of(result)) if one.kind is kind)
    simulated = gains.resimulated(result.scenario, kind)
    assert simulated < 0.97 * result.summary["makespan_ns"]
    assert gain.twice_ns == pytest.approx(simulated, rel=0.03)
