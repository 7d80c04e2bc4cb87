# SPDX-License-Identifier: Apache-2.0
"""tools/truth without a GPU: the dry run, whose FP32 gradients are rounded, agrees to the last count."""

import fnmatch
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from small_runs import hooks_get_none_too  # noqa: E402

BUILD = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR",
                                    pathlib.Path(__file__).resolve().parents[2] / "build"))
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools/truth"


@pytest.fixture
def judge_module():
    spec = importlib.util.spec_from_file_location("judge", TOOLS / "judge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("truth")
    subprocess.run([sys.executable, TOOLS / "train.py", "cnn", out, "--dry", "--program",
                    os.environ.get("HALFSCOPE_PROGRAM", BUILD / "halfscope")],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)
    return out, TOOLS / "judge.py"


def judged(trained):
    out, judge = trained
    code = subprocess.run([sys.executable, judge, out], timeout=60, stdout=subprocess.DEVNULL).returncode
    return code, json.loads((out / "judge.json").read_text())


def test_nothing_differs(trained):
    code, results = judged(trained)
    assert code == 0 and [result["run"] for result in results] == ["fp32", "amp"]
    for result in results:
        assert result["same"]["exact"] == result["same"]["compared"] > 0
        assert result["underflow"]["inside"] == result["underflow"]["compared"] > 0
    assert results[0]["swamped"]["swamped"][0] == results[0]["swamped"]["swamped"][1] > 0


def test_what_differs_is_found(trained):
    """Truth that is not what halfscope said."""
    file = trained[0] / "cnn/truth.json"
    original = file.read_text()
    truth = json.loads(original)
    truth["runs"]["fp32"]["same"]["weight_grad/0.weight"]["zero"] += 1
    truth["runs"]["fp32"]["swamped"]["0.weight"]["swamped"] += 1
    for name in ("weight_grad/0.weight", "activation_grad/0"):  # the first follows from the second
        real = truth["runs"]["fp32"]["real"]["tensors"][name]
        real["lost"][0] = real["nonzero"]
    truth["fixed"][0]["overflowing"] = [3]
    file.write_text(json.dumps(truth))
    try:
        code, results = judged(trained)
    finally:
        file.write_text(original)
    assert code == 1 and not results[1]["discrepancies"]
    groups = {(found["kind"], found["group"]) for found in results[0]["discrepancies"]}
    assert groups == {("recorder", "other"), ("scale", "overflow"), ("updates", "other"),
                      ("underflow", "other"), ("underflow", "cascade")}


def test_the_worst_of_each_group_is_printed(judge_module):
    found = [{"task": "lm", "run": run, "kind": "underflow", "text": f"{group} {size}",
              "group": group, "size": size}
             for run in ("fp32", "amp") for group, size in (("cascade", 0.2), ("noise", 1.0))]
    found[0]["size"], found[0]["text"] = 0.9, "the worst"
    lines = list(judge_module.grouped(found))
    assert lines[0].startswith("cascade: 2 in 2 runs: ") and len(lines) == 4
    assert lines[1] == "  worst: lm fp32: underflow: the worst"


def test_gradients_that_are_noise_have_names_of_the_networks(judge_module, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import tasks
    for task, patterns in judge_module.NOISE.items():
        names = [name for name, _ in tasks.tasks(True)[task].model().named_parameters()]
        for pattern in patterns:
            assert fnmatch.filter(names, pattern), (task, pattern)


def test_outputs_without_a_gradient_are_left_out(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import truth
    hooks_get_none_too(monkeypatch)
    model = torch.nn.LSTM(3, 2)
    with truth.activation_gradients(model) as found:
        model(torch.ones(4, 1, 3))[0].sum().backward()
    assert [len(pieces) for pieces in found.values()] == [1, 0, 0]
