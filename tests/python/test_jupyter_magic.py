# SPDX-License-Identifier: Apache-2.0
"""%%halfscope in a kernel: the cell runs as without it, its optimizers are recorded, and the answer is
displayed."""
import importlib
import json
import re

import nbclient
import nbformat
import pytest

from program import ROOT

pytest.importorskip("torch")

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT / "tools"))
    notebooks = importlib.import_module("notebooks")

CELLS = {
    "define": """
%load_ext halfscope
import torch
def train(steps, bad=None):
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        if step == bad:
            raise RuntimeError("the cell's own")
        model(torch.randn(5, 8)).square().mean().backward()
        optimizer.step()
    return steps""",
    "record": "%%halfscope --every 1 --sample-every 2 answer\nx = train(5)\n!echo shell\nx + 1",
    "variables": "print(x, answer.static_scale, answer.logs, answer.roles_found)",
    "quiet": "%%halfscope --out quiet\ntrain(2);",
    "two": "%%halfscope --every 1 both\ntrain(2), train(3)",
    "both": "print(len(both))",
    "raises": "%%halfscope --out raising\nz = 7\ntrain(5, bad=2)\nz = 8",
    "after": "import os\nbefore = [*os.walk('raising')]\ntrain(2)\nprint(z, [*os.walk('raising')] == before)",
    "syntax": "%%halfscope\n1 +",
    "nothing": "%%halfscope\nfor i in range(2):\n    i",
    "taken": "%%halfscope --out quiet\nz = 9",
    "unknown": "%%halfscope --evry 3\nz = 9",
    "zero": "%%halfscope --every 0\nz = 9",
    "z": "print(z)",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """{name of a cell: its outputs}, of one kernel."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        kernel, variables = notebooks.kernel_in(tmp_path_factory.mktemp("kernel"))
        for variable, value in variables.items():
            patch.setenv(variable, value)
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.values()])
        nbclient.NotebookClient(book, timeout=100, kernel_name=kernel, allow_errors=True,
                                resources={"metadata": {"path": str(folder)}}).execute()
    return dict(zip(CELLS, (cell.outputs for cell in book.cells)))


def printed(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream")


def shown(outputs, kind):
    return [output.data["text/plain"] for output in outputs if output.output_type == kind]


def error_of(outputs):
    [error] = [output for output in outputs if output.output_type == "error"]
    return re.sub("\x1b\\[[0-9;]*m", "", "\n".join(error.traceback))


def test_the_value_of_the_cell_and_the_answer_are_shown(outputs):
    cell = outputs["record"]
    assert shown(cell, "execute_result") == ["6"]
    assert printed(cell).split() == ["shell", "Recorded", "in", "runs/cell-1"]
    [answer] = [output.data for output in cell if output.output_type == "display_data"]
    assert "static loss scale" in answer["text/plain"] and "scaler = torch.amp.GradScaler" in answer["text/html"]
    assert "data:image/svg+xml" in answer["text/html"] or "vl-convert" in answer["text/html"]


def test_variables_of_the_cell_and_the_answer(outputs):
    x, scale, log, roles = printed(outputs["variables"]).split(maxsplit=3)
    assert (x, log) == ("5", "['runs/cell-1']") and float(scale) >= 1
    assert "update" in json.loads(roles.replace("'", '"'))  # of sampled steps


def test_a_semicolon_and_a_folder(outputs):
    assert shown(outputs["quiet"], "execute_result") == []
    assert printed(outputs["quiet"]) == "Recorded in quiet\n"


def test_several_optimizers_have_an_answer_each(outputs):
    assert re.findall(r"Recorded in runs/cell-2/optimizer-\d", printed(outputs["two"]))
    assert len(shown(outputs["two"], "display_data")) == 2
    assert printed(outputs["both"]) == "2\n"


def test_an_exception_ends_the_cell_as_its_own(outputs):
    said = error_of(outputs["raises"])
    assert said.rstrip().endswith("RuntimeError: the cell's own") and "----> 2 train(5, bad=2)" in said
    assert "jupyter.py" not in said and "Recorded" not in printed(outputs["raises"])
    assert printed(outputs["after"]) == "7 True\n"  # recording ended
    assert "SyntaxError" in error_of(outputs["syntax"])


@pytest.mark.parametrize("name, text", [
    ("nothing", "%%halfscope: nothing was recorded: no "),
    ("taken", "holds a run log already (run.json), and a log is never written over"),
    ("unknown", "UsageError: unrecognized arguments: --evry"),
    ("zero", "UsageError: %%halfscope: every is 0, expected a number of steps above 0"),
])
def test_what_cannot_be_recorded_is_said_in_one_line(outputs, name, text):
    assert text in printed(outputs[name]) and printed(outputs[name]).strip().count("\n") == 0
    assert printed(outputs["z"]) == "7\n"
