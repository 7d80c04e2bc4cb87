# SPDX-License-Identifier: Apache-2.0
"""What `halfscope reduce` says where sums overflow, vanish or cannot be judged, and of several logs."""
import numpy as np
import pytest

import halfscope
from program import run
from sum_runs import one, reduce, write_rank, write_ranks


def said(*logs, **how):
    return str(halfscope.reduce([str(log) for log in logs], order="sequential", **how))


def test_a_predicted_overflow_is_harmful(tmp_path):
    """Of 64 ranks the sum of 1,024 each is 65,536: beyond binary16."""
    rng = np.random.default_rng(0)
    values = 1024 + rng.standard_normal((8, 500)).astype(np.float32)
    log = write_ranks(tmp_path / "run", values)
    found = reduce(log, "--format", "fp16", "--count", "64", "--order", "sequential")
    (predicted,) = [entry for entry in found if entry["predicted"]]
    assert predicted["overflow"][0] > 400
    assert "of sums overflow (predicted from 8): reduce in FP32." in said(log, format="fp16", counts=[64])


def test_addends_that_round_to_zero(tmp_path):
    """All of them, a part of the magnitudes, and many that do not matter."""
    tiny = np.full((4, 8), 1e-8, np.float32)
    log = write_ranks(tmp_path / "tiny", tiny)
    found = one(log, "--format", "fp16", "--order", "sequential")
    assert (found["flushed"], found["lost"], found["relative_l2"]) == (32, 0, 0)
    assert said(log, format="fp16") == (
        "FP16 all-reduce over 4 ranks loses 0 % of additions, error 0 %, and 100 % of the addends' magnitudes "
        "round to zero first: reduce in FP32.")
    assert "harmless" in said(log, format="bf16")
    tiny[:, :4] = 2.0 ** -24
    assert "and 14.4 % of the addends' magnitudes round" in said(write_ranks(tmp_path / "some", tiny), format="fp16")
    tiny[:, 0] = 1
    log = write_ranks(tmp_path / "few", tiny)
    assert one(log, "--format", "fp16", "--order", "sequential")["flushed"] == 16
    assert said(log, format="fp16").endswith("error 0 %: harmless.")


def test_sums_that_cannot_be_judged(tmp_path):
    values = np.ones((3, 4), np.float32)
    values[0, 0] = np.nan
    assert "(1 sum left out: an addend is infinite or NaN): harmless." in said(
        write_ranks(tmp_path / "some", values), format="bf16")
    values[0] = np.inf
    log = write_ranks(tmp_path / "all", values)
    assert said(log, format="bf16") == (
        "BF16 all-reduce over 3 ranks cannot be judged: every sum has an infinite or NaN addend.")


@pytest.mark.parametrize("dtype, value", [(np.float64, 1e300), (np.float32, 1e20)])
def test_what_binary32_does_not_hold_overflows(tmp_path, dtype, value):
    """A gradient of 1e300, and the squares of 1e20."""
    gradients = np.full((2, 3), value, dtype)
    if dtype == np.float64:
        log = write_ranks(tmp_path / "run", gradients)
        found = one(log, "--format", "fp32", "--order", "sequential")
    else:
        log = write_rank(tmp_path / "run", {"weight_grad/fc.weight": gradients}, "M(\n  (fc): Linear()\n)")
        (found,) = reduce(log, "--format", "fp32", "--order", "sequential")
    assert found["overflow"] == found["sums"] > 0 and "nonfinite" not in found
    assert found["relative_l2"] is None
    assert "FP32" in said(log, format="fp32") and "overflow" in said(log, format="fp32")


def test_errors_beyond_the_sums(tmp_path):
    """In BF16 1 + 2^-8 is 1, and 1 + 3 * 2^-8 is 1 + 2^-6."""
    cancel = np.array([[1], [2.0 ** -8], [-1]], np.float32)
    assert "error 100 %" in said(write_ranks(tmp_path / "cancel", cancel), format="bf16")
    twice = np.array([[1], [3 * 2.0 ** -8], [-1], [-5 * 2.0 ** -9]], np.float32)
    assert "error 2 times the sums" in said(write_ranks(tmp_path / "twice", twice), format="bf16")
    none = np.array([[1], [2.0 ** -8], [-1], [-2.0 ** -8]], np.float32)
    assert "error infinite" in said(write_ranks(tmp_path / "none", none), format="bf16")


def test_sums_of_several_logs_name_theirs(tmp_path):
    logs = [write_ranks(tmp_path / name, np.ones((4, 8), np.float32)) for name in ("one", "two")]
    lines = said(*logs, format="fp16").splitlines()
    assert [line.split(": ")[0] for line in lines] == [str(log) for log in logs]
    table = run("reduce", *logs, "--format", "fp16", "--order", "tree")[0]
    assert "/two:" in table.split("overflow", 1)[1]


