# SPDX-License-Identifier: Apache-2.0
"""What other tools get wrong, as a user would meet it: each mistake is a test that this program does not make it.

Judged by NumPy's float16, which rounds as IEEE 754 says. The mistakes were found in the tools' sources and
by running them: Transformer Engine, unit-scaling, msprobe, and thresholds that blog articles hand on.
"""

import json

import halfscope
import numpy as np
import pytest
from halfscope import _halfscope
from safetensors.numpy import save_file

from program import run, valid_json_of

CLASSES = ("flushed_to_zero", "subnormal", "normal", "overflow")


def analyze(values, tmp_path, *options, name="weight_grad/w"):
    """The program's entry for one tensor."""
    save_file({name: values}, tmp_path / "log.safetensors")
    out, _ = run("analyze", tmp_path / "log.safetensors", "--json", "-", *options)
    return json.loads(out)["tensors"][0]


def in_float16(values, scale=1.0):
    """Counts by rounding every finite nonzero value."""
    x = (values.astype(np.float64) * scale)[np.isfinite(values) & (values != 0)]
    with np.errstate(over="ignore"):
        half = np.abs(x.astype(np.float16))
    tiny = np.finfo(np.float16).tiny
    return {
        "flushed_to_zero": int(np.sum(half == 0)),
        "subnormal": int(np.sum((half > 0) & (half < tiny))),
        "normal": int(np.sum((half >= tiny) & np.isfinite(half))),
        "overflow": int(np.sum(np.isinf(half))),
    }


def small_gradients():
    random = np.random.default_rng(0)
    return np.exp2(random.uniform(-34, -8, 40000)).astype(np.float32)


@pytest.mark.parametrize("folk", [1e-7, 1e-8, 6e-8, 6.1e-5])
def test_a_folk_threshold_is_not_the_underflow_threshold(folk, tmp_path):
    values = small_gradients()
    found = analyze(values, tmp_path)
    assert {key: found[key] for key in CLASSES} == in_float16(values)
    assert found["flushed_to_zero"] != int(np.sum(values < folk))


def test_boundaries_are_exact(tmp_path):
    """Zero up to 2^-25 (the tie goes to even); subnormal below 2^-14 - 2^-25; infinite from 65520 on."""
    edges = [2.0**-25, 2.0**-14 - 2.0**-25, 65520.0]
    counts = []
    for edge in edges:
        near = np.nextafter(np.float32(edge), np.float32([0, np.inf]))
        around = np.array([near[0], edge, near[1]], np.float32)
        found = analyze(around, tmp_path)
        assert {key: found[key] for key in CLASSES} == in_float16(around)
        counts.append([found[key] for key in CLASSES])
    assert counts == [[2, 1, 0, 0], [0, 1, 2, 0], [0, 0, 1, 2]]


def test_subnormals_are_neither_underflow_nor_ignored(tmp_path):
    values = np.full(1000, 2.0**-20, np.float32)
    found = analyze(values, tmp_path)
    assert (found["flushed_to_zero"], found["subnormal"]) == (0, 1000)
    log = tmp_path / "log.safetensors"
    run("analyze", log, "--fail-if", "flushed_to_zero > 0")
    run("analyze", log, "--fail-if", "subnormal > 99%", expect=4)


def test_minus_zero_is_zero_and_no_share_is_negative(tmp_path):
    values = np.array([-0.0] * 900 + [0.0] * 50 + [1.0] * 50, np.float32)
    found = analyze(values, tmp_path)
    assert (found["total"], found["zero"], found["flushed_to_zero"]) == (1000, 950, 0)
    log = tmp_path / "log.safetensors"
    run("analyze", log, "--fail-if", "flushed_to_zero < 0%", "--fail-if", "zero != 95%")
    advice = halfscope.recommend(log)
    assert advice["flushed_at_1"] == {"count": 0, "of": 50, "share": 0.0}


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_counts_above_2_to_the_24_are_exact(dtype, tmp_path):
    n = 2**24 + 3  # float32 counters hold 2^24 + 4
    values = np.full(n, 2.0**-20, dtype)
    values[7] = 0
    np.save(tmp_path / "g.npy", values)
    out, _ = run("analyze", tmp_path / "g.npy", "--json", "-")
    found = json.loads(out)["tensors"][0]
    assert (found["total"], found["subnormal"], found["zero"]) == (n, n - 1, 1)
    assert int(np.float32(n)) != n
    (low,) = [entry for entry in found["by_scale"] if entry["log2_scale"] == -5]
    assert low["flushed_to_zero"] == n - 1
    assert "16,777,218" in run("analyze", tmp_path / "g.npy")[0]


