"""Result directories are whole or absent."""

import os

import pytest

from gpusim.errors import InputError
from gpusim.result.directory import check_target, whole, whole_file


def put(target, text):
    with whole(target) as partial:
        (partial / "summary.json").write_text(text)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_directory_appears_with_its_parents(tmp_path):
    put(tmp_path / "a" / "b" / "run", "new")
    assert (tmp_path / "a" / "b" / "run" / "summary.json").read_text() == "new"
    assert names(tmp_path / "a" / "b") == ["run"]


def test_nothing_is_there_before_it_is_whole(tmp_path):
    target = tmp_path / "run"
    with whole(target) as partial:
        (partial / "summary.json").write_text("x")
        assert not target.exists()
    assert target.is_dir()


def test_an_old_result_is_replaced_whole(tmp_path):
    target = tmp_path / "run"
    put(target, "old")
    (target / "latency.png").write_text("old picture")
    put(target, "new")
    assert names(target) == ["summary.json"]
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_result(tmp_path, error):
    target = tmp_path / "run"
    put(target, "old")

    def fail():
        with whole(target) as partial:
            (partial / "summary.json").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert (target / "summary.json").read_text() == "old"
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_interrupt_between_the_renames_leaves_one_whole_result(tmp_path, monkeypatch, step):
    target = tmp_path / "run"
    put(target, "old")
    calls = []
    real = os.rename

    def rename(self, other):
        calls.append(other)
        if len(calls) == step:
            raise KeyboardInterrupt
        real(self, other)

    monkeypatch.setattr("pathlib.Path.rename", rename)
    with pytest.raises(KeyboardInterrupt):
        put(target, "new")
    assert (target / "summary.json").read_text() in ("old", "new")
    assert names(tmp_path) == ["run"]


def test_a_sweep_may_be_replaced_too(tmp_path):
    target = tmp_path / "sweep"
    target.mkdir()
    (target / "points.parquet").write_text("")
    put(target, "new")
    assert names(target) == ["summary.json"]


def test_a_directory_of_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not a gpusim result"):
        put(tmp_path, "new")
    assert names(tmp_path) == ["thesis.tex"]


def test_the_current_directory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for target in (".", "..", tmp_path):
        with pytest.raises(InputError, match="current directory"):
            check_target(tmp_path / "inner" / target)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    for target in (tmp_path / "run", tmp_path / "run" / "deeper"):
        with pytest.raises(InputError):
            check_target(target)


def test_a_place_that_cannot_be_written_is_refused_before_the_run():
    with pytest.raises(InputError, match="cannot be written"):
        check_target("/proc/gpusim/run")


def test_a_full_disk_is_the_users_to_solve(tmp_path):
    with pytest.raises(InputError, match="No space left"), whole(tmp_path / "run"):
        raise OSError(28, "No space left on device")
    assert names(tmp_path) == []


def test_a_link_to_a_directory_stays_a_link(tmp_path):
    put(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    put(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "summary.json").read_text() == "new"


def test_one_file_is_whole_or_as_before(tmp_path):
    target = tmp_path / "a.png"
    target.write_text("old")

    def fail():
        with whole_file(target) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert target.read_text() == "old"
    with whole_file(target) as partial:
        partial.write_text("new")
    assert target.read_text() == "new"
    assert names(tmp_path) == ["a.png"]
