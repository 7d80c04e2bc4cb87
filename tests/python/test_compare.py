# SPDX-License-Identifier: Apache-2.0
"""`halfscope compare`: exact numbers against NumPy's own rounding, its JSON against its schema."""
import functools
import math

import numpy as np
import pytest
from safetensors.numpy import save_file

from page_data import data_of
from program import DIGITS, run, valid_json_of

SCALE = 1024.0
compare = functools.partial(run, "compare")
compared = functools.partial(valid_json_of, "compare")


def gradients():
    """Log-normal around 2^-20, some true zeros, and values on FP16's boundaries."""
    random = np.random.default_rng(4)
    values = np.exp2(random.normal(-20, 6, 20000)) * random.choice([-1, 1], 20000)
    values[::17] = 0
    edges = [2.0**-25, -(2.0**-25), 2.0**-24, 65519.96, 65520.0, 2.0**-14, 0.0, -0.0]
    return np.concatenate([values, edges]).astype(np.float32)


def through_fp16(values, scale):
    with np.errstate(over="ignore"):
        return (values * np.float32(scale)).astype(np.float16)


@pytest.fixture
def runs(tmp_path):
    """FP32, FP16 without a scale, and FP16 that carries 2^10."""
    exact = gradients()
    files = {"fp32": exact, "fp16": through_fp16(exact, 1), "scaled": through_fp16(exact, SCALE)}
    for name, values in files.items():
        save_file({"weight_grad/w": values}, tmp_path / f"{name}.safetensors")
    return {name: tmp_path / f"{name}.safetensors" for name in files}, exact


def test_fp32_against_fp16_is_what_numpy_rounds(runs):
    files, exact = runs
    half = through_fp16(exact, 1)
    found = compared(files["fp32"], files["fp16"])
    tensor, = found["tensors"]
    became_zero = int(np.sum((exact != 0) & (half == 0)))
    assert became_zero > 1000
    assert tensor["zero_difference"] == became_zero
    assert tensor["new_zeros"] == became_zero
    assert tensor["a"]["flushed_to_zero"] == became_zero
    assert tensor["b"]["zero"] == int(np.sum(half == 0))
    elements = tensor["elements"]
    wide = half.astype(np.float64)
    finite = np.isfinite(wide)
    tiny = np.float64(2.0**-14)
    assert elements["elements"] == exact.size
    assert elements["became_zero"] == became_zero
    assert elements["became_infinite"] == int(np.sum(np.isinf(half)))
    assert elements["became_subnormal"] == int(np.sum((wide != 0) & (np.abs(wide) < tiny)))
    assert elements["equal"] == int(np.sum(wide == exact))
    assert elements["became_nan"] == elements["became_finite"] == 0
    nonzero = finite & (exact != 0)
    change = np.abs(wide[nonzero] - exact[nonzero].astype(np.float64))
    assert elements["largest_relative_error"] == np.max(change / np.abs(exact[nonzero]))
    assert elements["largest_ulps"] == 0.5
    assert found["summary"]["underflow"] == "more"  # in FP32 nothing was flushed
    assert found["summary"]["a"]["lost"] == 0 and found["summary"]["b"]["lost"] == became_zero


def test_a_loss_scale_saves_what_numpy_says(runs):
    files, exact = runs
    found = compared(files["fp16"], files["scaled"], "--recorded-scale", "1,1024")
    summary, tensor = found["summary"], found["tensors"][0]
    plain, scaled = through_fp16(exact, 1), through_fp16(exact, SCALE)
    assert summary["underflow"] == "less"
    assert summary["a"]["lost_to_zero"] == int(np.sum(plain == 0))
    assert summary["b"]["lost_to_zero"] == int(np.sum(scaled == 0))
    assert summary["overflow"] == "more"
    assert summary["b"]["not_finite"] == int(np.sum(np.isinf(scaled)))
    assert summary["b"]["loss_scales"] == [1024, 1024]
    assert not summary["a"]["underflow_identifiable"]
    assert tensor["zero_difference"] == int(np.sum(scaled == 0)) - int(np.sum(plain == 0)) < 0
    assert tensor["elements"]["became_nonzero"] == int(np.sum((plain == 0) & (scaled != 0)))
    assert tensor["elements"]["unscale"] == "exact"


