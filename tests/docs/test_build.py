"""The documentation builds without a warning: no dead link between pages, no page left out."""

import subprocess
import sys


def test_the_documentation_builds_without_a_warning(docs_dir, tmp_path):
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    done = subprocess.run(
        [*build, "-d", str(tmp_path / "doctrees"), str(docs_dir), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "html" / "index.html").is_file()
