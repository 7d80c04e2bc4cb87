# SPDX-License-Identifier: Apache-2.0
"""`compare` judges updates in what each run keeps its weights in, and names formats rightly. Zeros of
BF16 are no underflow where nothing recorded comes near what it flushes. Runs of the simulator."""

import functools
import numpy as np
import pytest
import safetensors.torch
import torch

from program import json_of, stdout_of, valid_json_of, words, words_of

PRECISIONS = ("fp32", "fp16", "bf16", "mixed", "mixed-bf16")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for precision in PRECISIONS:
        stdout_of("simulate", "lenet", "--precision", precision, "--steps", 60, "--out",
                  folder / precision)
    return folder


compared = functools.partial(valid_json_of, "compare")


def verdict(*arguments):
    return words(stdout_of("compare", *arguments).split("\n\n")[1])


def to_bits(x, precision):
    """Rounded to nearest, ties to even; no value here is subnormal."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, precision)), exponent - precision)


def lost_in_samples(run, precision):
    lost = nonzero = 0
    for path in sorted((run / "tensors").glob("*.safetensors")):
        tensors = safetensors.torch.load_file(path)
        for name, update in tensors.items():
            if not name.startswith("update/"):
                continue
            u = to_bits(update.double().numpy(), precision)
            w = tensors["weight/" + name.removeprefix("update/")].double().numpy()
            nonzero += int((u != 0).sum())
            lost += int(((u != 0) & (to_bits(w + u, precision) == w)).sum())
    return lost, nonzero


def test_updates_are_lost_by_the_bits_of_the_weights_that_keep_them(runs):
    found = compared(runs / "fp16", runs / "bf16")["summary"]
    lost, nonzero = lost_in_samples(runs / "bf16", 8)
    assert lost > nonzero / 2
    assert found["updates_lost"]["b"] == found["updates"]["b"]["lost"] == lost
    assert found["updates"]["b"]["updates"] == nonzero
    assert found["updates_lost"]["a"] < lost / 2
    assert found["weights_kept_in"] == {"a": "F16", "b": "BF16"}
    assert found["unmoved"] == "more"
    told = verdict(runs / "fp16", runs / "bf16")
    assert "B lost nothing to FP16's range" in told and "B is better." not in told
    assert "More weight updates are lost" in told
    assert "A keeps its weights in FP16 (11 significant bits), B in BF16 (8 significant bits)." in told


@pytest.mark.parametrize("narrow, master", [("bf16", "mixed-bf16"), ("fp16", "mixed")])
def test_a_master_copy_loses_nothing(runs, narrow, master):
    """Both computed in one precision; one of them keeps FP32 masters."""
    found = compared(runs / narrow, runs / master)["summary"]
    assert found["updates_lost"]["a"] > 0 and found["updates_lost"]["b"] == 0
    assert found["weights_kept_in"]["b"] == "F32" and found["unmoved"] == "less"


def test_two_runs_with_wide_weights_are_a_what_if(runs):
    found = compared(runs / "fp32", runs / "fp32")["summary"]
    assert found["updates_lost"]["a"] == found["updates"]["a"]["lost"] > 0
    assert "weights_kept_in" not in found


@pytest.mark.parametrize("a, b, format_", [
    ("fp32", "bf16", "bfloat16"), ("bf16", "mixed-bf16", "bfloat16"), ("fp32", "fp16", "binary16"),
    ("fp16", "bf16", "binary16"), ("fp32", "fp32", "binary16")])
def test_without_a_format_it_is_the_one_that_a_run_computed_in(runs, a, b, format_):
    assert compared(runs / a, runs / b)["format"] == format_
    third = stdout_of("compare", runs / a, runs / b).splitlines()[2]
    assert third.startswith(f"In {format_}")
    assert ("which a run computed in" in third) == (format_ == "bfloat16")
    assert compared(runs / a, runs / b, "--format", "fp16")["format"] == "binary16"


@pytest.mark.parametrize("more", [[], ["--format", "bf16"]])
def test_no_verdict_rests_on_zeros_far_above_what_bf16_flushes(runs, more):
    pair = runs / "fp32", runs / "mixed-bf16"
    found = compared(*pair, *more)
    summary = found["summary"]
    assert summary["new_zeros"] != 0 and summary["b"]["zero"] > summary["a"]["zero"]
    assert summary["b"]["lost"][0] == 0 and summary["b"]["lost"][1] > 0
    assert summary["underflow"] == "same" and summary["unmoved"] in ("same", "similar")
    assert not any(t["harmed"] for t in found["tensors"])
    told = words(stdout_of("compare", *pair, *more))
    assert "B computed in BF16, A in FP32" in told and "No real difference" in told
    assert "B was computed in FP16" not in told and "underflow that happened" not in told
    assert "Zeros of B are most likely no underflow: BF16 flushes what is below 2^-134" in told


def test_bf16_weights_are_worse_by_their_updates_alone(runs):
    found = compared(runs / "fp32", runs / "bf16")
    assert found["summary"]["underflow"] == "same" and found["summary"]["unmoved"] == "more"
    assert all(t["role"] == "weight" for t in found["tensors"] if t["harmed"])
    assert "B is worse." in verdict(runs / "fp32", runs / "bf16")


def test_zeros_near_what_bf16_flushes_are_lost(tmp_path):
    """Values down to 2^-130: what is zero in BF16 was flushed, as far as is known."""
    exact = np.exp2(np.linspace(-140, -100, 4000)).astype(np.float32)
    tensors = {"wide": torch.tensor(exact), "narrow": torch.tensor(exact).bfloat16()}
    for name, values in tensors.items():
        safetensors.torch.save_file({"weight_grad/w": values}, tmp_path / f"{name}.safetensors")
    pair = tmp_path / "wide.safetensors", tmp_path / "narrow.safetensors"
    found = compared(*pair)["summary"]
    flushed = int((tensors["narrow"] == 0).sum())
    assert flushed > 0 and found["b"]["lost"] == flushed and found["underflow"] == "more"
    assert "B was computed in BF16 and A in FP32: at one step of one model, new zeros are underflow" in \
        words(stdout_of("compare", *pair))


def test_zero_updates_that_underflow_may_have_made_count(tmp_path):
    """All updates of B underflowed in FP16 before they were recorded: none is left to be lost."""
    weights, updates = np.full(1000, 0.5, np.float32), np.full(1000, 1e-9, np.float32)
    for name, dtype in (("wide", torch.float32), ("half", torch.float16)):
        tensors = {"weight/w": weights, "update/w": updates, "weight_grad/w": updates * 1e5}
        safetensors.torch.save_file({key: torch.tensor(t).to(dtype) for key, t in tensors.items()},
                                    tmp_path / f"{name}.safetensors")
    found = compared(tmp_path / "wide.safetensors", tmp_path / "half.safetensors")["summary"]
    assert found["updates"]["b"]["zero"] == 1000 and found["updates_lost"] == {"a": 0, "b": 0}
    assert found["unmoved"] == "more"


def test_recommend_says_that_a_run_keeps_its_weights_in_bf16(runs):
    lost, nonzero = lost_in_samples(runs / "bf16", 8)
    lines = stdout_of("recommend", runs / "bf16").splitlines()
    assert lines[1].startswith("BF16 needs no loss scale")
    assert lines[0] == (  # what harms most is said first
        f"Weights are stored in BF16, and {100 * lost / nonzero:.1f} % of {nonzero:,} sampled weight "
        "updates are lost: all of these are rounded away in the sum. Use FP32 master "
        "weights: in PyTorch, FP32 parameters under torch.autocast.")
    assert "alone" not in "\n".join(lines)
    assert "Weights are stored in" not in stdout_of("recommend", runs / "mixed-bf16")


def test_hidden_underflow_gives_no_lowest_scale_of_layers(tmp_path):
    """2^10 in one layer, 2^-20 in another, zeros in both: which zeros underflowed is not known."""
    tensors = {"weight_grad/big.weight": [1024.0, 0.0], "weight_grad/small.weight": [2.0**-24, 0.0]}
    for dtype in (torch.float16, torch.float32):
        values = {name: torch.tensor(v + [1 + 2.0**-20]).to(dtype) for name, v in tensors.items()}
        safetensors.torch.save_file(values, tmp_path / "g.safetensors")
        asked = tmp_path / "g.safetensors", "--headroom", 8, "--negligible-loss", 0
        found = json_of("recommend", *asked)
        hidden = dtype == torch.float16
        assert found["above_target"], "the test tests nothing"
        assert ("per_layer" in found) != hidden
        assert any(k["kind"] == "tensor" for k in found.get("keep_in_fp32", [])) != hidden
        told = stdout_of("recommend", *asked, "--details")
        assert ("there is no lowest scale" in told) == hidden
        assert ("Keep in FP32" in told or "scales that serve it" in told) != hidden


def test_skips_are_counted_and_dynamic_settings_replayed(tmp_path):
    stdout_of("simulate", "lenet", "--precision", "mixed", "--loss-scale", "torch", "--steps", 300,
              "--out", tmp_path / "run")
    found = json_of("recommend", tmp_path / "run")
    told = words_of("recommend", tmp_path / "run", "--details")
    assert found["skip"]["exceedances"] == 0 and found["skip"]["method"] == "binomial"
    assert "0 of 300 steps overflow (at most 0.99 %, 95 %, one-sided)." in told
    dynamic = found["dynamic"]
    assert dynamic["growth_interval"] == 2000
    replayed = json_of("policies", tmp_path / "run", "--policy",
                       f"torch,init_scale={dynamic['init']},growth_interval=2000")[0]
    low, high = len(replayed["skipped"]), len(replayed["skipped"] + replayed["unknown"])
    rate = low / 300 if low == high else [low / 300, high / 300]
    assert dynamic["expected_skip_rate"] == rate


def test_one_microbatch_is_held_at_a_time(tmp_path):
    memory = {}
    for count in (1, 4):
        stdout_of("simulate", "lenet", "--steps", 2, "--batch", 8, "--accumulation-steps", count,
                  "--out", tmp_path / str(count))
        memory[count] = json_of("recommend", tmp_path / str(count))["footprint"]
    assert memory[4].pop("microbatches") == 4 and "microbatches" not in memory[1]
    assert memory[4] == memory[1]
    assert "Weights and activations of a microbatch take " in stdout_of(
        "recommend", tmp_path / "4", "--details")