def test_shifts(runs):
    files, exact = runs
    found = compared(files["fp32"], files["scaled"], "--recorded-scale", "1,1024")
    tensor = found["tensors"][0]
    scaled = through_fp16(exact, SCALE).astype(np.float64) / SCALE

    def facts(values):
        finite = np.abs(values[np.isfinite(values)]).astype(np.float64)
        nonzero = np.sort(finite[finite != 0])
        return finite, math.frexp(nonzero[(nonzero.size - 1) // 2])[1], nonzero[-1]

    (a, median_a, max_a), (b, median_b, max_b) = facts(exact), facts(scaled)
    assert tensor["median_shift"] == median_b - median_a
    assert tensor["max_abs_shift"] == pytest.approx(math.log2(max_b / max_a), abs=1e-12)
    far = max(abs(np.mean(a < 2.0**e) - np.mean(b < 2.0**e)) for e in range(-160, 130))
    assert tensor["largest_share_difference"] == pytest.approx(far, abs=1e-12)


def test_a_run_against_itself(runs):
    files, exact = runs
    found = compared(files["fp32"], files["fp32"])
    tensor, = found["tensors"]
    assert tensor["zero_difference"] == tensor["new_zeros"] == 0
    assert tensor["elements"]["equal"] == exact.size
    assert tensor["largest_share_difference"] == 0 and tensor["median_shift"] == 0
    assert found["summary"]["underflow"] == found["summary"]["overflow"] == "same"


def test_recorded_runs_meet_by_step(tmp_path):
    log = DIGITS
    found = compared(log, log, "--step", ":200")
    assert found["loss_scale"] == "own"
    assert found["summary"]["last_loss"]["step"] == 199
    assert len(found["loss"]["a"]) == 200
    assert all(t["steps"] == [0, 1, 2, 5, 10, 30, 100] for t in found["tensors"])
    assert {tuple(t["elements"]["steps"]) for t in found["tensors"]} == {(0, 100)}
    lost = found["summary"]["updates"]
    assert lost["a"] == lost["b"] and lost["a"]["lost"] > 0


def test_words_for_people(runs):
    files, _ = runs
    done = compare(files["fp16"], files["scaled"], "--recorded-scale", "1,1024")
    assert "B loses fewer gradient values to zero" in done.stdout
    assert "weight_grad/w" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 250
    assert "A: " in done.stdout.splitlines()[0]


def test_bad_input_and_usage(runs, tmp_path):
    files, _ = runs
    save_file({"weight_grad/other": np.ones(3, np.float32)}, tmp_path / "other.safetensors")
    message = compare(files["fp32"], tmp_path / "other.safetensors", expect=1).stderr
    assert "no tensor name occurs in both" in message and "'weight_grad/other'" in message
    compare(files["fp32"], expect=2)
    compare(files["fp32"], files["fp16"], files["fp16"], expect=2)
    assert "--recorded-scale" in compare(files["fp32"], files["fp16"], "--recorded-scale", "1,x",
                                         expect=1).stderr
    compare(files["fp32"], files["fp16"], "--json", files["fp16"], expect=2)
    compare(files["fp32"], tmp_path / "missing", expect=1)


def test_the_page_holds_the_same_numbers(runs, tmp_path):
    files, _ = runs
    page = tmp_path / "page.html"
    found = compared(files["fp32"], files["fp16"], "--out", page)
    html = page.read_text(encoding="utf-8")
    assert data_of(html, "comparison") == found
    assert "<!--halfscope:" not in html


def test_gates(runs, tmp_path):
    files, exact = runs
    became_zero = int(np.sum((exact != 0) & (through_fp16(exact, 1) == 0)))
    pair = files["fp32"], files["fp16"]
    compare(*pair, "--fail-if", f"became_zero > {became_zero}", "--fail-if", "largest_ulps > 0.5")
    done = compare(*pair, "--fail-if", f"became_zero >= {became_zero}", expect=4)
    assert f"became_zero {became_zero:,} >= {became_zero}" in done.stderr
    compare(*pair, "--fail-if", "new_zeros > 1%", expect=4)
    compare(*pair, "--fail-if", "new_zeros > 99% for weight_grad")
    assert "unknown field 'zero'" in compare(*pair, "--fail-if", "zero > 1", expect=2).stderr
    overflowing = int(np.sum(np.abs(exact) >= 65520))
    back = files["fp16"], files["fp32"]  # B is what overflows binary16
    assert overflowing > 0
    compare(*back, "--fail-if", f"overflow > {overflowing}", "--fail-if", "nan > 0")
    compare(*back, "--fail-if", f"overflow >= {overflowing}", expect=4)
    junit = tmp_path / "junit.xml"
    compare(*pair, "--fail-if", "became_zero > 0", "--junit", junit, expect=4)
    assert "<failure" in junit.read_text(encoding="utf-8")


def two_runs(tmp_path, b, a=None):
    """A sound run of one step, and another that holds `b` in place of some of its tensors."""
    random = np.random.default_rng(6)
    sound = {name: random.normal(0, 0.01, 1000).astype(np.float32)
             for name in ("weight_grad/w", "activation/x", "weight/w", "update/w")}
    for name, tensors in (("a", a or {}), ("b", b)):
        save_file({**sound, **tensors}, tmp_path / f"{name}.safetensors")
    return tmp_path / "a.safetensors", tmp_path / "b.safetensors"


def first_words(done):
    """The verdict, which follows the names of the runs."""
    return done.stdout.split("\n\n")[1].splitlines()[0]


def test_a_broken_run_is_called_broken_first(tmp_path):
    broken = np.full(1000, np.nan, np.float32)
    pair = two_runs(tmp_path, {"activation/x": broken})
    assert first_words(compare(*pair)) == "B is broken: NaN or infinity in 1 of 4 tensors, at step 0."
    assert first_words(compare(*reversed(pair))).startswith("A is broken: ")
    assert first_words(compare(pair[1], pair[1])).startswith("Both runs are broken")
    compare(*pair, "--fail-if", "nan >= 1000", expect=4)
    compare(*reversed(pair), "--fail-if", "nan > 0")
    found = compared(*pair)["summary"]
    assert found["b"]["trouble"]["nan_or_infinity"]["values"] == 1000
    assert found["b"]["not_finite_all_roles"] == 1000 and found["b"]["not_finite"] == 0
    assert "trouble" not in found["a"]


def test_overflow_of_activations_is_in_the_answer(tmp_path):
    large = np.full(1000, 1e5, np.float32)
    done = compare(*two_runs(tmp_path, {"activation/x": large}))
    assert first_words(done) == "B is worse."
    assert "Overflow of binary16: none in A; 1,000 values in 1 tensor, at step 0, most in " \
        "activation/x in B." in done.stdout
    assert "No value is NaN" not in done.stdout


def test_no_real_difference_and_no_harm(tmp_path):
    done = compare(*two_runs(tmp_path, {}))
    assert first_words(done) == "No real difference between A and B."
    assert "No tensor is harmed in B" in done.stdout
    assert "No value is NaN, infinite or overflows in either." in done.stdout


def test_overflow_is_never_similar(tmp_path):
    """One value of 20,000 more: similar if it is lost to zero, and more if it overflows."""
    values = np.full(20000, 0.01, np.float32)
    values[:40] = 1e-9
    values[40:80] = 1e6
    for value, field, verdict in ((1e-9, "underflow", "similar"), (1e6, "overflow", "more")):
        other = values.copy()
        other[100] = value
        pair = two_runs(tmp_path, {"weight_grad/w": other}, {"weight_grad/w": values})
        assert compared(*pair)["summary"][field] == verdict
        assert compared(*reversed(pair))["summary"][field] == ("less" if verdict == "more" else verdict)


def test_updates_that_were_zero_already_are_shown(tmp_path):
    """A's updates are zeros: that none of them is lost does not make A the better run, nor the worse
    one, since nothing in FP32 shows that they underflowed."""
    pair = two_runs(tmp_path, {}, {"update/w": np.zeros(1000, np.float32)})
    done = compare(*pair)
    assert first_words(done) == "No real difference between A and B."
    assert "Updates that are exactly zero: 100 % in A, 0 % in B; underflow did not make them" in \
        done.stdout
    row, = (line for line in done.stdout.splitlines() if "updates that are exactly zero" in line)
    assert row.split()[-4:] == ["100", "%", "0", "%"]
    found = compared(*pair)["summary"]
    assert found["updates"]["a"]["zero"] == found["updates"]["a"]["pairs"] == 1000
    assert found["unmoved"] == "same"
    some = np.full(1000, 0.01, np.float32)
    some[:100] = 1e-9  # lost in FP16 weights
    pair = two_runs(tmp_path, {"update/w": some}, {"update/w": np.zeros(1000, np.float32)})
    for ordered in (pair, pair[::-1]):
        assert compared(*ordered)["summary"]["unmoved"] == "unknown"
        assert first_words(compare(*ordered)) == "The runs do not show whether B is better."


def test_updates_lost_is_a_gate(tmp_path):
    tiny = np.full(1000, 1e-9, np.float32)
    pair = two_runs(tmp_path, {"update/w": tiny})
    assert "updates_lost 1,000 of 1,000" in compare(*pair, "--fail-if", "updates_lost > 50%",
                                                    expect=4).stderr
    compare(*reversed(pair), "--fail-if", "updates_lost > 50% for weight")
