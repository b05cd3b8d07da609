"""`import gpusim as gs`: the names that users rely on, and that nothing else takes their places."""

import subprocess
import sys

import pytest

import gpusim as gs

PUBLIC = {
    "GpusimError",
    "InputError",
    "InvariantError",
    "Kind",
    "NotSupportedYet",
    "Recommendation",
    "Result",
    "Scenario",
    "__version__",
    "compare",
    "explain",
    "load",
    "open_result",
    "quantity",
    "recommend",
    "run",
    "sweep",
}


def test_the_list_of_public_names_changes_only_on_purpose():
    assert set(gs.__all__) == PUBLIC
    assert set(dir(gs)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there(name):
    assert getattr(gs, name) is not None


def test_a_name_that_is_not_public_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'simulate_everything'"):
        gs.simulate_everything  # noqa: B018


def test_functions_stay_functions_after_every_module_has_been_imported():
    """A module of the package must not bear a function's name: importing it would hide the function."""
    code = """
import importlib, pkgutil
import gpusim as gs
for info in pkgutil.walk_packages(gs.__path__, "gpusim."):
    if not info.name.endswith("__main__"):
        importlib.import_module(info.name)
names = ("compare", "explain", "load", "open_result", "recommend", "run", "sweep")
print(*[name for name in names if not callable(getattr(gs, name))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
