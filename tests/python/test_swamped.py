# SPDX-License-Identifier: Apache-2.0
"""Weight updates that FP16 loses: the command line against NumPy's float16, element by element."""

import json
import subprocess

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from program import DIGITS, PROGRAM
from rounded_roots import roots_are_rounded, same_but_for_roots

FIELDS = ("updates", "update_underflow", "swamped", "swamped_fused", "rule_2048")


def run(log, *options, expect=0):
    done = subprocess.run([PROGRAM, "analyze", str(log), *options], capture_output=True, text=True)
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


def weights_of(log, *options):
    """{name: entry} of the tensors that have updates."""
    out, _ = run(log, "--json", "-", *options)
    return {t["name"]: t for t in json.loads(out)["tensors"] if "updates" in t}


def outcomes(w16, new, u, gone):
    """Counts of one arithmetic over finite nonzero updates. gone: the update itself is lost."""
    old, new64, u = w16.astype(np.float64), new.astype(np.float64), u.astype(np.float64)
    infinite = ~gone & np.isinf(new64)
    swamped = ~gone & (new64 == old)
    with np.errstate(invalid="ignore"):
        exact = ~gone & ~infinite & ~swamped & (new64 - old == u)
    counts = {"underflow": gone.sum(), "swamped": swamped.sum(), "exact": exact.sum(),
              "overflow": infinite.sum()}
    counts["applied"] = len(u) - sum(counts.values())
    return {name: int(count) for name, count in counts.items()}


