# SPDX-License-Identifier: Apache-2.0
"""halfscope analyze --recipe: what recipes of block formats do to the operands of products.

The judge quantises with NumPy, by the formulas of the papers, from value tables of its own."""

import json
import math

import halfscope
import numpy as np
import pytest
from program import run
from safetensors.numpy import save_file
from selenium.webdriver.common.by import By

from page_browser import browser, open_page, wait_until_drawn

__all__ = ["browser"]  # a fixture

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E4M3 = np.array([(m / 8 if e == 0 else 1 + m / 8) * 2.0 ** (max(e, 1) - 7)
                 for e in range(16) for m in range(8)][:-1])


def nearest(table, x):
    """Index of the nearest magnitude, ties to the even index; beyond the last one it saturates."""
    middle = (table[1:] + table[:-1]) / 2
    low = np.searchsorted(middle, x, "left")
    high = np.searchsorted(middle, x, "right")
    return np.where(low % 2 == 0, low, high)


def mxfp8_floor(x):
    """OCP MX 1.0, 6.3: scaled magnitudes, scales, table."""
    blocks = np.abs(x.reshape(-1, 32))
    largest = np.where(blocks.max(axis=1) > 0, blocks.max(axis=1), 1)  # any scale has zero
    scale = 2.0 ** (np.floor(np.log2(largest)) - 8)
    return blocks / scale[:, None], scale[:, None], E4M3, 464


def nvfp4(x):
    """Transformer Engine: block-by-block scales in E4M3, in binary32 arithmetic."""
    one = np.float32(1)
    blocks = np.abs(x.reshape(-1, 16))
    encode = np.float32(2688) / blocks.max()
    unit = encode * (one / np.float32(6))
    scale = E4M3[nearest(E4M3, (blocks.max(axis=1) * unit).astype(np.float32))].astype(np.float32)
    decode = one / encode
    factor = one / np.where(scale > 0, scale * decode, one)
    return (blocks * factor[:, None]).astype(np.float32), \
        scale.astype(float)[:, None] * float(decode), E2M1, 7


def judged(x, quantiser):
    """The numbers of a RecipeFit."""
    scaled, scale, table, overflow = quantiser(x)
    codes = nearest(table, scaled.astype(float))
    q, wanted = table[codes] * scale, np.abs(x.reshape(scaled.shape)).astype(float)
    error = q - wanted
    below = np.where(codes > 0, table[codes] - table[codes - 1], table[1])
    above = np.where(codes + 1 < len(table), table[np.minimum(codes + 1, len(table) - 1)] - table[codes],
                     table[-1] - table[-2])
    some = (wanted != 0) & (scale > 0)
    gaps = error[some] / (np.where(error > 0, below, above) * scale)[some]
    return {"values": np.count_nonzero(x), "flushed_to_zero": np.sum((wanted != 0) & (q == 0)),
            "saturated": np.sum(wanted > overflow * scale), "at_largest": np.sum(codes == len(table) - 1),
            "snr_db": 10 * math.log10(np.sum(wanted**2) / np.sum(error**2)),
            "bias": gaps.mean(), "bias_error": gaps.std() / math.sqrt(gaps.size)}


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def tensors():
    spread = normal(3, 96, 128) * np.exp(2 * normal(4, 96, 128))
    spread[0, :40] = 0
    return {"weight/a.weight": normal(1, 64, 128) / 50, "activation/a": normal(2, 96, 128),
            "activation_grad/a": normal(5, 96, 64) * np.float32(1e-5), "activation_grad/b": spread,
            "weight/bias": normal(6, 64), "weight/odd.weight": normal(7, 10, 30),
            "optimizer_state/a.weight.exp_avg": normal(8, 64, 128)}


