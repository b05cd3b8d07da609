"""`gpusim --help` starts at once, because nothing heavy is imported before it is needed."""

import subprocess
import sys

import pytest

HEAVY = {"matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "rich", "simpy", "sortedcontainers", "yaml"}

HELP = """
import sys
from gpusim.cli import main
sys.argv = ["gpusim", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
REPORT = """
import sys
print("IMPORTED", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("code", [HELP, "import gpusim"], ids=["gpusim --help", "import gpusim"])
def test_nothing_heavy_is_imported_by(code):
    done = subprocess.run([sys.executable, "-c", code + REPORT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, *modules = done.stdout.splitlines()[-1].split()
    assert "gpusim" in modules
    assert HEAVY & set(modules) == set()