def by_numpy(w, u, u32=None):
    """What adding updates to float16 weights does. u: exact, float64 or narrower. u32: as a kernel
    in float32 has them."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        w16, u = w.astype(np.float16).ravel(), u.ravel()
        u32 = u.astype(np.float32) if u32 is None else u32.ravel()
        finite = np.isfinite(w16) & np.isfinite(u)
        counted = finite & (u != 0)
        pairs, zero = len(u), int((finite & (u == 0)).sum())
        w16, u, u32 = w16[counted], u[counted], u32[counted]
        u16 = u.astype(np.float16)
        half = outcomes(w16, w16 + u16, u, u16 == 0)
        fused = outcomes(w16, (w16.astype(np.float32) + u32).astype(np.float16), u, u32 == 0)
        rule = np.abs(w16.astype(np.float64)) > 2048 * np.abs(u.astype(np.float64))
    return {"updates": len(u), "update_underflow": half["underflow"], "swamped": half["swamped"],
            "swamped_fused": fused["swamped"], "rule_2048": int(rule.sum()), "pairs": pairs,
            "zero": zero, "nonfinite": pairs - zero - len(u), "half": half, "fused": fused}


def same_counts(entry, expected):
    assert {f: entry[f] for f in FIELDS} == {f: expected[f] for f in FIELDS}
    detail = entry["update_detail"]
    for field in ("pairs", "zero", "nonfinite", "half", "fused"):
        assert detail[field] == expected[field], field


def all_weights():
    """Every binary16 encoding, as float32: NaN and infinity among them."""
    return np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)


def updates_of_every_binade(generator):
    """For each binade one row of as many updates as there are encodings, both signs; an eighth are
    powers of two, an eighth each their neighbours on either side."""
    exponents = np.arange(-45, 18)
    shape = (len(exponents), 65536)
    significands = 1 + generator.random(shape).astype(np.float32)
    kinds = generator.integers(0, 8, shape)
    for kind, value in ((0, 1.0), (1, np.nextafter(np.float32(1), np.float32(2))),
                        (2, np.nextafter(np.float32(2), np.float32(1)))):
        significands[kinds == kind] = value
    signs = np.where(generator.integers(0, 2, shape) == 0, np.float32(1), np.float32(-1))
    return signs * np.ldexp(significands, exponents[:, None]).astype(np.float32)


@pytest.fixture(scope="module")
def structured(tmp_path_factory):
    """All weights against updates of every binade; the file, the weights and the updates."""
    updates = updates_of_every_binade(np.random.default_rng(5))
    weights = np.ascontiguousarray(np.broadcast_to(all_weights(), updates.shape))
    path = tmp_path_factory.mktemp("swamped") / "pairs.safetensors"
    save_file({"weight/w": weights, "update/w": updates}, path)
    return path, weights, updates


def test_all_weights_against_updates_of_every_binade(structured):
    path, weights, updates = structured
    entry = weights_of(path)["weight/w"]
    expected = by_numpy(weights, updates)
    same_counts(entry, expected)
    assert entry["update_source"] == "update" and "undetermined" not in entry
    assert min(expected["half"].values()) > 0 and min(expected[f] for f in FIELDS) > 0


def test_distributions_add_up(structured):
    path, weights, updates = structured
    entry = weights_of(path)["weight/w"]
    detail, half = entry["update_detail"], entry["update_detail"]["half"]
    assert sum(c[2] for c in detail["cells"]) == entry["updates"]
    assert sum(c[3] for c in detail["cells"]) == half["underflow"] + half["swamped"]
    assert sum(count for _, count in detail["errors"]) == half["applied"]
    with np.errstate(invalid="ignore"):
        w = weights.astype(np.float64).ravel()
        ok = np.isfinite(w) & (w != 0)
        ratios = np.abs(updates.astype(np.float64).ravel()[ok] / w[ok])
    # Never nearer to a power of two than binary64 rounds: both significands have 24 bits at most.
    exponents, counts = np.unique(np.frexp(ratios)[1] - 1, return_counts=True)
    assert [[e, n] for e, n, _ in detail["ratios"]] == [
        [int(e), int(n)] for e, n in zip(exponents, counts)]
    zero_weights = sum(c[2] for c in detail["cells"] if c[0] is None)
    assert zero_weights == 2 * len(updates)


def gradients(updates, lr):
    """Gradients about as large as these updates over the learning rate."""
    return (-updates.astype(np.float64) / lr).astype(np.float32)


@pytest.mark.parametrize(("lr", "scale"), [(0.1, 1), (0.3, 1024), (0.0009765625, 65536)])
def test_gradient_and_learning_rate(structured, tmp_path, lr, scale):
    """-lr g is one exact product of float32 numbers, rounded once: float64 holds it."""
    _, weights, updates = structured
    some = slice(None, None, 3)
    w, g = weights[some], gradients(updates[some], lr)
    g = np.where(np.abs(g) < 1e30, g, np.float32(1))
    save_file({"weight/w": w, "weight_grad/w": g * np.float32(scale)}, tmp_path / "g.safetensors")
    options = ["--lr", repr(lr)] + (["--recorded-scale", str(scale)] if scale != 1 else [])
    entry = weights_of(tmp_path / "g.safetensors", *options)["weight/w"]
    rate = np.float32(lr)
    exact = -rate.astype(np.float64) * g.astype(np.float64)
    with np.errstate(under="ignore"):
        u32 = -(rate * g)
    same_counts(entry, by_numpy(w, exact, u32))
    assert entry["update_source"] == "gradient"


def test_one_rounding_and_three_differ(tmp_path):
    """w = 1, u = 2^-11 + 2^-34: fp32 arithmetic loses what a single rounding would keep."""
    w, u = np.ones(1, np.float32), np.array([2.0**-11 + 2.0**-34], np.float32)
    save_file({"weight/w": w, "update/w": u}, tmp_path / "p.safetensors")
    entry = weights_of(tmp_path / "p.safetensors")["weight/w"]
    assert entry["swamped_fused"] == 1 and entry["swamped"] == 1


def log_normal(n=200_000, dtype=np.float32):
    generator = np.random.default_rng(17)
    weights = generator.standard_normal(n) * np.exp2(-5)
    updates = generator.standard_normal(n) * np.exp2(generator.normal(-17.0, 1.5, n))
    return weights.astype(dtype), updates.astype(dtype)


def test_the_rule_of_thumb_overstates_on_log_normal_data(tmp_path):
    w, u = log_normal()
    save_file({"weight/w": w, "update/w": u}, tmp_path / "p.safetensors")
    entry = weights_of(tmp_path / "p.safetensors")["weight/w"]
    same_counts(entry, by_numpy(w, u))
    lost = entry["update_underflow"] + entry["swamped"]
    assert 0.01 * len(u) < entry["rule_2048"] - lost < 0.1 * len(u)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_types(tmp_path, dtype):
    w, u = log_normal(20_000, dtype)
    np.savez_compressed(tmp_path / "p.npz", **{"weight/w": w, "update/w": u})
    same_counts(weights_of(tmp_path / "p.npz")["weight/w"], by_numpy(w, u))


def test_differences_of_recorded_weights(tmp_path):
    w, u = log_normal(20_000)
    after = w + u
    after[:100] = w[:100]
    save_file({"master_weight/w": w, "weight_after/w": after}, tmp_path / "p.safetensors")
    entry = weights_of(tmp_path / "p.safetensors")["master_weight/w"]
    difference = after.astype(np.float64) - w.astype(np.float64)
    same = difference == 0
    assert entry["undetermined"] == same.sum() >= 100
    assert entry["update_source"] == "difference" and entry["update_detail"]["zero"] == 0
    same_counts(entry, by_numpy(w[~same], difference[~same]))
    out, _ = run(tmp_path / "p.safetensors")
    assert f"{same.sum():,} more are differences of recorded weights that are zero" in out


def test_names_given_by_role(tmp_path):
    w, u = log_normal(1000)
    save_file({"fc_w": w, "fc_u": u}, tmp_path / "p.safetensors")
    roles = ("--role", "*_w=weight", "--role", "*_u=update")
    same_counts(weights_of(tmp_path / "p.safetensors", *roles)["fc_w"], by_numpy(w, u))
    assert weights_of(tmp_path / "p.safetensors") == {}


def test_a_folder_of_arrays(tmp_path):
    w, u = log_normal(1000)
    for step in (3, 7):
        np.save(tmp_path / f"w_step-{step}.npy", w)
        np.save(tmp_path / f"u_step-{step}.npy", u)
    entry = weights_of(tmp_path, "--role", "w=weight", "--role", "u=update")["w"]
    assert [step["step"] for step in entry["update_detail"]["per_step"]] == [3, 7]
    assert entry["updates"] == 2 * by_numpy(w, u)["updates"]


def test_the_recorded_run():
    """Per weight over its sampled steps, and per step; --step and --tensor choose."""
    found = weights_of(DIGITS)
    samples = {step: load_file(DIGITS / "tensors" / f"step-{step:06}.safetensors")
               for step in (0, 100, 900)}
    assert len(found) == 6
    for name, entry in found.items():
        of_step = {step: by_numpy(t[name], t[name.replace("weight/", "update/", 1)])
                   for step, t in samples.items()}
        for step in entry["update_detail"]["per_step"]:
            assert {f: step[f] for f in FIELDS} == {f: of_step[step["step"]][f] for f in FIELDS}
        assert entry["swamped"] == sum(counts["swamped"] for counts in of_step.values())
    one = weights_of(DIGITS, "--step", "100", "--tensor", "conv2.weight")
    assert list(one) == ["weight/conv2.weight"]
    assert one["weight/conv2.weight"]["updates"] == by_numpy(
        samples[100]["weight/conv2.weight"], samples[100]["update/conv2.weight"])["updates"]


def test_gates():
    entry = weights_of(DIGITS)["weight/conv2.weight"]
    share = 100 * entry["swamped"] / entry["updates"]
    gate = "swamped > {}% for conv2.weight"
    run(DIGITS, "--fail-if", gate.format(share + 0.01))
    _, err = run(DIGITS, "--fail-if", gate.format(round(share - 0.01, 6)), expect=4)
    assert f"swamped {entry['swamped']:,} of {entry['updates']:,} (" in err
    _, err = run(DIGITS, "--fail-if", "swamped_fused >= 0", expect=4)
    assert len(err.splitlines()) == 6
    _, err = run(DIGITS, "--fail-if", "undetermined > 0", expect=2)
    assert "none of its tensors has values to compute undetermined from" in err
    _, err = run(DIGITS, "--fail-if", "swamped > 0", "--tensor", "activation/*", expect=2)
    assert "no selected tensor is a weight" in err


def test_gate_on_all_that_is_lost():
    entry = weights_of(DIGITS)["weight/conv2.weight"]
    lost = entry["update_underflow"] + entry["swamped"]
    _, err = run(DIGITS, "--fail-if", f"updates_lost >= {lost} for conv2.weight", expect=4)
    assert f"updates_lost {lost:,} >= {lost}" in err
    run(DIGITS, "--fail-if", f"updates_lost > {lost} for conv2.weight")
    _, err = run(DIGITS, "--fail-if", "swamped > 10% for weight_grad", expect=2)
    assert "use 'for weight'" in err


def test_text():
    out, _ = run(DIGITS, "--what-if")
    total = sum(t["updates"] for t in weights_of(DIGITS).values())
    assert f"{total:,} are counted as" in out and "added to weights in FP16" in out
    for words in ("weight / 2048 (rule of thumb)", "FP32 master weights", "BF16 weights", "stochastic rounding", "Kahan"):
        assert words in out
    out, _ = run(DIGITS)
    assert "Kahan" not in out and "weight / 2048 (rule of thumb)" in out
    assert "updates" not in run(DIGITS, "--tensor", "activation/*")[0]


def without(samples, *roles):
    """Removes tensors of these roles from a log's sampled files."""
    for path in samples.values():
        with safe_open(path, framework="np") as file:
            metadata = file.metadata()
            kept = {n: file.get_tensor(n) for n in file.keys() if n.split("/")[0] not in roles}
        save_file(kept, path, metadata=metadata)


