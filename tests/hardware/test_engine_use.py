"""Engines are busy or idle: no more than all of them can be at work."""

from gpusim.hardware.engine_use import EngineUse


def busy(use, end_ps):
    timeline = use.until(end_ps)
    assert sum(busy for _, busy, _ in timeline.rows()) == timeline.busy_ps
    return timeline.busy_ps


def test_one_copy_on_two_engines_is_half_of_them():
    use = EngineUse("sdma", 2)
    use.copy_begins(1_000)
    use.copy_ends(5_000, 1_000, 64)
    assert busy(use, 10_000) == 2_000
    assert use.until(10_000).amount == 64


def test_three_copies_on_two_engines_are_both_of_them():
    use = EngineUse("sdma", 2)
    for _ in range(3):
        use.copy_begins(0)
    for end in (4_000, 6_000, 8_000):
        use.copy_ends(end, 0, 100)
    assert busy(use, 10_000) == 4_000 + 2_000 + 1_000
    assert all(busy <= use.until(10_000).width_ps for _, busy, _ in use.until(10_000).rows())


def test_a_job_ahead_of_time_counts_when_its_time_comes():
    use = EngineUse("sdma", 2)
    use.job(0, 2_000, 6_000, 8)
    use.copy_begins(4_000)
    use.copy_begins(5_000)
    use.copy_ends(9_000, 4_000, 1)
    use.copy_ends(9_000, 5_000, 1)
    # alone 2-4, with a copy 4-5, with two 5-6, the two copies 6-9
    assert busy(use, 10_000) == 1_000 + 1_000 + 1_000 + 3_000


def test_what_was_cut_in_half_counts_up_to_the_end_of_the_run():
    use = EngineUse("sdma", 1)
    use.copy_begins(1_000)
    assert busy(use, 3_000) == 2_000
