# SPDX-License-Identifier: Apache-2.0
"""`halfscope weights --moments`: Adam's moments in few bits. The judge is NumPy, and ml_dtypes rounds."""

import json

import numpy as np
import pytest

from program import run, schema
from sum_runs import write_rank

ml_dtypes = pytest.importorskip("ml_dtypes")
F32, ADAM = np.float32, "torch.optim.adamw.AdamW"
BETAS, EPS = (0.9, 0.99), 1e-8
NEAREST = ["bfloat16", "binary16", "e4m3-1x256"]


def stored(values, format):
    """Values as they are read back, rounded to nearest even; in E4M3 with torchao's scales."""
    if format == "binary32":
        return values
    if format != "e4m3-1x256":
        return values.astype({"bfloat16": ml_dtypes.bfloat16, "binary16": np.float16}[format]).astype(F32)
    out = np.empty_like(values)
    for at in range(0, len(values), 256):
        block = values[at:at + 256]
        scale = max(np.abs(block).max(), F32(1e-12)) / F32(448)
        out[at:at + 256] = (block / scale).astype(ml_dtypes.float8_e4m3fn).astype(F32) * scale
    return out


def replayed(gradients, steps, format):
    """(m, v) before the last step stores them, and v as stored."""
    m, v = np.zeros_like(gradients[0]), np.zeros_like(gradients[0])
    for step in range(steps):
        g = gradients[step % len(gradients)]
        m = stored(m, format)
        v = stored(v, format)
        m = m + F32(1 - BETAS[0]) * (g - m)
        v = v * F32(BETAS[1]) + F32(1 - BETAS[1]) * g * g
    return m, v, stored(m, format), stored(v, format)


def step_of(m, v, steps):
    m, v = m.astype(np.float64), v.astype(np.float64)
    return m / (1 - BETAS[0]**steps) / (np.sqrt(v) / np.sqrt(1 - BETAS[1]**steps) + EPS)


def write_log(folder, tensors, optimizer=ADAM, **how):
    """tensors: [step][name]. Sampled steps 10, 20, ..."""
    for step, named in enumerate(tensors, 1):
        write_rank(folder, named, step=10 * step, **how)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["optimizer"] = {"class": optimizer, "param_groups": [{"betas": BETAS, "eps": EPS, "lr": 1e-3}]}
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def moments(log, steps):
    found = json.loads(run("weights", log, "--moments", "--moment-steps", steps, "--json", "-").stdout)
    schema("moments").validate(found)
    return found


def shift(differences, weights):
    """A ratio of sums, and its standard error over blocks of 256."""
    d, w = ([x[at:at + 256].sum() for part in parts for x in [part] for at in range(0, len(part), 256)]
            for parts in (differences, weights))
    d, w = np.array(d), np.array(w)
    rest = d - d.sum() / w.sum() * w
    return d.sum() / w.sum(), np.sqrt(len(d) / (len(d) - 1) * (rest**2).sum()) / w.sum()


