"""Result: to files and back, and what a notebook shows."""

import json

import pandas as pd
import pytest

import gpusim as gs
from gpusim.errors import InputError
from gpusim.result import Result
from gpusim.result.schema import TABLES
from tests import synthetic


@pytest.fixture
def saved(scenario, tmp_path):
    result = Result.from_run(scenario, synthetic.with_spans(synthetic.first_touch()))
    result.save(tmp_path / "run")
    return result


def test_a_result_survives_the_road_to_disk_and_back(saved, tmp_path):
    back = gs.open_result(tmp_path / "run")
    assert back.summary == saved.summary
    assert set(back.tables) == set(saved.tables)
    for name, table in saved.tables.items():
        pd.testing.assert_frame_equal(back.tables[name], table, check_dtype=False, check_categorical=False)
    assert back.metric("faults.serviced") == 2048
    assert back.scenario == saved.scenario


def test_the_directory_holds_what_the_contract_names(saved):
    names = {entry.name for entry in saved.path.iterdir()}
    assert {"summary.json", "scenario.yaml"} <= names
    assert {f"{table}.parquet" for table in ("faults", "migrations", "io", "links", "spans")} <= names


def test_summary_json_is_what_to_json_prints(saved):
    text = (saved.path / "summary.json").read_text(encoding="utf-8")
    assert text == saved.to_json() + "\n"
    assert json.loads(text)["schema_version"] == 1


def test_the_scenario_beside_the_result_loads(saved):
    again = gs.load(saved.path / "scenario.yaml")
    assert again.name == "managed-first-touch"


def test_extras_are_part_of_the_whole(scenario, tmp_path):
    result = Result.from_run(scenario, synthetic.resident())

    def fail(partial):
        (partial / "picture.png").write_text("half")
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError):
        result.save(tmp_path / "run", extras=fail)
    assert not (tmp_path / "run").exists()
    result.save(tmp_path / "run", extras=lambda partial: (partial / "picture.png").write_text("ink"))
    assert (tmp_path / "run" / "picture.png").exists()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "no such result"),
        (lambda path: path.mkdir(), "no summary.json"),
        (lambda path: (path.mkdir(), (path / "points.parquet").touch()), "points of a sweep"),
        (lambda path: (path.mkdir(), (path / "summary.json").write_text("{")), "not JSON"),
        (lambda path: (path.mkdir(), (path / "summary.json").write_bytes(b"\xff\xfe\x00")), "not text"),
        (
            lambda path: (path.mkdir(), (path / "summary.json").write_text('{"schema_version": 99}')),
            "schema_version",
        ),
        (lambda path: (path.mkdir(), (path / "summary.json").write_text("[]")), "schema_version"),
    ],
)
def test_what_is_no_result_is_refused_with_the_reason(tmp_path, make, words):
    make(tmp_path / "run")
    with pytest.raises(InputError, match=words):
        gs.open_result(tmp_path / "run")


def test_a_damaged_table_is_named(saved, tmp_path):
    (saved.path / "faults.parquet").write_bytes(b"garbage")
    with pytest.raises(InputError, match=r"faults\.parquet"):
        _ = gs.open_result(saved.path).tables["faults"]


def test_tables_follow_the_schema(saved):
    for name, table in saved.tables.items():
        known = [column.name for column in TABLES[name]]
        assert list(table.columns) == [column for column in known if column in table.columns]
        for column in TABLES[name]:
            if column.name in table.columns and column.unit in ("ns", "bytes"):
                assert column.name.endswith(column.unit)


def test_a_result_says_its_answer(first_touch):
    assert "`scale` takes" in repr(first_touch)


def test_html_shows_question_answer_and_bar_and_escapes(scenario):
    data = synthetic.first_touch()
    data.bound_by = "<script>alert(1)</script>"
    html = Result.from_run(scenario, data)._repr_html_()
    assert "How fast does a kernel stream" in html
    assert "<svg" in html
    assert "2 ms skip" in html
    assert "<script>" not in html
    for tag in ("div", "table", "tr", "td", "svg", "rect", "span"):
        assert html.count(f"<{tag}") == html.count(f"</{tag}>"), tag


def test_html_without_recording_has_no_bar(scenario):
    html = Result.from_run(scenario, synthetic.resident(record="off"))._repr_html_()
    assert "<svg" not in html
