# SPDX-License-Identifier: Apache-2.0
"""`halfscope simulate --ranks`: data-parallel training whose gradients are known before they are
added up. The judge adds in NumPy's float16 and float32."""
import json

import numpy as np
import pytest
from safetensors.numpy import load_file

import halfscope
from program import run


def simulate(out, *arguments, expect=0):
    return run("simulate", "lenet", "--out", out, "--batch", 4, "--threads", 1, "--seed", 3, *arguments,
               expect=expect)


def sampled(out, rank, step=0):
    return load_file(out / f"rank-{rank:04}/tensors/step-{step:06}.safetensors")


def scalars(out, tag):
    return [s[tag] for s in halfscope.analyze(out).logs[0].steps if tag in s]


@pytest.mark.parametrize("precision, dtype", [("fp32", np.float32), ("mixed", np.float16)])
@pytest.mark.parametrize("ranks, microbatches", [(4, 1), (3, 2)])
def test_gradients_are_divided_and_added_in_the_order_of_ranks(tmp_path, precision, dtype, ranks, microbatches):
    out = tmp_path / "run"
    simulate(out, "--ranks", ranks, "--accumulation-steps", microbatches, "--precision", precision, "--steps", 2,
             "--sample-every", 1, "--record-every", 1)
    for step in range(2):
        steps = [sampled(out, rank, step) for rank in range(ranks)]
        gradients = {name for name in steps[0] if name.startswith("weight_grad/")}
        assert len(gradients) == 8
        for name in gradients:
            total = None
            for tensors in steps:
                local = tensors["local_" + name]
                assert local.dtype == dtype
                if microbatches > 1:
                    assert local.shape == (microbatches, *tensors[name].shape)
                    own = local[0]
                    for more in local[1:]:
                        own = own + more
                else:
                    own = local
                # One rounding: the product of two binary32 numbers is exact in binary64.
                share = (own.astype(np.float64) * np.float64(np.float32(1 / ranks))).astype(dtype)
                total = share if total is None else total + share
            for tensors in steps:
                assert np.array_equal(tensors[name], total), name


def test_the_batches_are_those_of_one_rank_with_as_many_microbatches(tmp_path):
    """So the mean gradient is the same but for rounding."""
    simulate(tmp_path / "one", "--accumulation-steps", 4, "--steps", 1)
    simulate(tmp_path / "four", "--ranks", 4, "--steps", 1)
    one = load_file(tmp_path / "one/tensors/step-000000.safetensors")
    four = sampled(tmp_path / "four", 0)
    for name in one:
        if name.startswith("weight_grad/"):
            assert np.allclose(one[name], four[name], rtol=1e-4, atol=1e-7), name


def test_every_rank_has_a_log(tmp_path):
    out = tmp_path / "run"
    simulate(out, "--ranks", 3, "--steps", 30, "--precision", "mixed", "--loss-scale", 1024)
    for rank in range(3):
        manifest = json.loads((out / f"rank-{rank:04}/run.json").read_text())
        assert (manifest["rank"], manifest["world_size"]) == (rank, 3)
        assert "local_weight_grad" in manifest["sharded"]
        assert manifest["simulation"]["ranks"] == 3
    largest = [abs(sampled(out, rank)["local_weight_grad/fc2.weight"].astype(float)).max() for rank in range(3)]
    assert len(set(largest)) == 3  # other data
    text, notes = run("analyze", out, "--json", "-")
    assert notes == "" and "local_weight_grad/fc2.weight" in text
    assert "The 3 ranks agree" in run("report", out, "--out", tmp_path / "p.md")[0] + (tmp_path / "p.md").read_text()


def test_the_report_answers_for_the_all_reduce(tmp_path):
    out = tmp_path / "run"
    simulate(out, "--ranks", 8, "--steps", 2, "--precision", "mixed")
    run("report", out, "--out", tmp_path / "page.md")
    assert "* BF16 all-reduce over 8 ranks loses " in (tmp_path / "page.md").read_text()
    found = {e.format: e for e in halfscope.reduce(out, over="ranks", order="sequential") if e.name == "*"}
    assert found["bfloat16"].count == 8 and found["bfloat16"].relative_l2 > found["binary16"].relative_l2 > 0
    assert found["bfloat16"].additions == 7 * found["bfloat16"].sums


def test_an_interrupted_run_goes_on(tmp_path):
    how = ("--ranks", 2, "--precision", "mixed", "--loss-scale", "torch", "--checkpoint-every", 2)
    simulate(tmp_path / "whole", *how, "--steps", 6, "--sample-every", 1, "--record-every", 1)
    simulate(tmp_path / "part", *how, "--steps", 4, "--sample-every", 1, "--record-every", 1)
    run("simulate", "--resume", "--out", tmp_path / "part", "--steps", 6, "--threads", 1)
    for rank in range(2):
        whole, part = (sampled(tmp_path / name, rank, 5) for name in ("whole", "part"))
        assert whole.keys() == part.keys()
        assert all(np.array_equal(whole[name], part[name]) for name in whole)


def test_a_run_of_ranks_is_replaced_and_refused_like_any_other(tmp_path):
    out = tmp_path / "run"
    simulate(out, "--ranks", 3, "--steps", 1)
    assert "holds a run already" in simulate(out, "--steps", 1, expect=1)[1]
    simulate(out, "--ranks", 2, "--steps", 1, "--force")
    assert sorted(p.name for p in out.iterdir()) == ["checkpoint", "rank-0000", "rank-0001"]
    assert "has ranks 2, and 4 was asked for" in run(
        "simulate", "--resume", "--out", out, "--ranks", 4, expect=1)[1]
    assert "one rank; remove it, or --ranks" in simulate(
        tmp_path / "other", "--ranks", 2, "--true-error", expect=2)[1]
    assert "remove --accumulation-steps and --ranks" in simulate(
        tmp_path / "other", "--ranks", 2, "--precision", "mixed", "--loss-scale", "als", expect=1)[1]


def test_each_microbatch_has_its_own_largest_magnitude(tmp_path):
    """Not the largest so far: that of the next one may be less."""
    out = tmp_path / "run"
    simulate(out, "--accumulation-steps", 4, "--steps", 12, "--precision", "mixed", "--loss-scale", 256)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(out)).Reload()
    rows = np.array([[e.value for e in events.Scalars(f"max_abs/activation_grad/microbatch-{i}")] for i in range(4)])
    assert rows.shape == (4, 12) and (rows[1:] < rows[:-1]).any()
    assert np.allclose(rows.max(0) / 256, [e.value for e in events.Scalars("max_abs/activation_grad")])