def test_a_small_gradient_is_not_printed_as_zero(tmp_path):
    found = analyze(np.full(8, 3e-5, np.float32), tmp_path)
    assert found["max_abs"] == float(np.float32(3e-5))
    log = tmp_path / "log.safetensors"
    for command in (["analyze"], ["recommend", "--details"]):
        out, _ = run(*command, log)
        assert "0.0000" not in out.replace("0.00003", "")
        assert "2^-15.0" in out
    run("analyze", log, "--csv", tmp_path / "t.csv")
    assert "0.0000," not in (tmp_path / "t.csv").read_text()
    _, err = run("analyze", log, "--fail-if", "max_abs > 0", expect=4)
    assert "max_abs 2.99999" in err or "max_abs 3e-05" in err


def float32_bits(x):
    return f"{np.float32(x).view(np.uint32):08X}"


@pytest.mark.parametrize(
    ("x", "half"),
    [
        (2.0**-25, 0.0),  # unit-scaling's FPFormat(5, 10) has one more binade below
        (1 + 3 * 2.0**-11, 1 + 2.0**-9),  # its ties do not go to even
        (1 + 2.0**-11, 1.0),
        (65520.0, np.inf),  # it saturates
        (np.nextafter(np.float32(65520), np.float32(0)), 65504.0),
    ],
)
def test_float16_is_ieee_binary16(x, half, tmp_path):
    bits = np.float16(half).view(np.uint16)
    with np.errstate(over="ignore"):
        assert np.float32(x).astype(np.float16).view(np.uint16) == bits
    out, _ = run("emulate", "f32_to_f16", input=float32_bits(x) + "\n")
    assert out.split()[1] == f"{bits:04X}"
    found = analyze(np.array([x], np.float32), tmp_path)
    assert found["flushed_to_zero"] == int(half == 0) and found["overflow"] == int(np.isinf(half))


def test_the_2048x_rule_stands_beside_the_exact_count(tmp_path):
    random = np.random.default_rng(1)
    weight = (random.choice([-1, 1], 100000) * np.exp2(random.normal(-5, 1.5, 100000))).astype(np.float32)
    update = (random.choice([-1, 1], 100000) * np.exp2(random.normal(-17, 2.5, 100000))).astype(np.float32)
    save_file({"weight/w": weight, "update/w": update}, tmp_path / "log.safetensors")
    out, _ = run("analyze", tmp_path / "log.safetensors", "--json", "-")
    (found,) = [t for t in json.loads(out)["tensors"] if t["name"] == "weight/w"]
    w16, u16 = weight.astype(np.float16), update.astype(np.float16)
    lost = (u16 != 0) & (w16 + u16 == w16)
    rule = np.abs(w16.astype(np.float64)) > 2048 * np.abs(update.astype(np.float64))
    assert found["updates"] == 100000
    assert found["update_underflow"] == int(np.sum(u16 == 0))  # another failure than rounding away
    assert found["swamped"] == int(np.sum(lost))
    assert found["rule_2048"] == int(np.sum(rule))
    exact = found["swamped"] + found["update_underflow"]
    assert 1.01 * exact < found["rule_2048"] < 1.5 * exact


def test_dead_relus_are_zeros_and_no_underflow(tmp_path):
    values = np.ones(1000, np.float32)
    values[:600] = 0
    values[999] = 2.0**-30
    found = analyze(values, tmp_path)
    assert (found["zero"], found["flushed_to_zero"]) == (600, 1)
    assert found["underflow_identifiable"] is True
    assert halfscope.recommend(tmp_path / "log.safetensors")["flushed_at_1"]["share"] == 1 / 400


def test_underflow_of_a_float16_log_is_not_identifiable(tmp_path):
    values = np.array([0] * 600 + [2.0**-24] * 100 + [1] * 300, np.float16)
    found = analyze(values, tmp_path)
    assert found["underflow_identifiable"] is False
    assert (found["zero"], found["flushed_to_zero"], found["subnormal"]) == (600, 0, 100)  # the left edge shows
    log = tmp_path / "log.safetensors"
    out, _ = run("recommend", log)
    assert "an underflowed value is already zero" in out
    advice = halfscope.recommend(log)
    assert advice["underflow_not_identifiable"] is True and advice["lowest"] is None
    assert advice["flushed_at_1"]["count"] == [0, 600]


