"""Notebooks run from top to bottom, and draw what they promise."""

import warnings
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("**/*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_a_notebook_runs(notebook, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)  # pictures go into the notebook, as they do for people
    book = nbformat.read(notebook, as_version=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the Jupyter machinery, which is not ours to mend
        client = nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": notebook.parent}})
        client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/png") >= 4
    assert not [output for output in outputs if output.get("name") == "stderr"], "a cell complained"
