"""Exit codes and messages."""

import itertools

import pytest

from gpusim.errors import GpusimError, InputError, InvariantError, NotSupportedYet, Problem
from gpusim.report import failures


def left(work):
    with pytest.raises(SystemExit) as end:
        failures.leave(work)
    return end.value.code


def test_of_several_files_the_worst_code_counts():
    order = [2, 1, 4, 3, 0]
    for one, other in itertools.combinations(order, 2):
        assert failures.highest([other, one]) == one
    assert failures.highest([]) == 0


def test_outcomes():
    assert failures.code_of("completed") == 0
    for outcome in ("vm_fault", "livelock", "limit", "out_of_memory"):
        assert failures.code_of(outcome) == 3


def test_every_problem_is_on_stderr_and_nothing_else(capsys):
    problems = [Problem("first", file="a.yaml", line=3), Problem("second", path="x.y", legal="1 or 2")]
    assert left(lambda: _raise(InputError(problems))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["a.yaml:3: first", "gpusim: x.y: second (legal: 1 or 2)"]


def test_a_bug_of_ours_says_how_to_report_it_without_a_traceback(capsys, monkeypatch):
    monkeypatch.delenv("GPUSIM_DEBUG", raising=False)
    for error in (ZeroDivisionError("division\nby zero"), InvariantError("sums to 3, not 4")):
        assert left(lambda error=error: _raise(error)) == 1
        err = capsys.readouterr().err
        assert "a bug of ours" in err
        assert "GPUSIM_DEBUG=1" in err
        assert "Traceback" not in err


def test_debugging_shows_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv("GPUSIM_DEBUG", "1")
    assert left(lambda: _raise(ZeroDivisionError("x"))) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_note_on_an_error_is_passed_on(capsys):
    error = ZeroDivisionError("x")
    error.add_note("at the point a=1")
    left(lambda: _raise(error))
    assert "at the point a=1" in capsys.readouterr().err


def test_other_errors_of_gpusim_and_want_of_memory_are_no_bug(capsys):
    assert left(lambda: _raise(GpusimError("a worker was ended"))) == 1
    assert left(lambda: _raise(MemoryError())) == 1
    assert "bug" not in capsys.readouterr().err


def test_an_interrupt_is_130(capsys):
    assert left(lambda: _raise(KeyboardInterrupt())) == 130
    assert "interrupted" in capsys.readouterr().err


def test_what_is_not_supported_yet_is_refused():
    failures.refuse({"--trace": False})
    with pytest.raises(NotSupportedYet, match="--trace is not supported yet"):
        failures.refuse({"--trace": True})


def test_each_file_has_its_turn(capsys):
    def work(file):
        if file == "bad":
            raise InputError("no good")
        if file == "worse":
            raise RuntimeError("oops")
        return file.upper()

    found = failures.each(["good", "bad", "worse"], work)
    assert [(one.file, one.made, one.code) for one in found] == [
        ("good", "GOOD", 0),
        ("bad", None, 2),
        ("worse", None, 1),
    ]
    assert [[problem.message for problem in one.problems] for one in found] == [
        [],
        ["no good"],
        ["RuntimeError: oops"],
    ]
    assert "no good" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ("1GiB", ["1GiB"]),
        ('"a,b", c', ['"a,b"', "c"]),
        ("[1, 2],{a: 1, b: 2}", ["[1, 2]", "{a: 1, b: 2}"]),
    ],
)
def test_commas_split_values_but_not_inside_quotes_or_brackets(text, parts):
    assert failures.split_commas(text) == parts


def test_axes_are_read_as_set_options_are():
    axes = failures.parsed_axes(["parameters.prefetch=false,true", "processes.app.env.HSA_XNACK=0,1"])
    assert axes == {"parameters.prefetch": [False, True], "processes.app.env.HSA_XNACK": ["0", "1"]}
    for bad in ("parameters.prefetch", "=1", "x="):
        with pytest.raises(InputError, match="--over"):
            failures.parsed_axes([bad])


def _raise(error):
    raise error
