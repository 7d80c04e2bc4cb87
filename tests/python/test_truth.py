# SPDX-License-Identifier: Apache-2.0
"""tools/truth without a GPU: the dry run, whose FP32 gradients are rounded, agrees to the last count."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

BUILD = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR",
                                    pathlib.Path(__file__).resolve().parents[2] / "build"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("truth")
    tools = pathlib.Path(__file__).resolve().parents[2] / "tools/truth"
    subprocess.run([sys.executable, tools / "train.py", "cnn", out, "--dry", "--program",
                    os.environ.get("HALFSCOPE_PROGRAM", BUILD / "halfscope")],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)
    return out, tools / "judge.py"


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
    real = truth["runs"]["fp32"]["real"]["tensors"]["weight_grad/0.weight"]
    real["lost"][0] = real["nonzero"]
    truth["fixed"][0]["overflowing"] = [3]
    file.write_text(json.dumps(truth))
    try:
        code, results = judged(trained)
    finally:
        file.write_text(original)
    assert code == 1 and not results[1]["discrepancies"]
    kinds = {found["kind"] for found in results[0]["discrepancies"]}
    assert kinds == {"recorder", "underflow", "scale", "updates"}
