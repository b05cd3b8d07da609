"""The reference pages in the tree say what the code says."""

import runpy
from pathlib import Path

import pytest

from gpusim.cli import main
from gpusim.kinds import DEFINITIONS, LABELS, Kind
from gpusim.workload.steps import STEPS

GENERATE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "generate.py"))
PAGES = GENERATE["PAGES"]


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_up_to_date(page, docs_dir):
    assert (docs_dir / page).read_text(encoding="utf-8") == PAGES[page](), "run `make docs`"


def test_every_kind_has_a_label_and_a_definition():
    assert set(LABELS) == set(DEFINITIONS) == set(Kind)
    assert len(set(LABELS.values())) == len(Kind)


def test_no_step_is_on_the_page_of_what_is_not_supported_yet():
    page = PAGES["reference/not-supported.md"]()
    assert [verb for verb in STEPS if f"`{verb}`" in page] == []


@pytest.mark.parametrize("command", GENERATE["not_supported"]().get("commands", []))
def test_a_command_on_the_page_answers_that_it_is_not_supported_yet(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([*command.split()[1:], "anything"])
    assert end.value.code == 2
    assert "not supported yet" in capsys.readouterr().err
