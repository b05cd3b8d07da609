"""The wheel holds all that an installed gpusim needs, and nothing else."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from gpusim.version import version

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def files(folder, pattern):
    return {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / folder).rglob(pattern)}


def python(code, environment, folder):
    """Run code in a fresh Python, outside the checkout; returns what it printed."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run([*build, str(REPOSITORY)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("gpusim-*.whl")
    return built


@pytest.fixture(scope="module")
def contents(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """The wheel's files, unpacked as an installer does."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="module")
def installed(site):
    """Environment of a Python that finds the wheel's files before those of the checkout."""
    return {**os.environ, "PYTHONPATH": str(site)}


def test_the_wheel_holds_every_module(contents):
    assert files("gpusim", "*.py") <= contents


def test_the_wheel_holds_every_profile(contents):
    profiles = files("gpusim/scenario/profiles", "*.yaml")
    assert profiles
    assert profiles <= contents


def test_the_wheel_holds_every_validation_scenario(contents):
    scenarios = {f"gpusim/{name}" for name in files("scenarios/validation", "*.yaml")}
    assert scenarios
    assert scenarios <= contents


def test_the_wheel_tells_type_checkers_that_it_is_typed(contents):
    assert "gpusim/py.typed" in contents


def test_the_wheel_holds_nothing_else(contents):
    assert {name.partition("/")[0].partition("-")[0] for name in contents} == {"gpusim"}
    assert not [name for name in contents if "__pycache__" in name]


def test_an_installed_gpusim_finds_its_data(installed, site, tmp_path):
    code = "from gpusim.shipped import *; print(profiles_dir(), validation_dir(), sep='\\n')"
    profiles, validation = map(Path, python(code, installed, tmp_path).splitlines())
    assert profiles == site / "gpusim" / "scenario" / "profiles"
    assert validation == site / "gpusim" / "scenarios" / "validation"
    assert list(validation.glob("*.yaml"))


def test_an_installed_gpusim_answers(installed, tmp_path):
    code = "import sys; from gpusim.cli import main; sys.argv = ['gpusim', 'profiles']; sys.exit(main())"
    assert "mi210-pcie4" in python(code, installed, tmp_path)


def test_the_version_is_that_of_the_project(wheel):
    assert wheel.name.startswith(f"gpusim-{PROJECT['version']}-")
    assert version() == PROJECT["version"], "install the checkout again: pip install --editable ."


def test_every_pin_is_exact_and_names_no_place():
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    for pin in pins:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!]+", pin), pin
