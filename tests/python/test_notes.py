# SPDX-License-Identifier: Apache-2.0
"""Notes on reading have an end: ten are printed, then how many more; the JSON has all."""

import json
import logging

import halfscope
import numpy as np
from log_inputs import run


def tensor_files(folder, count):
    paths = [folder / f"g{i}.npy" for i in range(count)]
    for path in paths:
        np.save(path, np.ones(3, np.float32))
    return paths


def told(err):
    return [line.removeprefix("halfscope: ") for line in err.splitlines()]


def test_ten_notes_are_printed_and_the_rest_counted(tmp_path):
    logs = tensor_files(tmp_path, 30)
    out, err = run("analyze", *logs, "--json", "-")
    notes = json.loads(out)["notes"]
    assert len(notes) > 30 and all(any(str(log) in note for note in notes) for log in logs)
    *first, last = told(err)
    assert first == notes[:10]
    assert last.startswith(f"and {len(notes) - 10} more notes; ") and "--json" in last
    for command in ("recommend", "report"):
        options = ["--out", tmp_path / "page.html"] if command == "report" else []
        _, err = run(command, *logs, *options)
        assert len(told(err)) == 11, command
    assert json.loads(run("recommend", *logs, "--json", "-")[0])["notes"] == notes


def test_few_notes_are_all_printed_and_none_is_no_field(tmp_path):
    log, = tensor_files(tmp_path, 1)
    out, err = run("analyze", log, "--json", "-")
    assert told(err) == json.loads(out)["notes"]
    a, b = tmp_path / "1/g.npy", tmp_path / "2/g.npy"
    for path in (a, b):
        path.parent.mkdir()
        np.save(path, np.ones(3, np.float32))
    out, err = run("compare", a, b, "--json", "-")
    assert told(err) == json.loads(out).get("notes", [])


def test_python_warns_of_ten(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "halfscope"):
        found = halfscope.analyze(tensor_files(tmp_path, 30))
    assert len(caplog.messages) == 11 and "more notes" in caplog.messages[-1]
    assert len(found.notes) > 30
