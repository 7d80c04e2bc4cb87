# SPDX-License-Identifier: Apache-2.0
"""Histograms that wandb itself made (tests/data/wandb/make_history.py): what is counted in them
holds the true counts of the values they are of, at every scale; other tools' printed extremes."""

import functools
import json
import math

import pytest

from program import ROOT, json_of, stdout_of, valid_json_of

DATA = ROOT / "tests" / "data" / "wandb"
analyze = functools.partial(valid_json_of, "analyze")


def bounds(count):
    return count if isinstance(count, list) else [count, count]


def true_counts(values, log2_scale):
    """The classes of binary16, by its boundaries: IEEE 754-2019, 4.3.1."""
    scaled = [abs(math.ldexp(x, log2_scale)) for x in values if math.isfinite(x) and x != 0]
    flushed = sum(x <= 2.0**-25 for x in scaled)
    overflow = sum(x >= 65520 for x in scaled)
    normal = sum(2.0**-14 - 2.0**-25 <= x < 65520 for x in scaled)
    return {
        "flushed_to_zero": flushed,
        "subnormal": len(scaled) - flushed - overflow - normal,
        "normal": normal,
        "overflow": overflow,
    }


@pytest.fixture(scope="module")
def values():
    by_step = json.loads((DATA / "values.json").read_text())
    return {key: [float.fromhex(x) for x in list_] for key, list_ in by_step.items()}


def test_true_counts_lie_in_the_intervals(values):
    found = analyze(DATA / "history.jsonl")
    tensors = {t["name"]: t for t in found["tensors"]}
    assert set(tensors) == {key.split("@")[0] for key in values}
    for name, tensor in tensors.items():
        of = [x for key, list_ in values.items() if key.split("@")[0] == name for x in list_]
        finite = [x for x in of if math.isfinite(x)]
        assert tensor["total"] == len(finite)
        assert "nan" not in tensor and "inf" not in tensor
        low, high = bounds(tensor["zero"])
        assert low <= finite.count(0) <= high
        for at in tensor["by_scale"]:
            for field, count in true_counts(finite, at["log2_scale"]).items():
                low, high = bounds(at[field])
                assert low <= count <= high, (name, at["log2_scale"], field)
        magnitudes = [abs(x) for x in finite if x]
        if magnitudes:
            low, high = bounds(tensor["max_abs"])
            assert low <= max(magnitudes) <= high
            assert bounds(tensor["min_abs_nonzero"])[0] <= min(magnitudes)


def test_linear_buckets_do_not_tell_underflow(values):
    tensors = {t["name"]: t for t in analyze(DATA / "history.jsonl")["tensors"]}
    assert tensors["gradients/fc1.weight"]["hidden_by_buckets"]
    assert tensors["gradients/fc1.weight"]["role"] == "weight_grad"
    assert tensors["parameters/fc1.weight"]["role"] == "weight"
    assert tensors["gradients/head.bias"]["zero"] == 30
    gaps = analyze(DATA / "history.jsonl")["could_not_tell"][0]["gaps"]
    assert {"underflow", "nonfinite"} <= set(gaps)


def test_gradients_are_unscaled_by_a_scalar_of_the_history(values):
    found = analyze(DATA / "history.jsonl", "--recorded-scale", "amp/scale", "--step", "100")
    tensor = next(t for t in found["tensors"] if t["name"] == "gradients/fc1.weight")
    true = max(abs(x) for x in values["gradients/fc1.weight@100"]) / 32768
    low, high = bounds(tensor["max_abs"])
    assert low <= true <= high


TE = "2026-01-01 00:00:00,000 - INFO - {} \t\t\t\t iteration={:06d} \t\t\t\t value={:.4f}\n"


def te_log(folder):
    lines = ""
    for step in range(3):
        lines += TE.format("mlp.fc1_wgrad_cur_amax", step, 0.5 + step)
        lines += TE.format("mlp.fc1_wgrad_dynamic_range", step, 20.0)
        lines += TE.format("mlp.fc1_dgrad_cur_amax", step, 0.00003)
    (folder / "statistics.log").write_text(lines)
    return folder / "statistics.log"


def test_magnitudes_without_counts(tmp_path):
    log = te_log(tmp_path)
    found = analyze(log, "--loss-scale", 65536)
    assert found["tensors"] == []
    wgrad = next(t for t in found["peaks"] if t["name"] == "mlp.fc1_wgrad")
    low, high = wgrad["max_abs"]
    assert low <= 2.49995 and 2.50005 <= high < 2.5001
    assert wgrad["max_abs_step"] == 2
    assert wgrad["overflows"] == "yes" and wgrad["flushes"] == "no"
    dgrad = next(t for t in found["peaks"] if t["name"] == "mlp.fc1_dgrad")
    assert dgrad["max_abs"][0] == 0 and 5e-5 <= dgrad["max_abs"][1] < 5.1e-5
    assert dgrad["overflows"] == "no" and dgrad["all_flushed"] == "perhaps"
    text = stdout_of("analyze", log, "--loss-scale", 65536)
    assert "mlp.fc1_wgrad" in text and "overflows" in text


def test_magnitudes_without_counts_bound_the_scale(tmp_path):
    log = te_log(tmp_path)
    advice = json_of("recommend", log)
    # 2.50005 * 2^13 * 2 < 65520, and twice that is not.
    assert advice["highest"] == 8192
    assert advice["limited_by"]["name"] == "mlp.fc1_wgrad"
    assert advice["limited_by"]["step"] == 2
    page = tmp_path / "report.html"
    stdout_of("report", log, "--out", page)
    assert "mlp.fc1_wgrad" in page.read_text().replace("<wbr>", "")
