# SPDX-License-Identifier: Apache-2.0
"""The stories' notebook: it runs, its words are those of the files."""

import re

import nbformat
import pytest

from program import ROOT
from test_notebook import cells_of, outputs_of
from test_stories import told

NOTEBOOK = ROOT / "notebooks" / "07-simulated-failures.ipynb"


@pytest.fixture(scope="module")
def outputs():
    return outputs_of(cells_of(NOTEBOOK))


def test_the_notebook_runs_and_tells_what_the_files_have(outputs):
    text = "".join(out["text"] for out in outputs if out["output_type"] == "stream")
    assert max(map(len, text.splitlines())) <= 96  # no line runs off a page
    for run in told(ROOT, "lost-update")["runs"]:
        assert f"{run['name']}: the copy moves at update {run['copy_first_changes']}" in text
    found = re.findall(r"Trained here: (\d+) runs .* longer: (\d+); .* first loss: (\d+)\.", text)
    assert len(found) == 5 and all(0 < int(known) <= int(runs) for runs, known, _ in found)
    for entry in told(ROOT, "small-gradients")["main"]:
        for run in entry["runs"]:
            row = (rf"{entry['variant']}, seed {entry['seed']} .* {run['end_loss']:.4g} .*"
                   rf" {100 * run['accuracy']:.0f} %")
            assert re.search(row, text)
    runs = [run for run in told(ROOT, "half-weights")["runs"]
            if (run["optimizer"], run["rate"], run["precision"]) == ("sgd", 0.01, "fp16")]
    counts = [run["lost_updates"]["binary16"] for run in runs]
    lost = sorted((part["update_underflow"] + part["swamped"]) / part["updates"] for part in counts)
    right = " ".join(f"{100 * run['accuracy']:.0f}" for run in runs)
    shares = f"{100 * lost[0]:.1f} to {100 * lost[-1]:.1f} %"
    assert re.search(rf"sgd 0\.01 fp16 +{right} .* {shares}", text)


def by(runs, *keys):
    """{values of the keys: run}; of one key, its value."""
    return {run[keys[0]] if len(keys) == 1 else tuple(run[key] for key in keys): run
            for run in runs}


def test_prose_about_small_gradients_is_borne_out():
    """What the notebook says in words of the file that is shipped."""
    found = told(ROOT, "small-gradients")
    exact = {(entry["variant"], entry["seed"]): entry["runs"][0]["end_loss"]
             for entry in found["main"]}
    better = set()
    for entry in found["main"]:
        ends = [loss for (variant, _), loss in exact.items() if variant == entry["variant"]]
        errors = [run["true_error"]["activation_grad"] for run in entry["runs"][1:]]
        for run in entry["runs"][1:]:
            difference = abs(run["end_loss"] - exact[entry["variant"], entry["seed"]])
            assert difference < max(ends) - min(ends)
        assert errors[1]["underflowed"] == 0 < errors[0]["underflowed"]
        assert errors[0]["underflowed_norm"] < 0.1 * errors[0]["relative_error"]
        better.add(errors[1]["relative_error"] < errors[0]["relative_error"])
    assert better == {True, False}
    over = {(run["log2_scale"], run["seed"]): run["end_loss"] / exact["all-anchors", run["seed"]]
            for run in found["sweep"]}
    ranges = {at: [ratio for (scale, _), ratio in over.items() if scale == at]
              for at in (0, -6, -8, -10)}
    assert max(ranges[0] + ranges[-6]) < min(ranges[-8]) and max(ranges[-8]) < 1.15
    assert min(ranges[-10]) > 1.5
    sweep = by(found["sweep"], "log2_scale", "seed")
    assert all(sweep[-10, seed]["accuracy"] == 0 for seed in range(3))
    curves = [sweep[-12, seed]["curve"] for seed in range(3)]
    assert max(max(curve) / curve[0] for curve in curves) > 10
    assert all(sweep[-14, seed][role]["zero"] == sweep[-14, seed][role]["total"]
               for seed in range(3) for role in ("weight_grad", "activation_grad"))
    assert all(run["accuracy"] == 0 for run in found["policies"])
    for variant, seed in {(run["variant"], run["seed"]) for run in found["policies"]}:
        runs = [run for run in found["policies"]
                if (run["variant"], run["seed"]) == (variant, seed)]
        large = [run["end_loss"] for run in runs if run["scales"][0][1] == 2 ** 32]
        assert min(large) > max(run["end_loss"] for run in runs if run["scales"][0][1] < 2 ** 32)