class RunLog:
    """A run log of given values: what a recorder of a mixed-precision run would write."""

    def __init__(self, folder, scaled=True):
        self.folder = folder
        manifest = {"scaled": scaled, "rank": 0, "world_size": 1, "sharded": [], "about": {}}
        self.writer = _halfscope.RunLogWriter(str(folder), json.dumps(manifest))

    def scalars(self, step, loss=None, scale=None, found_inf=None):
        self.writer.write_scalars(
            step=step, loss=loss, learning_rate=None, loss_scale=scale, found_inf=found_inf,
            max_abs_weight_grad=None, max_abs_activation_grad=None, more={},
        )

    def tensor(self, step, name, values, scale=None, scaled=None):
        values = np.array(values, np.float16)
        scaled = name.split("/")[0].endswith("_grad") if scaled is None else scaled
        gathered = _halfscope.Gathered.of(halfscope.binade_table(values), "F16", values.shape, 0.0, 0.0, "F16")
        self.writer.write_tensors(step, [(name, gathered, scaled, scale if scaled else 1.0)])

    def steps(self, *steps, scale):
        """Steps where all is well: two layers."""
        for step in steps:
            self.scalars(step, loss=2.0, scale=scale, found_inf=False)
            for name in ("weight/a.weight", "weight/b.weight", "activation/a", "activation/b"):
                self.tensor(step, name, [0.5, 1.0])
            for name in ("activation_grad/b", "weight_grad/b.weight", "activation_grad/a", "weight_grad/a.weight"):
                self.tensor(step, name, [0.5 * scale, 0.25 * scale], scale)


def test_a_scaled_log_without_its_scale_is_refused_naming_the_flag(tmp_path):
    log = RunLog(tmp_path / "run")
    log.tensor(0, "weight_grad/a.weight", [1024.0], scale=None)
    del log
    for command in ("analyze", "recommend"):
        out, err = run(command, tmp_path / "run", expect=1)
        assert out == "" and "--recorded-scale" in err and "weight_grad/a.weight" in err
    out, _ = run("analyze", tmp_path / "run", "--recorded-scale", "1024", "--json", "-")
    assert json.loads(out)["tensors"][0]["max_abs"] == 1.0
    with pytest.raises(halfscope.BadInput, match="recorded_scale=S"):
        halfscope.analyze(tmp_path / "run")


def events(folder):
    found = valid_json_of("recommend", folder)["overflow_events"]
    assert halfscope.recommend(folder)["overflow_events"] == found
    return found


def overflow_run(folder, changes, loss=2.0, skipped=True):
    """Three steps at loss scale 8192; at the middle one some tensors are replaced."""
    log = RunLog(folder)
    log.steps(0, 1, 2, scale=8192.0)
    log.scalars(1, loss=loss, scale=8192.0, found_inf=skipped)
    for name, values in changes.items():
        log.tensor(1, name, values, 8192.0)
    del log
    return events(folder)


def test_overflow_by_scale_and_nan_in_the_model_are_told_apart(tmp_path):
    inf, nan = np.inf, np.nan
    (by_scale,) = overflow_run(
        tmp_path / "by_scale", {"activation_grad/b": [inf, 1.0], "weight_grad/b.weight": [nan, inf]}
    )
    assert (by_scale["cause"], by_scale["tensor"], by_scale["step"]) == ("by_scale", "activation_grad/b", 1)
    assert by_scale["loss_scale"] == 8192 and by_scale["safe_scale"] == 4096 and by_scale["estimated"] is True

    (in_model,) = overflow_run(
        tmp_path / "in_model",
        {"weight/a.weight": [nan, 1.0], "activation/a": [nan, nan], "activation_grad/b": [nan, nan]},
        loss=nan,
    )
    assert (in_model["cause"], in_model["tensor"]) == ("nan_in_model", "weight/a.weight")
    assert "safe_scale" not in in_model and in_model["why"].endswith(".")

    (at_scale_1,) = overflow_run(
        tmp_path / "at_scale_1", {"activation/b": [inf, 1.0], "activation_grad/b": [inf, nan]}, loss=inf
    )
    assert (at_scale_1["cause"], at_scale_1["tensor"]) == ("at_scale_1", "activation/b")

    texts = {name: run("recommend", tmp_path / name, "--details")[0] for name in ("by_scale", "in_model", "at_scale_1")}
    assert "the loss scale is too large. A scale of at most 4096 (2^12) would have held" in texts["by_scale"]
    assert "it is in the model: no loss scale and no format helps" in texts["in_model"]
    assert "it overflows at scale 1: no smaller loss scale helps" in texts["at_scale_1"]
    for name, text in texts.items():
        assert text.count("Largest magnitudes before it") == 1, name
