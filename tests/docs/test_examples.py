"""Every example in the README and the documentation runs.

Python blocks of a page run one after the other in one namespace. In `console` blocks the commands that begin
with `$ gpusim` run and must end with status 0, or with the one that a comment names: `# exit status 3`. YAML
blocks that begin with `version:` must pass `gpusim check`. Each page has a folder of its own, with the
repository's scenarios in it.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
GPUSIM = [sys.executable, "-m", "gpusim"]
STATUS = re.compile(r"#\s*exit status (\d+)\s*$")


def gpusim(arguments, folder):
    return subprocess.run(
        [*GPUSIM, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def run_console(example):
    for line in example.parsed.splitlines():
        if not line.startswith("$ gpusim"):
            continue
        named = STATUS.search(line)
        expected = int(named.group(1)) if named else 0
        arguments = shlex.split(line.removeprefix("$ gpusim"), comments=True)
        done = gpusim(arguments, example.namespace["folder"])
        assert done.returncode == expected, f"{line}\n{done.stdout}{done.stderr}"


def check_scenario(example):
    if example.parsed.startswith("version:"):
        folder = example.namespace["folder"]
        (folder / "example.yaml").write_text(example.parsed, encoding="utf-8")
        done = gpusim(["check", "example.yaml"], folder)
        assert done.returncode == 0, done.stdout + done.stderr


SYBIL = Sybil(
    parsers=[
        PythonCodeBlockParser(),
        CodeBlockParser("console", run_console),
        CodeBlockParser("yaml", check_scenario),
    ]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    (tmp_path / "scenarios").symlink_to(REPOSITORY / "scenarios")
    monkeypatch.chdir(tmp_path)
    document = SYBIL.parse(page)
    document.namespace["folder"] = tmp_path
    for example in document.examples():
        example.evaluate()
