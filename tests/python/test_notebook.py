# SPDX-License-Identifier: Apache-2.0
"""Every notebook runs, from its own folder, and shows what it promises."""

import json
import sys

import nbclient
import nbformat
import pytest

import halfscope


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel on the Python that runs the tests, whichever ones are installed."""
    folder = tmp_path / "kernels" / "halfscope"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps({
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "halfscope", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return "halfscope"


def outputs_of(path, kernel):
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name=kernel,
                                     resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_first_look(root, kernel):
    outputs = outputs_of(root / "notebooks" / "01-first-look.ipynb", kernel)
    text = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
    advice = halfscope.recommend(root / "data" / "digits-cnn" / "log")
    assert f"loss scale {advice['static_scale']:.0f}, limited by {advice['limited_by']['name']}" in text
    assert text.count("flushed to zero") > 10
    pictures = [output for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) == 2


def test_notebooks_in_the_repository_are_short_and_hold_no_algorithms(root):
    for path in (root / "notebooks").glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        lines = "\n".join(c.source for c in cells if c.cell_type == "code").splitlines()
        assert len(lines) < 80
        assert not any(line.lstrip().startswith(("while ", "class ")) for line in lines)
