"""The page as text: what it says, and that it asks for nothing from elsewhere."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import gpusim as gs
from gpusim.cli import main
from gpusim.report import why
from gpusim.report.html import charts, page
from gpusim.report.html.tables import Cell, table
from gpusim.result import Result
from gpusim.scenario import loader
from tests import synthetic

SMALL = """
version: 1
name: small
question: Is <b>this</b> & that fast?
system: {node: mi210-pcie4, gpus: 1}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 8MiB, allocator: malloc}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
"""


@pytest.fixture(scope="module")
def result():
    return gs.run(loader.loads(SMALL))


@pytest.fixture(scope="module")
def text(result):
    return page(result)


def words(html):
    """What a reader sees, roughly."""
    html = re.sub(r"<(style|script)[^>]*>.*?</\1>", " ", html, flags=re.S)
    return re.sub(r"<[^>]+>", " ", html)


def test_it_has_what_a_reader_asks_for_first(text, result):
    said = words(text)
    assert "Is &lt;b&gt;this&lt;/b&gt; &amp; that fast?" in said
    assert "Where " in said
    for title in ("Step by step", "Over time", "Page faults", "In use", "Not modelled", "The scenario"):
        assert title in said
    for missing in result.summary["not_modelled"]:
        assert missing in said
    assert f"Where the {len(result.tables['parameters'])} numbers come from" in said
    assert result.tables["parameters"]["path"].iloc[0] in said


def test_nothing_comes_from_elsewhere(text):
    assert "default-src 'none'" in text
    targets = re.findall(r'(?:src|href|action|poster)\s*=\s*["\']?([^"\'\s>]*)', text)
    assert targets == ["data:,"]
    assert "@import" not in text
    assert "url(" not in text


def test_every_kind_of_the_path_has_its_definition(text, result):
    said = words(text)
    for kind in result.summary["attribution"]:
        assert f"  {charts.label(kind)} " in said


def test_the_same_result_gives_the_same_page(result, text):
    assert page(result) == text


def test_names_cannot_break_out_of_the_page(scenario):
    data = synthetic.first_touch()
    evil = '</script><script>alert("x")</script>'
    data.uses = [replace(use, name=f"{evil}{use.name}") for use in data.uses]
    made = page(Result.from_run(scenario, data))
    assert "alert" in made
    assert '<script>alert("x")' not in made
    assert made.count("<script>") == 1  # the page's own


def test_a_run_without_record_says_how_to_get_more():
    bare = page(gs.run(loader.loads(SMALL), record="off"))
    assert "--record summary" in bare


def test_file_requests_have_their_path_and_reason():
    scenario = Path(__file__).parents[3] / "scenarios" / "validation" / "hipfile_7drives.yaml"
    result = gs.run(scenario, set={"limits.simulated_time": "20ms"})
    said = words(page(result))
    assert "Which path file requests took" in said
    assert "fastpath write" in said
    assert "accepted (" in said
    assert "the simulated time limit ended the run" in said
    assert "OUT" in said  # what the scenario expects of its later steps


def test_ticks_are_round_and_cover_what_is_shown():
    assert charts.nice_ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert charts.nice_ticks(0, 558)[-1] >= 558
    assert charts.nice_ticks(0, 0.0003)[1] == pytest.approx(0.0001)


def test_cells_sort_by_the_number_behind_the_words():
    made = table(("size",), [(Cell("1 GiB", 2**30),), (Cell("3 kB", 3000),)], right=(0,), name="sizes")
    assert 'data-n="1073741824"' in made
    assert "<td" in made
    assert 'aria-label="sizes"' in made


def test_the_command_writes_the_page_beside_the_result(result, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    result.save("here")
    with pytest.raises(SystemExit) as end:
        main(["report", "here"])
    assert (end.value.code, capsys.readouterr().out) == (0, "here/report.html\n")
    assert Path("here/report.html").read_text(encoding="utf-8") == page(gs.open_result("here"))
    with pytest.raises(SystemExit) as end:
        main(["report", "nowhere"])
    assert end.value.code == 2


def test_without_spans_it_says_how_to_get_what_would_help(text):
    said = words(text)
    assert "gpusim run --record spans" in said
    assert "of its ceiling" in said


def test_spans_tell_what_would_help_and_what_limits(result):
    made = page(gs.run(result.scenario, record="spans"))
    said = words(made)
    for title in ("What would help", "What limits it", "What binds, from start to end"):
        assert title in said
    reasons = gs.explain(result)
    for gain in reasons.gains:
        assert f"{100 * (gain.twice_ns / reasons.makespan_ns - 1):+.1f} %" in said
    for limit in reasons.limits:
        assert limit.name in said
    assert "twice as fast, simulated" in words(page(result, why.verified(result, reasons)))


@pytest.fixture(scope="module")
def drawn():
    """With draws: what the answer hangs on is worked out from 20 on."""
    return gs.run(loader.loads(SMALL), uncertainty=20)


def test_the_band_of_the_answer_and_what_moves_it_stand_below_it(drawn, text):
    found = drawn.summary["uncertainty"]
    said = words(page(drawn))
    assert said.index("How sure") < said.index("Where ")
    assert "90 % of the draws within" in said
    assert found["parameters"]
    for one in found["parameters"]:
        assert one["path"] in said
    assert "How sure" not in words(text)  # nobody asked for draws


def test_a_bar_reaches_from_the_low_to_the_high_end_and_marks_the_answer(drawn):
    """Fractions of the way from the least to the most that is shown."""
    blank = {"p5": 8.0, "p50": 10.0, "p95": 12.0, "value": 10.0, "unit": "ns"}
    one = drawn.summary["uncertainty"]["parameters"][0] | {"at_low": 5.0, "at_high": 15.0}
    drawn.summary["uncertainty"] |= blank | {"parameters": [one, one | {"at_low": 10.0, "at_high": None}]}
    bars = re.findall(
        r'class="reach"><i style="left:([\d.]+)%;width:([\d.]+)%"></i><b style="left:50.00%">', page(drawn)
    )
    assert bars == [("30.00", "40.00"), ("0.00", "100.00"), ("50.00", "0.40")]


def test_without_a_draw_that_completes_there_is_no_band(drawn):
    drawn.summary["uncertainty"] |= {"p5": None, "p50": None, "p95": None, "parameters": []}
    said = words(page(drawn))
    assert "no draw completed" in said
    assert 'class="reach"' not in page(drawn)