@pytest.mark.parametrize("scale", [None, 1024])
def test_means_and_counts_are_those_of_numpy(tmp_path, scale):
    random, steps = np.random.default_rng(5), 230
    sizes = {name: 10.0**random.integers(-6, 1, n) for name, n in (("a", 700), ("b", 4096))}
    plain = [{name: (random.standard_normal(len(x)) * x).astype(F32) for name, x in sizes.items()}
             for _ in range(4)]
    log = write_log(tmp_path / "log", [{f"weight_grad/{name}": g * F32(scale or 1) for name, g in at.items()}
                                       for at in plain], scale=scale)
    found = moments(log, steps)
    assert (found["tensors"], found["elements"], found["gradients"]) == (2, 4796, 4)
    assert (found["first_step"], found["last_step"], found["from_state"]) == (10, 40, False)
    nearest = {one["format"]: one for one in found["stored"] if one["rounding"] == "nearest"}
    assert list(nearest) == NEAREST
    for format, one in nearest.items():
        v_terms, steps_terms, weights, counts = [], [], [], np.zeros(3, int)
        for name in sizes:
            gradients = [at[name] for at in plain]
            m32, v32, *_ = replayed(gradients, steps, "binary32")
            m, v, m_stored, v_stored = replayed(gradients, steps, format)
            v_terms.append(v_stored.astype(np.float64) / v32 - 1)
            s, s32 = step_of(m, v, steps), step_of(m32, v32, steps)
            steps_terms.append((s - s32) * np.sign(s32))
            weights.append(np.abs(s32))
            counts += [(v_stored > 0).sum(), 0, ((v_stored == 0) & (m_stored != 0)).sum()]
            if format != "e4m3-1x256":
                counts[1] += ((v_stored > 0) & (stored(v_stored * F32(BETAS[1]), format) == v_stored)).sum()
        assert [one["second"]["mean"], one["second"]["error"]] == pytest.approx(
            shift(v_terms, [np.ones_like(x) for x in v_terms]), rel=1e-9)
        assert [one["step_both"]["mean"], one["step_both"]["error"]] == pytest.approx(
            shift(steps_terms, weights), rel=1e-9)
        assert (one["positive"], one["vanished"]) == (counts[0], counts[2])
        if format == "e4m3-1x256":  # 1 % is less than half of a unit
            assert one["stalled"] == one["positive"]
        else:
            assert one["stalled"] == counts[1]


def test_the_answer_names_what_may_be_16_bits_and_the_lines(tmp_path):
    random = np.random.default_rng(6)
    log = write_log(tmp_path / "log", [{"weight_grad/a": random.standard_normal(2048).astype(F32)}
                                       for _ in range(30)])
    said = " ".join(run("weights", log, "--moments", "--moment-steps", 300).stdout.split())
    assert "exp_avg may be stored in BF16, rounded to nearest" in said
    assert "exp_avg_dtype=torch.bfloat16" in said and "--exp-avg-dtype bf16" in said
    assert "30 sampled steps, 10 to 300, taken as consecutive" in said


def test_numbers_have_no_exponents(tmp_path):
    random = np.random.default_rng(5)
    sizes = 10.0**random.integers(-6, 1, 4096)
    log = write_log(tmp_path / "log", [{"weight_grad/a": (random.standard_normal(4096) * sizes).astype(F32)}])
    said = run("weights", log, "--moments", "--moment-steps", 300).stdout
    errors = [one[measure]["error"] * 100 for one in moments(log, 300)["stored"]
              for measure in ("second", "step_first", "step_second", "step_both")]
    assert max(errors) >= 10 and "±" in said and "e+" not in said


def test_one_block_has_no_error(tmp_path):
    log = write_log(tmp_path / "log", [{"weight_grad/a": np.ones(3, F32)}])
    said = run("weights", log, "--moments", "--moment-steps", 1).stdout
    assert "±" not in said and "inf" not in said


@pytest.mark.parametrize("tensors, optimizer, told", [
    ({"weight/a": np.ones(3, F32)}, ADAM, "found no whole weight gradients"),
    ({"weight_grad/a": np.ones(3, F32)}, "torch.optim.sgd.SGD", "is not Adam"),
    ({"weight_grad/a": np.ones(3, F32)}, "my.Lion", "is not Adam"),
    ({"weight_grad/a": np.ones(0, F32)}, ADAM, "found no whole weight gradients")])
def test_a_log_that_cannot_be_replayed_is_refused(tmp_path, tensors, optimizer, told):
    log = write_log(tmp_path / "log", [tensors], optimizer)
    refused = run("weights", log, "--moments", expect=1).stderr
    assert told in refused and str(log) in refused and refused.count("\n") == 1


def test_two_logs_and_steps_below_one_are_wrong_usage(tmp_path):
    log = write_log(tmp_path / "log", [{"weight_grad/a": np.ones(3, F32)}])
    assert "expected one run log" in run("weights", log, log, "--moments", expect=2).stderr
    assert "without --moments" in run("weights", log, "--moments", "--forecast", expect=2).stderr
    assert "--moment-steps" in run("weights", log, "--moments", "--moment-steps", 0, expect=2).stderr
    assert "no such" in run("weights", tmp_path / "none", "--moments", expect=1).stderr.lower()
