# SPDX-License-Identifier: Apache-2.0
"""`analyze --formats`: noise against NumPy, what whole tensors and tables give, and text that stays short."""

import functools
import math

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import stdout_of, valid_json_of

analyze = functools.partial(stdout_of, "analyze")


def analyze_json(*arguments):
    return valid_json_of("analyze", *arguments)["tensors"]


def fit_in(tensor, name):
    return next(f for f in tensor["formats"] if f["format"] == name)


@pytest.fixture
def values():
    random = np.random.default_rng(5)
    return (random.choice([-1, 1], 5000) * np.exp2(random.normal(-14, 3, 5000))).astype(np.float32)


def test_noise_and_lost_mass_as_numpy_has_them(tmp_path, values):
    save_file({"weight_grad/w": values}, tmp_path / "g.safetensors")
    tensor = analyze_json(tmp_path / "g.safetensors", "--formats", "--loss-scale", "4")[0]
    fit = fit_in(tensor, "binary16")
    x = values.astype(np.float64) * 2.0 ** fit["best_log2_scale"]
    assert np.abs(x).max() < 65520 <= 2 * np.abs(x).max()
    error = x.astype(np.float16).astype(np.float64) - x
    wanted = 10 * math.log10(np.sum(x * x) / np.sum(error * error))
    assert fit["snr"] == "exact" and abs(fit["snr_db"] - wanted) < 1e-9
    flushed = (4 * values.astype(np.float64)).astype(np.float16) == 0
    magnitudes = np.abs(values.astype(np.float64))
    share = magnitudes[flushed].sum() / magnitudes.sum()
    assert tensor["lost_mass"]["at_loss_scale"]["l1"] == pytest.approx(share, rel=1e-12)
    assert tensor["whole_steps"] == [0] and len(tensor["mx_formats"]) == 5


def test_nothing_of_it_without_the_flag(tmp_path, values):
    save_file({"weight_grad/w": values}, tmp_path / "g.safetensors")
    tensor = analyze_json(tmp_path / "g.safetensors")[0]
    assert not {"formats", "mx_formats", "narrowest", "lost_mass", "whole_steps"} & tensor.keys()
    assert "Narrowest" not in analyze(tmp_path / "g.safetensors")


def test_what_cannot_be_known_is_absent(tmp_path):
    save_file({"weight_grad/z": np.zeros(7, np.float32)}, tmp_path / "z.safetensors")
    tensor = analyze_json(tmp_path / "z.safetensors", "--formats")[0]
    assert "narrowest" not in tensor
    assert all("best_log2_scale" not in f and "snr" not in f for f in tensor["formats"])
    assert not any("fits_at_1" in f or "fits_at_best" in f for f in tensor["formats"])
    assert all("snr" not in f for f in tensor["mx_formats"])


def test_hundreds_of_tensors_stay_a_screenful(tmp_path):
    random = np.random.default_rng(1)
    tensors = {
        f"weight_grad/layer{i}.weight": np.exp2(random.normal(-10 - i % 30, 1 + i % 6, 40)).astype(np.float32)
        for i in range(300)
    }
    save_file(tensors, tmp_path / "many.safetensors")
    text = analyze(tmp_path / "many.safetensors", "--formats")
    assert len(text.splitlines()) < 100
    assert "and " in text and " more" in text


def test_flushed_gradients_that_weigh_little(tmp_path):
    """Their share of all values, and of the norms; nothing where none is flushed."""
    large, tiny = np.float32(1), np.float32(2.0**-30)
    for flushed, share in ((500, "0.50 %"), (1, "< 0.01 %")):
        values = np.full(100_000, large)
        values[:flushed] = tiny
        save_file({"weight_grad/w": values}, tmp_path / "g.safetensors")
        text = " ".join(analyze(tmp_path / "g.safetensors", "--formats").split())
        assert f" are {share} of the values, < 0.01 % of the sum of magnitudes" in text
    save_file({"weight_grad/w": np.ones(9, np.float32)}, tmp_path / "g.safetensors")
    text = analyze(tmp_path / "g.safetensors", "--formats")
    assert "sum of magnitudes" not in text and "weight_grad/w" in text and "in dB" in text
