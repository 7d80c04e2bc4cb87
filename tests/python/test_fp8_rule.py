# SPDX-License-Identifier: Apache-2.0
"""FP8: `recommend --format e4m3` and the page's section on formats answer by one rule, and name the two
questions: a scale for each tensor, and one loss scale for all gradients. The judge rounds in PyTorch."""
import re

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import json_of, stdout_of

KEPT_FROM = 2.0**-10  # E4M3's smallest number is 2^-9; half of it becomes zero
OVERFLOW = 464.0      # between 448, its largest number, and 480, which it does not have


@pytest.fixture(scope="module")
def values():
    """Two gradients of widely spread magnitudes, and a weight."""
    random = np.random.default_rng(0)
    spread = {"weight_grad/a": (-16, -2), "weight_grad/b": (-30, -8), "weight/a": (-6, 0)}
    return {name: np.exp2(random.uniform(low, high, 5000)).astype(np.float32)
            for name, (low, high) in spread.items()}


@pytest.fixture(scope="module")
def log(values, tmp_path_factory):
    out = tmp_path_factory.mktemp("fp8") / "log.safetensors"
    save_file(values, out)
    return out


def best_scale(largest):
    scale = 1.0
    while largest * scale * 2 < OVERFLOW:
        scale *= 2
    while largest * scale >= OVERFLOW:
        scale /= 2
    return scale


def share_of_zero(values, scale_of):
    """Of all gradients."""
    gradients = [x.astype(np.float64) for name, x in values.items() if name.startswith("weight_grad/")]
    zero = sum(int((x * scale_of(x) <= KEPT_FROM).sum()) for x in gradients)
    return zero / sum(x.size for x in gradients)


def test_both_shares_are_counted(log, values):
    found = json_of("recommend", log, "--format", "e4m3")
    said = found["answer"]["headline"]
    own, scale, one = re.search(
        r"and ([\d.]+) % of the gradient values become zero\. With one loss scale for all gradients instead, "
        r"of (\d+).*, ([\d.]+) % become zero", said).groups()
    assert float(own) / 100 == pytest.approx(share_of_zero(values, lambda x: best_scale(x.max())), rel=0.01)
    assert float(one) / 100 == pytest.approx(share_of_zero(values, lambda x: float(scale)), rel=0.01)
    assert float(one) > float(own) and float(scale) == found["static_scale"]
    own_scales = found["own_scales"]
    fit, tensors = map(int, re.search(r"(\d+) of (\d+) tensors fit E4M3", said).groups())
    assert (own_scales["fit"], own_scales["tensors"]) == (fit, tensors)
    zero = own_scales["flushed_to_zero"]
    gradients = sum(x.size for name, x in values.items() if name.startswith("weight_grad/"))
    assert zero["count"] == round(share_of_zero(values, lambda x: best_scale(x.max())) * gradients)
    assert zero["of"] == gradients and zero["share"] == zero["count"] / gradients
    assert found["flushed_at_recommended"]["count"] == round(
        share_of_zero(values, lambda x: float(scale)) * gradients)


def test_the_page_and_recommend_count_the_same_fits(log):
    said = json_of("recommend", log, "--format", "e4m3")["answer"]["headline"]
    fit, tensors = map(int, re.search(r"(\d+) of (\d+) tensors fit E4M3", said).groups())
    found = json_of("analyze", log, "--formats")["tensors"]
    fits = [f["fits_at_best"] for t in found for f in t.get("formats", [])
            if f["format"] == "e4m3" and not f["saturating"] and f.get("best_log2_scale") is not None]
    assert (fit, tensors) == (sum(fits), len(fits))


def test_the_page_has_scale_share_and_noise_in_one_table(log, tmp_path):
    stdout_of("report", log, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    table = page[page.index("Narrowest format by role"):]
    for heading in ("become zero as it is", "best scale", "become zero", "dB"):
        assert heading in table[:table.index("</thead>")]


def test_a_16_bit_format_has_the_loss_scale_alone(log):
    said = stdout_of("recommend", log, "--format", "fp16")
    assert "scale for each tensor" not in said
    assert "own_scales" not in json_of("recommend", log, "--format", "fp16")
