"""The software filter of drivers before 2023: 256 faults, 5000 ticks."""

from gpusim.driver.retry_filter import RetryFilter, Verdict

PAGE, OTHER = (1, 0x1000), (1, 0x1001)


def test_a_page_is_reported_once_a_window():
    seen = RetryFilter(256, 50)
    assert seen.verdict(PAGE, 100) is Verdict.PASSES
    assert seen.verdict(PAGE, 110) is Verdict.DUPLICATE
    assert seen.verdict(OTHER, 120) is Verdict.PASSES
    assert seen.verdict(PAGE, 150) is Verdict.DUPLICATE  # a duplicate does not make the entry younger
    assert seen.verdict(PAGE, 151) is Verdict.PASSES


def test_the_same_page_of_two_processes_are_two_faults():
    seen = RetryFilter(256, 50)
    assert seen.verdict((1, 7), 100) is Verdict.PASSES
    assert seen.verdict((2, 7), 100) is Verdict.PASSES


def test_more_distinct_faults_than_it_remembers_are_shed_until_the_oldest_is_out_of_the_window():
    seen = RetryFilter(4, 50)
    verdicts = [seen.verdict((1, page), 100 + page) for page in range(6)]
    assert verdicts == [Verdict.PASSES] * 4 + [Verdict.FULL] * 2
    assert seen.verdict((1, 9), 151) is Verdict.PASSES


def test_what_is_older_than_the_last_processed_is_stale():
    seen = RetryFilter(256, 50)
    seen.verdict(PAGE, 100)
    assert seen.verdict(OTHER, 99) is Verdict.STALE


def test_a_fault_that_will_come_again_passes_after_the_newest_vector_in_the_ring():
    seen = RetryFilter(256, 50)
    seen.verdict(PAGE, 100)
    seen.remove(PAGE, 105)
    assert seen.verdict(PAGE, 105) is Verdict.DUPLICATE
    assert seen.verdict(PAGE, 106) is Verdict.PASSES