@pytest.mark.parametrize("module, covered", [
    ("Softmax(dim=-1)", True), ("Softmax(dim=3)", True), ("Softmax(dim=1)", False), ("Softmax2d()", False)])
def test_softmax_over_the_last_dimension_alone(tmp_path, module, covered):
    x = np.ones((2, 3, 4, 5), np.float32)
    text = f"M(\n  (a): ReLU()\n  (b): {module}\n  (fc): Linear()\n)"
    log = write_rank(tmp_path / "run", {"activation/a": x, "activation/b": x, "activation/fc": np.ones((2, 7), np.float32),
                                        "weight_grad/fc.weight": np.ones((7, 5), np.float32)}, text)
    found = [e for e in reduce(log, "--format", "fp16", "--order", "tree")
             if (e["sum"], e["name"]) == ("softmax", "activation/a")]
    assert [(e["sums"], e["count"]) for e in found] == ([(24, 5)] if covered else [])


def test_shapes_that_differ_between_ranks(tmp_path):
    """Not summed, and told; a gradient that some ranks have is summed over these."""
    for rank, shape in enumerate([(4, 5), (5, 4), (4, 5)]):
        tensors = {"local_weight_grad/w": np.ones(shape, np.float32)}
        if rank > 0:
            tensors["local_weight_grad/b"] = np.ones(6, np.float32)
        write_rank(tmp_path / f"run/rank-{rank:04}", tensors, rank=rank, ranks=3)
    out, err = run("reduce", tmp_path / "run", "--format", "fp16", "--order", "tree")
    assert "local_weight_grad/b" in out and "2 ranks" in out and "local_weight_grad/w" not in out
    assert "1 gradient has another shape on another rank" in err and "'local_weight_grad/w'" in err


def test_an_empty_input_has_no_sums(tmp_path):
    """An expert without tokens."""
    text = "M(\n  (fc): Linear()\n  (norm): LayerNorm()\n)"
    log = write_rank(tmp_path / "run", {"activation/fc": np.ones((0, 8), np.float32),
                                        "activation/norm": np.ones((0, 8), np.float32),
                                        "weight_grad/fc.weight": np.ones((8, 8), np.float32)}, text)
    assert {e["sum"] for e in reduce(log)} == {"gradient_norm"}


def test_ranks_say_once_what_they_say_alike(tmp_path):
    log = write_ranks(tmp_path / "run", np.ones((20, 8), np.float32))
    assert run("reduce", log, "--order", "tree")[1].count("but no histograms") == 1


@pytest.mark.parametrize("how, error", [({"counts": [8.5]}, "counts has 8.5"), ({"counts": [True]}, "counts has True"),
                                        ({"counts": [70000]}, "expected a whole number from 2 to 65536"),
                                        ({"format": 16}, "format is 16"), ({"format": ""}, "format: found ''"),
                                        ({"over": ["ranks"]}, "over is")])
def test_arguments_of_python(tmp_path, how, error):
    log = write_ranks(tmp_path / "run", np.ones((4, 8), np.float32))
    with pytest.raises((ValueError, TypeError)) as caught:
        halfscope.reduce(log, **how)
    assert error in str(caught.value)


def test_an_order_that_is_harmless_is_told(tmp_path):
    """In BF16 a chain of ones stops at 256; pairs of ones, of twos and so on are exact."""
    log = write_ranks(tmp_path / "run", np.ones((512, 4), np.float32))
    told = str(halfscope.reduce(log, format="bf16"))
    assert told == ("BF16 all-reduce over 512 ranks loses 50.1 % of additions, error 50.0 %: reduce in FP32. That "
                    "is in a chain; in a tree the error is 0 %: harmless.")
    assert "That is" not in str(halfscope.reduce(log, format="bf16", order="sequential"))


def test_a_prediction_in_pandas(tmp_path):
    rng = np.random.default_rng(0)
    log = write_ranks(tmp_path / "run", rng.standard_normal((8, 500)).astype(np.float32))
    rows = halfscope.reduce(log, format="bf16", order="tree", counts=[64]).to_pandas()
    measured, predicted = rows[~rows.predicted].iloc[0], rows[rows.predicted].iloc[0]
    assert measured.lost == measured.lost_low == measured.lost_high
    assert 0 <= predicted.lost_low < predicted.lost_high and np.isnan(predicted.lost_share)
    assert 0 < predicted.relative_l2_low < predicted.relative_l2_high < 0.01
    assert "name" in rows and set(rows["sum"]) == {"gradient"}


def test_what_to_do_where_ranks_have_no_local_gradients(tmp_path):
    for rank in range(4):
        write_rank(tmp_path / f"run/rank-{rank:04}", {"weight_grad/fc.weight": np.ones((4, 5), np.float32)},
                   rank=rank, ranks=4)
    err = run("reduce", tmp_path / "run", "--count", "512", expect=1)[1]
    assert "record with local_gradients=True" in err and "4 addends or more" not in err