def test_the_conclusion_has_the_numbers_of_the_files():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    rows = dict(re.findall(r"^\| (\d)\. (.*)$", cells[-1].source, re.M))
    moves = sorted(run["copy_first_changes"] for run in told(ROOT, "lost-update")["runs"])
    assert "at update {} or {} ".format(*moves) in rows["1"]
    small = told(ROOT, "small-gradients")
    exact = {entry["seed"]: entry["runs"][0]["end_loss"] for entry in small["main"]
             if entry["variant"] == "all-anchors"}
    over = [run["end_loss"] / exact[run["seed"]] for run in small["sweep"] if run["log2_scale"] == -10]
    assert f"{min(over):.1f} to {max(over):.1f} times" in rows["2"]
    shares = [of["underflowed"] / of["true_nonzero"] for entry in small["main"] for run in entry["runs"][1:]
              for of in [run["true_error"]["activation_grad"]]]
    assert f"up to {100 * max(shares):.1f} %" in rows["2"]
    skipped = [len(run["skipped"]) / run["steps"] for run in told(ROOT, "large-scale")["runs"]
               if (run["policy"], run["growth_interval"]) == ("torch", 200)]
    assert {f"skips {100 * share:.0f} %" in rows["3"] for share in skipped} == {True}
    sums = by(told(ROOT, "long-sums")["runs"], "batch", "accumulate", "seed")
    errors = [run["true_error"][role]["relative_error"]
              / sums[batch, "fp32", seed]["true_error"][role]["relative_error"]
              for (batch, _, seed), run in sums.items() for role in ("weight_grad", "activation_grad")]
    assert f"up to {max(errors):.0f} times the error" in rows["4"]
    right = [100 * run["accuracy"] for run in told(ROOT, "half-weights")["runs"]
             if (run["optimizer"], run["rate"], run["precision"]) == ("sgd", 0.001, "fp16")]
    assert f"{min(right):.0f} to {max(right):.0f} % right" in rows["6"]


def test_prose_about_scales_and_sums_is_borne_out():
    found = told(ROOT, "large-scale")
    runs = by((run for run in found["runs"] if run["growth_interval"] == 200), "policy", "seed")
    first = {key: min(set(range(run["steps"])) - set(run["skipped"]), default=run["steps"])
             for key, run in runs.items()}
    near = {key: next((step for step, scale in run["scales"] if scale <= 2 ** 17), run["steps"])
            for key, run in runs.items()}
    assert {reference["static_scale"] for reference in found["references"]} == {2 ** 15}
    for seed in (0, 1):
        torch = len(runs["torch", seed]["skipped"])
        assert first["tf-contrib", seed] > 3 * first["torch", seed]
        assert len(runs["tf-contrib", seed]["skipped"]) > 3 * torch
        assert near["tf-contrib", seed] == max(
            step for (policy, of), step in near.items() if of == seed and policy != "static")
        assert runs["nnabla", seed]["skipped"] == []
        assert len(runs["static", seed]["skipped"]) == 1000
        assert 0.18 < len(runs["metaseq", seed]["skipped"]) / 1000 < 0.3
        moving = [run for (policy, of), run in runs.items()
                  if of == seed and policy not in ("static", "metaseq")]
        assert max(run["end_loss"] for run in moving) < runs["metaseq", seed]["end_loss"]
    sums = by(told(ROOT, "long-sums")["runs"], "batch", "accumulate", "seed")
    for (batch, way, seed), run in sums.items():
        other = sums[batch, "fp32", seed]
        for role in ("weight_grad", "activation_grad"):
            errors = [of["true_error"][role]["relative_error"] for of in (run, other)]
            least = 2 if (batch, role) == (512, "weight_grad") else 1
            assert errors[0] > least * errors[1] or way == "fp32"
        assert abs(run["end_loss"] / other["end_loss"] - 1) < 0.05


def test_prose_about_weights_of_16_bits_is_borne_out():
    runs = by(told(ROOT, "half-weights")["runs"], "optimizer", "rate", "precision", "seed")

    def lost(rate, precision, form):
        counts = [runs["sgd", rate, precision, seed]["lost_updates"][form] for seed in range(5)]
        shares = [(part["update_underflow"] + part["swamped"]) / part["updates"] for part in counts]
        return min(shares), max(shares)

    def right(rate, precision):
        return [runs["sgd", rate, precision, seed]["accuracy"] for seed in range(5)]

    assert all(min(right(0.1, precision)) > 0.94 for precision in ("fp32", "mixed", "bf16", "fp16"))
    assert lost(0.1, "fp16", "binary16")[1] < 0.35 and lost(0.1, "bf16", "bfloat16")[0] > 0.5
    assert lost(0.01, "bf16", "bfloat16")[0] > 0.9 and max(right(0.01, "bf16")) < 0.4
    assert 0.4 < lost(0.01, "fp16", "binary16")[0] < lost(0.01, "fp16", "binary16")[1] < 0.6
    assert all(a - b < 0.03 for a, b in zip(right(0.01, "fp32"), right(0.01, "fp16")))
    assert lost(0.001, "fp16", "binary16")[0] > 0.9
    assert max(right(0.001, "fp16")) < 0.3 and right(0.001, "mixed") == right(0.001, "fp32")
    adam = [runs["adam", 0.001, "fp16", seed] for seed in range(5)]
    assert all(run["nonfinite_losses"] >= run["steps"] - 2 for run in adam)