def recorded(tmp_path, make, options, steps=3):
    """A log of one tensor trained on given gradients, sampled at every step."""
    torch = pytest.importorskip("torch")
    from halfscope.torch import Recorder

    generator = torch.Generator().manual_seed(11)
    n = 5000
    model = torch.nn.Module()
    model.w = torch.nn.Parameter(torch.randn(n, generator=generator) * torch.exp2(
        torch.randint(-12, 12, (n,), generator=generator).float()))
    optimizer = getattr(torch.optim, make)(model.parameters(), **options)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1):
        for _ in range(steps):
            model.w.grad = torch.randn(n, generator=generator) * torch.exp2(
                torch.randint(-20, 3, (n,), generator=generator).float())
            optimizer.step()
    return tmp_path / "run"


OPTIMIZERS = {
    "momentum": ("SGD", {"lr": 0.03, "momentum": 0.9}),
    "dampening": ("SGD", {"lr": 0.03, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.01}),
    "nesterov": ("SGD", {"lr": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adam": ("Adam", {"lr": 0.003}),
    "adam, decay": ("Adam", {"lr": 0.003, "weight_decay": 0.01}),
    "amsgrad": ("Adam", {"lr": 0.003, "amsgrad": True}),
    "adamw": ("AdamW", {"lr": 0.003, "weight_decay": 0.1}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_recomputed_from_optimizer_state(tmp_path, read_log, name):
    """To the same counts, cells, ratios and errors as the recorder's updates, what-ifs included: so
    to the same bits, nearly surely."""
    log = recorded(tmp_path, *OPTIMIZERS[name])
    wanted = weights_of(log, "--what-if")["weight/w"]
    assert wanted["update_source"] == "update" and wanted["updates"] > 14_000
    rounded = roots_are_rounded(read_log(log).sample_files)
    without(read_log(log).sample_files, "update")
    found = weights_of(log, "--what-if")["weight/w"]
    assert found["update_source"] == "optimizer_state"
    if rounded:
        assert found["update_detail"] == wanted["update_detail"]
    else:
        same_but_for_roots(found["update_detail"], wanted["update_detail"])


@pytest.mark.parametrize("options", [{"lr": 0.03}, {"lr": 0.03, "weight_decay": 0.01},
                                     {"lr": 0.03, "maximize": True}])
def test_updates_of_plain_sgd(tmp_path, read_log, options):
    log = recorded(tmp_path, "SGD", options)
    wanted = weights_of(log)["weight/w"]
    without(read_log(log).sample_files, "update")
    found = weights_of(log)["weight/w"]
    assert found["update_source"] == "gradient"
    # The fused arithmetic starts from the same binary32 update; `half` rounds the product once.
    assert found["update_detail"]["fused"] == pytest.approx(wanted["update_detail"]["fused"], abs=3)
    assert abs(found["swamped"] - wanted["swamped"]) <= 3


def test_the_optimizer_decides_the_source(tmp_path, read_log):
    log = recorded(tmp_path, "RMSprop", {"lr": 0.01})
    assert weights_of(log)["weight/w"]["update_source"] == "difference"
    assert weights_of(log, "--lr", "0.01")["weight/w"]["update_source"] == "difference"
    without(read_log(log).sample_files, "weight_after", "update")
    assert weights_of(log) == {}


def test_python(structured):
    halfscope = pytest.importorskip("halfscope")
    path, _, _ = structured
    found = {t["name"]: t for t in halfscope.analyze(path)["tensors"]}["weight/w"]
    assert found == weights_of(path)["weight/w"]
    found = {t["name"]: t for t in halfscope.analyze(DIGITS, what_if=True)["tensors"]}
    assert found["weight/conv1.weight"]["update_detail"]["what_if"]["kahan"]["steps"] == 1000
