# SPDX-License-Identifier: Apache-2.0
"""FP32 state that was rounded to BF16, and weights that never move: findings, page, JSON, gates."""

import re

import numpy as np
import pytest

from program import json_of, run, stdout_of, valid_json_of
from sum_runs import write_rank


def to_bf16(values):
    """Rounds to nearest, ties to even, by integers."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits += 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32)


SIZES = {"layers.0.mlp.weight": 3000, "layers.1.mlp.weight": 3000, "norm.weight": 300}
STEPS = (0, 10, 20, 30)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Weights loaded from BF16; from step 20 on the state is rounded. Norm weights never move."""
    out = tmp_path_factory.mktemp("fp32_state") / "run"
    random = np.random.default_rng(1)
    weights = {name: to_bf16(random.normal(0, 0.02, size)) for name, size in SIZES.items()}
    for step in STEPS:
        tensors = {}
        for name, weight in weights.items():
            gradient = random.normal(0, 0.01, weight.size).astype(np.float32)
            first, second = gradient * np.float32(0.1), gradient**2 * np.float32(0.001)
            if step >= 20:
                first, second = to_bf16(first), to_bf16(second)
            tensors |= {f"weight/{name}": weight, f"weight_grad/{name}": gradient,
                        f"optimizer_state/exp_avg/{name}": first,
                        f"optimizer_state/exp_avg_sq/{name}": second}
            rate = 1e-9 if "norm" in name else 1e-3
            weights[name] = (weight - rate * np.sign(gradient)).astype(np.float32)
        write_rank(out, tensors, step=step)
    return out


def test_the_finding_names_kinds_step_and_cure(log):
    text = re.sub(r"\s+", " ", stdout_of("recommend", log))
    assert ("6 tensors of optimizer state (exp_avg, exp_avg_sq) are held in FP32, but every value is "
            "a BF16 number from step 20 on: they were rounded. Save and load") in text
    text = re.sub(r"\s+", " ", stdout_of("analyze", log))
    assert "FP32 weights (3 tensors) hold only BF16 numbers at step 0: they were loaded" in text


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_json_has_counts_of_every_kind(log, command):
    kinds = {kind["kind"]: kind for kind in json_of(command, log)["fp32_state"]}
    assert list(kinds) == ["exp_avg", "exp_avg_sq", "weight"]
    for name in ("exp_avg", "exp_avg_sq"):
        kind = kinds[name]
        assert (kind["tensors"], kind["steps"], kind["values"]) == (3, 4, 4 * sum(SIZES.values()))
        assert abs(kind["bfloat16"] / kind["values"] - 0.5) < 0.01
        (narrow,) = kind["narrow"]
        assert narrow["is_fault"]
        assert (narrow["format"], narrow["first_step"], narrow["last_step"]) == ("BF16", 20, 30)
        assert narrow["tensors"] == [f"optimizer_state/{name}/{path}" for path in SIZES]
    (loaded,) = kinds["weight"]["narrow"]
    assert not loaded["is_fault"]


@pytest.mark.parametrize("condition, code", [
    ("rounded_state > 0", 4), ("rounded_state > 0 for exp_avg_sq", 4),
    ("rounded_state > 0 for weight", 0), ("frozen_weights > 1% for *norm*", 4),
    ("frozen_weights >= 100%", 4), ("frozen_weights == 300 for weight/norm.weight", 4),
    ("frozen_weights > 1% for *mlp*", 0), ("rounded_state > 0 for activation", 2)])
def test_gates(log, condition, code):
    run("analyze", log, "--fail-if", condition, expect=code)


def test_weights_of_two_checkpoints(log):
    pair = [log / f"tensors/step-{step:06}.safetensors" for step in (0, 30)]
    text = re.sub(r"\s+", " ", stdout_of("weights", *pair))
    assert ("6 tensors of optimizer state (exp_avg, exp_avg_sq) are held in FP32, but every value is "
            "a BF16 number from step 30 on") in text
    run("weights", *pair, "--fail-if", "rounded_state > 0", expect=4)
    run("weights", *pair, "--fail-if", "frozen_weights >= 100%", expect=4)
    run("weights", *pair, "--fail-if", "frozen_weights > 1% for *mlp*", expect=0)
    run("weights", log, "--moments", "--fail-if", "rounded_state > 0", expect=2)
    found = valid_json_of("weights", *pair)
    assert [(kind["kind"], [n["is_fault"] for n in kind["narrow"]]) for kind in found["fp32_state"]] == [
        ("exp_avg", [True]), ("exp_avg_sq", [True]), ("weight", [False])]
    assert "fp32_state" not in json_of("weights", *pair, "--counts")


def test_the_page_has_a_bar_for_each_kind_of_layer(log, tmp_path):
    stdout_of("report", log, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    section = page[page.index('id="weights"'):]
    section = section[:section.index("</details>")]
    assert "norm.weight</span>" in section and "100 % never moved (300 of 300)" in section
    assert section.count('role="listitem"') == 2
    assert "6 FP32 tensors rounded to fewer bits" in section
