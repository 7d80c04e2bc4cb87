# SPDX-License-Identifier: Apache-2.0
"""Every notebook runs in a clean kernel, and says what it says in the repository."""

import base64
import functools
import importlib
import re
import tempfile

import nbformat
import pytest

from page_browser import browser, unreadable
from program import ROOT

__all__ = ["browser"]  # a fixture
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Of PyTorch's sums, whose last bits depend on the processor: there sentences are compared, without
# their numbers and without pictures.
OF_PYTORCH = {"02-record-your-loop", "08-sums-in-16-bits", "10-block-formats", "11-one-line-above-a-cell",
              "12-which-weights-move"}
LONG = {"08-sums-in-16-bits", "10-block-formats", "12-which-weights-move"}  # two minutes of a processor

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT / "tools"))
    notebooks = importlib.import_module("notebooks")


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel on the Python that runs the tests, whichever ones are installed."""
    name, variables = notebooks.kernel_in(tmp_path)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    return name


@functools.lru_cache(maxsize=None)
def cells_of(path):
    """Of the notebook, run once as ./run notebooks runs it."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        kernel, variables = notebooks.kernel_in(folder)
        for variable, value in variables.items():
            patch.setenv(variable, value)
        return notebooks.executed(path, kernel).cells


def outputs_of(cells):
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def said(outputs):
    """A line each: words and numbers, of tables and pictures too."""
    for output in outputs:
        for kind, text in sorted(({"text": output.get("text", "")} | output.get("data", {})).items()):
            if kind in ("text/html", "image/svg+xml"):
                text = re.sub(r"<style>.*?</style>|<[^>]*>", "\n", text, flags=re.DOTALL)
            yield from (line.strip() for line in text.splitlines() if line.strip())


def sentences(outputs):
    """What is said whichever the numbers."""
    plain = [output for output in outputs if "image/svg+xml" not in output.get("data", {})]
    return [re.sub(r"[\d.,]+(e-?\d+)?", "#", line) for line in said(plain)]


@pytest.mark.parametrize("path", [
    pytest.param(path, marks=pytest.mark.exhaustive) if path.stem in LONG else path
    for path in NOTEBOOKS], ids=lambda path: path.stem)
def test_it_runs_and_says_what_it_says_in_the_repository(path):
    if path.stem in OF_PYTORCH:
        pytest.importorskip("torch")
    read = sentences if path.stem in OF_PYTORCH else said
    here = list(read(outputs_of(cells_of(path))))
    there = list(read(outputs_of(nbformat.read(path, as_version=4).cells)))
    assert there == here, f"./run notebooks notebooks/{path.name} writes what it says now"


def pictures_of(outputs):
    for data in (output.get("data", {}) for output in outputs):
        if "image/svg+xml" in data:
            yield data["image/svg+xml"]
        for encoded in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", data.get("text/html", "")):
            yield base64.b64decode(encoded).decode()


def test_nothing_in_the_pictures_is_cut_or_overprinted(browser, tmp_path):  # noqa: F811
    """Of the notebooks in the repository."""
    for path in NOTEBOOKS:
        pictures = list(pictures_of(outputs_of(nbformat.read(path, as_version=4).cells)))
        assert unreadable(browser, pictures, tmp_path / "pictures.html") == [], path.name


def test_notebooks_in_the_repository_are_short_and_hold_no_algorithms():
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        lines = "\n".join(c.source for c in cells if c.cell_type == "code").splitlines()
        assert len(lines) < 80
        assert not any(line.lstrip().startswith(("while ", "class ")) for line in lines)
        assert path.stat().st_size < 600_000