@pytest.fixture(scope="module")
def log(tensors, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "net.safetensors"
    save_file({name: np.ascontiguousarray(x) for name, x in tensors.items()}, path)
    return path


def fits(log, *recipes):
    found = json.loads(run("analyze", log, "--json", "-", "--recipe", ",".join(recipes)).stdout)
    return {(t["name"], fit["asked"], fit["columns"]): fit
            for t in found["tensors"] for fit in t.get("recipes", [])}


@pytest.mark.parametrize("name, quantiser", [("mxfp8-e4m3-floor", mxfp8_floor), ("nvfp4", nvfp4)])
def test_numbers_are_those_of_numpy(log, tensors, name, quantiser):
    found = fits(log, name)
    for tensor in ("weight/a.weight", "activation/a", "activation_grad/a", "activation_grad/b"):
        for columns in (False, True):
            x = np.ascontiguousarray(tensors[tensor].T if columns else tensors[tensor])
            fit = found[tensor, name, columns]
            for field, wanted in judged(x, quantiser).items():
                assert fit[field] == pytest.approx(wanted, rel=1e-9, abs=1e-12), (tensor, columns, field)
            assert fit["recipe"] == name and fit["in_nan_blocks"] == 0


def test_only_operands_of_products_are_quantised(log):
    names = {name for name, _, _ in fits(log, "mxfp8:floor")}
    assert names == {"weight/a.weight", "activation/a", "activation_grad/a", "activation_grad/b",
                     "weight/odd.weight"}


def test_a_framework_has_a_recipe_for_each_operand(log):
    found = fits(log, "nvfp4-training", "fp8-block")
    recipe = {(name, asked, columns): fit["recipe"] for (name, asked, columns), fit in found.items()}
    assert recipe["weight/a.weight", "nvfp4-training", False] == "nvfp4-2d"
    assert ("weight/a.weight", "nvfp4-training", True) not in recipe  # the same copy
    assert recipe["activation/a", "nvfp4-training", False] == "nvfp4"
    assert recipe["activation/a", "nvfp4-training", True] == "nvfp4-hadamard"
    assert recipe["activation_grad/a", "nvfp4-training", False] == "nvfp4-stochastic"
    assert recipe["activation_grad/a", "nvfp4-training", True] == "nvfp4-hadamard-stochastic"
    assert recipe["weight/a.weight", "fp8-block", False] == "fp8-128x128"
    assert recipe["activation_grad/a", "fp8-block", True] == "fp8-1x128"


def test_stochastic_rounding_has_no_bias_and_more_noise(tmp_path):
    save_file({"weight/a.weight": normal(13, 1024, 512)}, tmp_path / "x.safetensors")
    found = fits(tmp_path / "x.safetensors", "nvfp4", "nvfp4-stochastic")
    for columns in (False, True):
        plain = found["weight/a.weight", "nvfp4", columns]
        random = found["weight/a.weight", "nvfp4-stochastic", columns]
        assert abs(random["bias"]) < 0.3 * abs(plain["bias"])  # what is left is clipped
        assert plain["bias"] < -10 * plain["bias_error"]
        assert random["snr_db"] < plain["snr_db"] - 2
    text = " ".join(run("analyze", tmp_path / "x.safetensors", "--recipe", "nvfp4,nvfp4-stochastic")
                    .stdout.split())
    assert "By nvfp4 rounding changes the mean magnitude of 2 of 2 operands, most in weight/a.weight" in text
    assert "By nvfp4-stochastic rounding" not in text


def test_hadamard_keeps_the_mass(log):
    found = fits(log, "nvfp4", "nvfp4-hadamard")
    outliers = "activation_grad/b"
    assert found[outliers, "nvfp4-hadamard", False]["snr_db"] < found[outliers, "nvfp4", False]["snr_db"]
    assert found["activation/a", "nvfp4-hadamard", False]["snr_db"] == pytest.approx(
        found["activation/a", "nvfp4", False]["snr_db"], abs=0.5)


def test_nan_and_infinities_cost_their_blocks(tmp_path):
    x = normal(9, 4, 64)
    x[1, 5], x[2, 40] = np.nan, np.inf
    save_file({"weight/a.weight": x}, tmp_path / "x.safetensors")
    fit = fits(tmp_path / "x.safetensors", "mxfp8:rceil")["weight/a.weight", "mxfp8-e4m3-rceil", False]
    assert fit["in_nan_blocks"] == 62 and fit["values"] == 4 * 64 - 64


def test_a_tensor_lost_to_nan_is_said(tmp_path):
    x = normal(14, 32, 32)
    x[3, 3] = np.nan  # the tensor's scale is NaN
    save_file({"weight/a.weight": x}, tmp_path / "x.safetensors")
    fit = fits(tmp_path / "x.safetensors", "nvfp4")["weight/a.weight", "nvfp4", False]
    assert fit["in_nan_blocks"] == 32 * 32 - 1 and fit["values"] == 0 and "snr_db" not in fit
    text = " ".join(run("analyze", tmp_path / "x.safetensors", "--recipe", "nvfp4").stdout.split())
    assert "By nvfp4 2,046 values become infinity or NaN, or stand beside one in their block; most are " \
        "in weight/a.weight." in text


def test_values_that_become_infinity_are_in_no_other_number(tmp_path):
    x = normal(15, 32, 32)
    x[0, 0] = 50000
    save_file({"weight/a.weight": x}, tmp_path / "x.safetensors")
    fit = fits(tmp_path / "x.safetensors", "hifloat8")["weight/a.weight", "hifloat8", False]
    assert fit["in_nan_blocks"] == 1 and fit["values"] == 32 * 32 - 1 and fit["snr_db"] > 30


def test_many_zeros_are_much_worse_than_normal_whatever_the_ratio(tmp_path):
    x = normal(16, 256, 256)
    x[:, ::2] *= np.float32(2.0**-12)
    x[:, 1] *= 64
    save_file({"activation_grad/fc": x, "weight/fc.weight": normal(17, 256, 256)}, tmp_path / "x.safetensors")
    fit = fits(tmp_path / "x.safetensors", "nvfp4")["activation_grad/fc", "nvfp4", False]
    assert fit["flushed_to_zero"] > 0.3 * fit["values"] and fit["snr_db"] > fit["normal_snr_db"] - 3
    assert "Keep in BF16: fc." in run("analyze", tmp_path / "x.safetensors", "--recipe", "nvfp4").stdout


def test_noise_in_what_a_layer_puts_out_concerns_the_layers_that_read_it(tmp_path):
    x = normal(18, 256, 256)
    x[:, ::2] *= np.float32(2.0**-12)
    save_file({"activation/norm": x, "weight/fc.weight": normal(19, 256, 256)}, tmp_path / "x.safetensors")
    out = " ".join(run("analyze", tmp_path / "x.safetensors", "--recipe", "nvfp4").stdout.split())
    assert "Keep in BF16 the layers that read activation/norm." in out and "DisableQuantization" not in out


@pytest.mark.parametrize("scale", [1024, 1000])
def test_loss_scales_need_be_no_powers_of_two(tmp_path, scale):
    x = normal(20, 64, 64)
    save_file({"weight_grad/fc.weight": x}, tmp_path / "x.safetensors")
    found = json.loads(run("analyze", tmp_path / "x.safetensors", "--recipe", "mxfp8", "--recorded-scale",
                           scale, "--json", "-").stdout)
    (fit,) = found["tensors"][0]["recipes"]
    assert fit["recipe"] == "mxfp8-e4m3-rceil" and fit["values"] == 64 * 64 and fit["snr_db"] > 31


def test_a_name_counts_once_and_has_many_spellings(log):
    assert fits(log, "NVFP4", "nvfp4").keys() == fits(log, "nvfp4").keys()
    assert {recipe for _, recipe, _ in fits(log, "mxfp8:e5m2-floor", "mxfp8")} == {
        "mxfp8-e5m2-floor", "mxfp8-e4m3-rceil"}


def test_a_log_without_full_matrices_says_so(tmp_path):
    save_file({"weight/bias": normal(21, 64)}, tmp_path / "x.safetensors")
    found = run("analyze", tmp_path / "x.safetensors", "--recipe", "nvfp4")
    assert "no recipe of block formats was tried" in found.stderr


def test_sizes_that_a_recipe_does_not_allow_are_named(log):
    found = fits(log, "nvfp4-hadamard")["weight/odd.weight", "nvfp4-hadamard", False]
    assert set(found) == {"asked", "recipe", "columns"}
    text = " ".join(run("analyze", log, "--recipe", "nvfp4-hadamard").stdout.split())
    assert "nvfp4-hadamard does not allow the sizes of 1 tensor: weight/odd.weight. It is left out." in text


def test_layers_to_keep_come_with_lines(tmp_path):
    noisy = np.float32(1.99) * np.sign(normal(10, 256, 128))  # scaled to 509, clipped to 448
    save_file({"activation_grad/blocks.0.fc": normal(12, 256, 128), "activation_grad/blocks.1.fc": noisy},
              tmp_path / "net.safetensors")
    out = run("analyze", tmp_path / "net.safetensors", "--recipe", "mxfp8:floor").stdout
    text = " ".join(out.split())
    assert "2 are much worse than numbers of a normal distribution" in text
    assert "The worst is activation_grad/blocks.1.fc" in text and "Keep in BF16: blocks.1.fc." in text
    for line in (r"layer_name_regex_pattern: '^(blocks\.1\.fc)$'", 'name not in {"blocks.1.fc"}',
                 "--quantize.linear.mx.filter_fqns=blocks.1.fc", 'pattern: "*blocks.1.fc", config: bf16'):
        assert line in out


def test_the_page_draws_each_operand(log, tmp_path, browser):
    run("report", log, "--recipe", "nvfp4,mxfp8:floor", "--out", tmp_path / "page.html")
    open_page(browser, tmp_path / "page.html")
    browser.execute_script("document.getElementById('recipes').open = true")
    wait_until_drawn(browser)
    drawn = browser.execute_script("return window.halfscopeViews['recipes'].data('recipes')")
    found = {(row["name"], row["recipe"], row["product"]): row["db"] for row in drawn}
    of = fits(log, "nvfp4", "mxfp8:floor")
    assert len(found) == len(of)
    assert found["activation/a", "nvfp4", "weight gradient"] == pytest.approx(
        of["activation/a", "nvfp4", True]["snr_db"])
    assert "Recipes of block formats" in browser.find_element(By.ID, "recipes").text


def test_python_has_the_same_numbers(log):
    rows = {(t.name, fit.columns): fit for t in halfscope.analyze(log, recipes="mxfp8:floor").tensors
            for fit in t.get("recipes", [])}
    of = fits(log, "mxfp8:floor")
    assert {(name, columns): fit["snr_db"] for (name, _, columns), fit in of.items()} == {
        key: fit.snr_db for key, fit in rows.items()}
    with pytest.raises(ValueError, match="unknown recipe 'nvfp5'"):
        halfscope.analyze(log, recipes=["nvfp5"])
    with pytest.raises(TypeError, match="recipes is 5, expected names of recipes"):
        halfscope.analyze(log, recipes=5)


@pytest.mark.parametrize("name, why", [
    ("nvfp5", "unknown recipe 'nvfp5'; fp8-block, nvfp4-training and those of halfscope quantise"),
    ("fp8-delayed", "recipe fp8-delayed needs the largest magnitudes of earlier steps"),
    ("", "unknown recipe ''")])
def test_a_wrong_name_says_what_there_is(log, name, why):
    found = run("analyze", log, "--recipe", name, expect=2)
    assert f"--recipe: {why}" in found.stderr and found.stderr.count("\n") == 1
