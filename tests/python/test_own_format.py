# SPDX-License-Identifier: Apache-2.0
"""A run is judged in what it computed in: BF16 needs no loss scale, FP32 lost nothing to FP16, and
infinities that a loss scale made decide no format. Runs of the simulator."""

import numpy as np
import pytest
import safetensors.torch
import torch

from program import json_of, stdout_of


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same 12 steps in four precisions, and one whose loss scale is far too large at first."""
    folder = tmp_path_factory.mktemp("runs")
    kinds = {"fp32": [], "fp16": [], "mixed": ["--loss-scale", 1024], "bf16": [], "mixed-bf16": []}
    common = ["--steps", 12, "--record-every", 4, "--seed", 5]
    for precision, more in kinds.items():
        stdout_of("simulate", "mlp", "--out", folder / precision, "--precision", precision, *common,
                  *more)
    stdout_of("simulate", "mlp", "--out", folder / "skips", "--precision", "mixed", "--loss-scale",
              "torch,init_scale=1073741824", "--steps", 12, "--record-every", 1, "--seed", 5)
    return folder


@pytest.mark.parametrize("precision", ["bf16", "mixed-bf16"])
def test_bf16_needs_no_loss_scale(runs, precision):
    found = json_of("recommend", runs / precision)
    assert found["format"] == "bfloat16"
    assert (found["none_needed"], found["static_scale"]) == (True, 1)
    assert "may_use" not in found
    told = stdout_of("recommend", runs / precision)
    line = told.splitlines()[precision == "bf16"]  # the lost updates come before it
    assert line.startswith("BF16 needs no loss scale") and "--format fp16" in line
    assert "GradScaler" not in told and "flush" not in told and "become zero" not in told


def test_bf16_gradients_of_zero_ask_for_no_larger_scale(tmp_path):
    said = {}
    for dtype in (torch.bfloat16, torch.float16):
        log = tmp_path / f"{dtype}.safetensors"
        safetensors.torch.save_file({"weight_grad/a": torch.zeros(9, dtype=dtype)}, log)
        stdout_of("report", log, "--out", tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        said[dtype] = [stdout_of("recommend", log),
                       stdout_of("recommend", log, "--format", "fp16"), page]
    for bf16, fp16 in zip(*said.values()):
        assert "very finite gradient value is zero, and BF16 holds" in bf16
        assert "larger loss scale" not in bf16 and "a larger loss scale, or a run" in fp16


def test_policies_of_a_bf16_run_are_a_what_if(runs):
    told = stdout_of("policies", runs / "bf16")
    assert "The run computed in BF16, which needs no loss scale" in told
    assert "BF16" not in stdout_of("policies", runs / "mixed")
    itself, = (line for line in told.splitlines() if line.startswith("The run itself"))
    assert "flushes" not in itself


def test_the_page_of_a_bf16_run(runs, tmp_path):
    page = tmp_path / "page.html"
    stdout_of("report", runs / "bf16", "--out", page)
    words = page.read_text()
    assert "BF16 needs no loss scale" in words
    assert "May this run" not in words and "Lost without loss scaling" not in words


def test_fp16_of_a_bf16_run_is_a_question(runs):
    found = json_of("recommend", runs / "bf16", "--format", "fp16")
    assert found["format"] == "binary16" and found["may_use"]["fits"] is True
    assert found["may_use"]["decided_by"] == found["limited_by"]["name"]
    told = stdout_of("recommend", runs / "bf16", "--format", "fp16").splitlines()[0]
    assert told.startswith("May this run, which computed in BF16, use FP16? Yes, at a loss scale of ")
    assert found["limited_by"]["name"] in told


def test_many_zeros_that_weigh_nothing_do_no_harm(tmp_path):
    values = torch.tensor([1e4] + [1e-13] * 9, dtype=torch.bfloat16)
    safetensors.torch.save_file({"weight_grad/wide": values}, tmp_path / "g.safetensors")
    found = json_of("recommend", tmp_path / "g.safetensors", "--format", "fp16")
    assert found["above_target"] == ["weight_grad/wide"]
    assert found["may_use"] == {"fits": True, "decided_by": "weight_grad/wide"}


@pytest.mark.parametrize("values, why", [
    ({"weight_grad/a": [1e-4, 2e-3], "activation/b": [1e6, 1.0]}, "activation/b"),
    ({"weight_grad/large": [1e4], "weight_grad/small": [1e-13] * 9}, "weight_grad/small"),
])
def test_no_with_the_tensor_that_decides(tmp_path, values, why):
    tensors = {name: torch.tensor(v, dtype=torch.bfloat16) for name, v in values.items()}
    safetensors.torch.save_file(tensors, tmp_path / "g.safetensors")
    assert json_of("recommend", tmp_path / "g.safetensors")["none_needed"] is True
    found = json_of("recommend", tmp_path / "g.safetensors", "--format", "fp16")
    assert found["may_use"] == {"fits": False, "decided_by": why}
    told = stdout_of("recommend", tmp_path / "g.safetensors", "--format", "fp16")
    assert f"No. {why} decides: " in told.splitlines()[0] and "GradScaler" not in told


def test_logs_of_which_one_is_in_fp16_are_asked_about_fp16(runs):
    assert json_of("recommend", runs / "bf16", runs / "mixed")["format"] == "binary16"
    assert json_of("recommend", runs / "fp32")["format"] == "binary16"


def test_fp32_lost_nothing_to_fp16(runs):
    found = json_of("compare", runs / "fp32", runs / "fp16")
    assert found["own_format"] is True
    found = found["summary"]
    assert found["a"]["lost"] == 0
    lost = found["b"]["lost"]
    assert (lost[0] if isinstance(lost, list) else lost) > 0
    assert lost[1] > 0.1 * found["b"]["total"]  # zeros that may be flushed values, or zeros
    assert found["underflow"] == "unknown"  # what is surely lost is next to nothing
    told = stdout_of("compare", runs / "fp32", runs / "fp16")
    first = told.split("\n\n")[1]
    assert first.startswith("B computed in FP16, A in FP32: A lost nothing to FP16")
    assert "B is worse" in first and "better" not in first
    turned = json_of("compare", runs / "fp16", runs / "fp32")["summary"]
    assert turned["underflow"] == "unknown" and turned["b"]["lost"] == 0


def test_updates_of_fp32_masters_are_applied(runs):
    """What-if counts of FP16 weights would lose most of these updates."""
    what_if = json_of("analyze", runs / "mixed")
    lost = sum(t["update_underflow"] + t["swamped"] for t in what_if["tensors"] if "swamped" in t)
    assert lost > 0
    found = json_of("compare", runs / "fp32", runs / "mixed")["summary"]
    assert found["unmoved"] in ("same", "similar")
    assert json_of("compare", runs / "fp32", runs / "fp16")["summary"]["unmoved"] == "more"


def test_a_what_if_is_asked_of_both(runs):
    """Two runs of one precision, or a scale that is given: what FP16 would make of either."""
    assert "own_format" not in json_of("compare", runs / "fp32", runs / "fp32")
    assert "own_format" not in json_of("compare", runs / "fp32", runs / "fp16", "--loss-scale", 1)


def test_wide_values_do_not_overflow_where_they_were_computed(tmp_path):
    wide = {"weight_grad/w": torch.tensor([1e-9, 1.0]), "activation/x": torch.tensor([1e6, 1.0])}
    half = {"weight_grad/w": torch.tensor([0.0, 1.0]).half(), "activation/x": torch.ones(2).half()}
    for name, tensors in (("wide", wide), ("half", half)):
        safetensors.torch.save_file(tensors, tmp_path / f"{name}.safetensors")
    pair = tmp_path / "wide.safetensors", tmp_path / "half.safetensors"
    found = json_of("compare", *pair)["summary"]
    assert found["a"]["lost"] == 0 and found["b"]["lost"] == 1
    assert found["a"]["flushed_to_zero"] == 1, "a count of what FP16 would make of it"
    assert found["not_finite"] == "same"
    told = stdout_of("compare", *pair)
    assert "B is worse" in told and "Overflow of" not in told


def test_infinities_of_skipped_steps_decide_no_format(runs, tmp_path):
    log = runs / "skips"
    found = json_of("analyze", log, "--formats")["tensors"]
    gradients = [t for t in found if t["role"] == "weight_grad" and t["inf"] + t["nan"] > 0]
    assert gradients, "no step was skipped: the test tests nothing"
    for t in gradients:
        assert t["left_out_of_formats"] == {"nan": t["nan"], "inf": t["inf"]}
        fits = {f["format"]: f["fits_at_1"] for f in t["formats"] if not f.get("saturating")}
        assert fits["bfloat16"] and fits["tf32"]
    told = stdout_of("analyze", log, "--formats")
    count = sum(t["inf"] + t["nan"] for t in found if t["role"].endswith("_grad"))
    assert f"{count:,} " in told and "of skipped steps are left out" in told
    page = tmp_path / "page.html"
    stdout_of("report", log, "--out", page)
    assert "of skipped steps are left out" in page.read_text()


def test_infinities_that_nobody_skipped_still_do(tmp_path):
    values = {"weight_grad/a": torch.tensor([1.0, np.inf], dtype=torch.float16)}
    safetensors.torch.save_file(values, tmp_path / "g.safetensors")
    (found,) = json_of("analyze", tmp_path / "g.safetensors", "--formats")["tensors"]
    assert "left_out_of_formats" not in found
    assert not any(f["fits_at_1"] for f in found["formats"])
