# SPDX-License-Identifier: Apache-2.0
"""Factors between layers: the advised shift is applied to a network in NumPy, in FP16. What
overflowed is finite then, and the outputs have the bits of a format that has no largest number.
Attention scores: no product of recorded rows is beyond the reported bound."""
import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import DIGITS, json_of, stdout_of, words_of

TEXT = """Sequential(
  (0): Linear(in_features=16, out_features=32, bias=True)
  (1): {}
  (2): Linear(in_features=32, out_features=8, bias=True)
)"""


def report(log, command="analyze"):
    return json_of(command, log)


def write_log(folder, tensors, text):
    """A run log of one sampled step."""
    (folder / "tensors").mkdir(parents=True)
    about = {"schema": 1, "gradients": "unscaled", "network": {"text": text}}
    (folder / "run.json").write_text(json.dumps(about))
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()},
              folder / "tensors" / "step-000000.safetensors",
              metadata={"schema": "1", "step": "0", "gradients": "unscaled"})
    return folder


def fp16(x):
    with np.errstate(over="ignore"):
        return x.astype(np.float16)


def unbounded(x):
    """FP16's 11 bits, ties to even, with any exponent."""
    significand, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(significand, 11)), exponent - 11).astype(np.float32)


def forward(x, parts, rounded):
    """Products and sums in FP32; what layers give is rounded."""
    wide = {name: values.astype(np.float32) for name, values in parts.items()}
    with np.errstate(invalid="ignore"):
        fc1 = rounded(x @ wide["0.weight"].T + wide["0.bias"])
        act = np.maximum(fc1, 0)
        fc2 = rounded(act.astype(np.float32) @ wide["2.weight"].T + wide["2.bias"])
    return fc1, act, fc2


@pytest.fixture(scope="module")
def network():
    random = np.random.default_rng(5)
    shapes = {"0.weight": (32, 16), "0.bias": (32,), "2.weight": (8, 32), "2.bias": (8,)}
    parts = {name: (random.uniform(0.25, 2, shape) * random.choice([-1, 1], shape)).astype(np.float16)
             for name, shape in shapes.items()}
    parts["2.weight"] = (parts["2.weight"] * np.float16(0.01)).astype(np.float16)
    return (random.standard_normal((64, 16)) * 30000).astype(np.float32), parts


def log_of(folder, network, rounded, activation="ReLU()"):
    x, parts = network
    tensors = dict(zip(("activation/0", "activation/1", "activation/2"),
                       forward(x, parts, rounded)))
    return write_log(folder, {**tensors, **{f"weight/{n}": v for n, v in parts.items()}},
                     TEXT.format(activation))


def shifted(parts, shift):
    k = shift["log2"]
    factors = {shift["layer"] + ".weight": -k, shift["layer"] + ".bias": -k,
               shift["next"] + ".weight": k}
    return {name: np.ldexp(values, factors.get(name, 0)).astype(np.float16)
            for name, values in parts.items()}


def test_the_shift_cures_the_overflow_and_keeps_the_bits(tmp_path, network):
    x, parts = network
    assert np.isinf(forward(x, parts, fp16)[0]).any()
    log = log_of(tmp_path / "run", network, unbounded)
    (shift,) = report(log)["layer_shifts"]
    assert shift == report(log, "recommend")["layer_shifts"][0]
    assert (shift["layer"], shift["next"], shift["in_sequence"]) == ("0", "2", True)
    assert shift["of"] == 32 * 16 + 32 and shift["flushed_to_zero"] == 0 == shift["subnormal"]
    exact, k = forward(x, parts, unbounded), shift["log2"]
    fc1, _, fc2 = forward(x, shifted(parts, shift), fp16)
    assert np.isfinite(fc1).all() and np.isfinite(fc2).all()
    assert 2 * float(np.abs(fc1).max()) < 65520 <= 4 * float(np.abs(fc1).max())
    assert shift["max_abs"] == float(np.abs(exact[0]).max())
    np.testing.assert_array_equal(np.ldexp(fc1.astype(np.float32), k), exact[0])
    np.testing.assert_array_equal(fc2.astype(np.float32), exact[2])


def test_the_run_that_overflowed_names_the_least_factor(tmp_path, network):
    x, parts = network
    (shift,) = report(log_of(tmp_path / "run", network, fp16))["layer_shifts"]
    assert shift["censored"] and shift["max_abs"] == 65520 and shift["log2"] == 2


def test_the_answer_says_it(tmp_path, network):
    log = log_of(tmp_path / "run", network, unbounded)
    said = words_of("recommend", log)
    (shift,) = report(log)["layer_shifts"]
    k = shift["log2"]
    assert (f"{shift['activation']} fits FP16 if weights and bias of 0 are multiplied by 2^-{k}, "
            f"and the weights of 2 by {2**k} (2^{k}). The network computes the same.") in said
    stdout_of("report", log, "--out", tmp_path / "page.html")
    assert f"multiplied by 2^-{k}" in (tmp_path / "page.html").read_text()


def test_what_does_not_commute_has_no_shift(tmp_path, network):
    assert "layer_shifts" not in report(log_of(tmp_path / "run", network, unbounded, "GELU()"))


def test_healthy_runs_have_none():
    found = report(DIGITS)
    assert "layer_shifts" not in found and "attention_scores" not in found


@pytest.mark.parametrize("size", [1, 40])
def test_no_score_is_beyond_the_bound(tmp_path, size):
    random = np.random.default_rng(7)
    q, k = (fp16(random.standard_normal((2, 12, 64)) * size) for _ in range(2))
    k[1, 3] = q[1, 5]  # as large as a score of these rows can be
    log = write_log(tmp_path / "run", {"activation/attn.q_proj": q, "activation/attn.k_proj": k},
                    "Net(\n  (attn): Attention(\n    (q_proj): Linear(64, 64)\n  )\n)")
    (found,) = report(log)["attention_scores"]
    scores = np.abs(q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2))
    norms = [np.sqrt((t.astype(np.float64) ** 2).sum(-1)).max() for t in (q, k)]
    assert scores.max() <= found["at_most"]
    assert found["at_most"] == pytest.approx(norms[0] * norms[1], rel=1e-12)
    assert found["query_norm"] >= norms[0] and found["key_norm"] >= norms[1]
    assert found["can_overflow"] == (found["at_most"] >= 65520) == (size == 40)
    stdout_of("count", log, "--out", tmp_path / "log.hst")
    assert report(tmp_path / "log.hst")["attention_scores"] == [found]
    said = words_of("recommend", log)
    assert ("Attention scores can overflow FP16" in said) == (size == 40)
    if size == 40:
        with np.errstate(over="ignore"):
            after = q.astype(np.float32) / np.sqrt(found["enough_head"])
        assert np.isfinite(fp16(after @ k.astype(np.float32).swapaxes(1, 2))).all()


def test_layers_of_whole_tensors_are_asked_for_alone(tmp_path):
    """--tensor selects before anything is read."""
    random = np.random.default_rng(7)
    names = ("activation/attn.q_proj", "activation/attn.k_proj")
    log = write_log(tmp_path / "run", {n: fp16(random.standard_normal((4, 8))) for n in names}, "")
    assert len(report(log)["attention_scores"]) == 1
    alone = json_of("analyze", log, "--tensor", "*q_proj")
    assert "attention_scores" not in alone
