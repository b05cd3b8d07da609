"""The compiled twins do what the Python modules do, to the last picosecond; without them nothing is missing."""

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gpusim
from gpusim import native
from gpusim.native import build
from gpusim.native.modules import MODULES

REPOSITORY = Path(__file__).resolve().parents[2]
#: those that take longest, and nothing that the others do not
LONG = {
    "bounce_h200",
    "ghostexchange_mi210",
    "ghostexchange_mi210_one_gpu",
    "hipfile_7drives",
    "hipfile_7drives_16_workers",
    "kv_blocks",
    "oversubscription_mi250x",
}
#: what is changed to make one of them shorter
CHANGES = {"fault-storm": {"kernels.visit.workgroups": 250}}
SCENARIOS = sorted(path for path in (REPOSITORY / "scenarios").rglob("*.yaml") if path.stem not in LONG)
GROUPS = [[str(path) for path in SCENARIOS[at::3]] for at in range(3)]
ANSWERS = """
import json, sys
from hashlib import blake2b
import gpusim as gs
from gpusim import native
changes = json.loads(sys.argv[1])
answers = {}
for path in sys.argv[2:]:
    scenario = gs.load(path)
    result = gs.run(scenario.with_(**changes.get(scenario.name, {})), record="spans")
    summary = dict(result.summary)
    del summary["engine"]
    tables = {name: blake2b(result.tables[name].to_json().encode()).hexdigest() for name in result.tables}
    answers[path] = [summary, tables]
    del result
print(json.dumps([native.active(), answers]))
"""


def python(code, *arguments, pure="0"):
    environment = {**os.environ, native.PURE: pure, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_twins = pytest.mark.skipif(
    not native.built().is_dir(), reason="the modules are not compiled: `make native`"
)


@needs_twins
@pytest.mark.parametrize("paths", GROUPS, ids=range(len(GROUPS)))
def test_scenarios_have_the_same_answers_to_the_last_span(paths):
    with ThreadPoolExecutor(2) as both:
        (compiled, fast), (pure, slow) = map(json.loads, both.map(lambda how: answers(paths, how), "01"))
    assert (compiled, pure) == (True, False)
    assert [path for path in paths if fast[path] != slow[path]] == []


def answers(paths, pure):
    return python(ANSWERS, json.dumps(CHANGES), *paths, pure=pure)


@needs_twins
def test_every_listed_module_is_compiled():
    code = f"import importlib; print([m for m in {MODULES!r} if importlib.import_module(m).__file__.endswith('.py')])"
    assert python(code) == "[]\n"


def test_heirs_of_compiled_classes_are_compiled():
    """A compiled class takes no heirs from Python."""
    left_out = []
    for found in pkgutil.walk_packages(gpusim.__path__, "gpusim."):
        if found.name in MODULES or found.name.startswith("gpusim.native") or found.name.endswith("__main__"):
            continue
        for name, kind in vars(importlib.import_module(found.name)).items():
            if isinstance(kind, type) and kind.__module__ == found.name:
                left_out += [(found.name, name) for base in kind.__mro__[1:] if base.__module__ in MODULES]
    assert left_out == []


def test_an_edited_source_is_never_shadowed(tmp_path):
    """Twins belong to the sources that they were made from."""
    package = tmp_path / "gpusim"
    shutil.copytree(REPOSITORY / "gpusim", package, ignore=shutil.ignore_patterns("built", "__pycache__"))
    where = "from gpusim.native import built; print(built().name)"

    def place():
        done = subprocess.run(
            [sys.executable, "-c", where],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        return done.stdout

    before = place()
    source = package / "engine" / "server.py"
    source.write_text(source.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert place() != before


def test_without_twins_the_python_modules_run():
    code = "import gpusim.engine.server as s; from gpusim import native; print(s.__file__, native.active())"
    path, active = python(code, pure="1").split()
    assert path.endswith("server.py")
    assert active == "False"


@pytest.mark.parametrize("package", ["mypyc", "setuptools"])
def test_what_a_build_needs_is_named(package, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(build, "built", lambda: tmp_path / "built" / "none")
    monkeypatch.setattr(build, "find_spec", lambda name: None if name == package else object())
    assert build.main([]) == 2
    message = capsys.readouterr().err
    assert package in message
    assert "pip install 'gpusim[native]'" in message


def test_without_a_compiler_the_message_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(build, "built", lambda: tmp_path / "built" / "none")
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.main([]) == 2
    assert "no C compiler" in capsys.readouterr().err


def test_without_the_headers_of_python_the_message_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(build, "built", lambda: tmp_path / "built" / "none")
    monkeypatch.setattr(build.sysconfig, "get_path", lambda name: str(tmp_path))
    assert build.main([]) == 2
    assert "python3-dev" in capsys.readouterr().err


def test_what_does_not_compile_is_a_fault(monkeypatch, capsys, tmp_path):
    """`make test` goes on without compiled modules where there can be none, and only there."""
    monkeypatch.setattr(build, "built", lambda: tmp_path / "built" / "none")
    monkeypatch.setattr(build, "_build", lambda folder, verbose: "the compiler failed")
    assert build.main([]) == 1
    assert "the compiler failed" in capsys.readouterr().err
