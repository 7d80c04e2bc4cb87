# SPDX-License-Identifier: Apache-2.0
"""The simulator's Adam beside PyTorch's, each step from the state that the simulator recorded: the
update is PyTorch's to the bit; moments are rounded in one of two forms (docs/simulate.md)."""

import math

import numpy as np
import pytest
from safetensors.numpy import load_file

from program import run
from rounded_roots import roots_are_rounded

torch = pytest.importorskip("torch")

STEPS, RATE, BETA1, BETA2, EPSILON = 8, 0.001, 0.9, 0.999, 1e-8
F32 = np.float32


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """The sampled file of every step."""
    out = tmp_path_factory.mktemp("adam") / "run"
    run("simulate", "lenet", "--out", out, "--precision", "fp32", "--optimizer", "adam", "--steps",
        STEPS, "--sample-every", "1", "--record-every", "1", "--threads", "1")
    return dict(enumerate(sorted((out / "tensors").glob("*.safetensors"))))


def parameters(samples):
    """Step, what it recorded of one parameter, and the moments before it."""
    before = {}
    for step, path in samples.items():
        tensors = load_file(path)
        for name in (key[len("update/"):] for key in tensors if key.startswith("update/")):
            now = {role: tensors[f"{role}/{name}"].ravel() for role in
                   ("update", "weight_grad", "optimizer_state/exp_avg", "optimizer_state/exp_avg_sq")}
            zeros = np.zeros_like(now["update"])
            last = before.get(name, {"optimizer_state/exp_avg": zeros,
                                     "optimizer_state/exp_avg_sq": zeros})
            yield step + 1, now, last
            before[name] = now


def test_updates_are_pytorchs_from_the_same_state(samples):
    if not roots_are_rounded(samples):
        pytest.skip("this PyTorch's square roots are not correctly rounded")
    elements = 0
    for t, now, _ in parameters(samples):
        first, second = (torch.from_numpy(now[f"optimizer_state/{key}"].copy())
                         for key in ("exp_avg", "exp_avg_sq"))
        root = (second.sqrt() / math.sqrt(1 - BETA2**t)).add_(EPSILON)
        wanted = torch.addcdiv(torch.zeros_like(first), first, root,
                               value=-RATE / (1 - BETA1**t)).numpy()
        assert np.array_equal(now["update"], wanted)
        elements += wanted.size
    assert elements == STEPS * 9950


def test_moments_are_rounded_in_one_of_two_forms(samples):
    """Separately, as the simulator does, or fused: PyTorch takes one for all elements."""
    differ = {"separate": 0, "fused": 0, "forms": 0}
    for _, now, last in parameters(samples):
        g = now["weight_grad"]
        kept1 = F32(BETA1) * last["optimizer_state/exp_avg"]
        kept2 = F32(BETA2) * last["optimizer_state/exp_avg_sq"]
        rest1, rest2 = F32(1 - BETA1) * np.ones_like(g), F32(1 - BETA2) * g
        separate = kept1 + rest1 * g, kept2 + rest2 * g
        wide = [x.astype(np.float64) for x in (rest1, g, kept1, rest2, g, kept2)]
        fused = [(a * b + c).astype(F32) for a, b, c in (wide[:3], wide[3:])]
        assert np.array_equal(now["optimizer_state/exp_avg"], separate[0])
        assert np.array_equal(now["optimizer_state/exp_avg_sq"], separate[1])
        gradient = torch.from_numpy(g.copy())
        theirs = (
            torch.from_numpy(last["optimizer_state/exp_avg"].copy()).mul_(BETA1)
            .add_(gradient, alpha=1 - BETA1).numpy(),
            torch.from_numpy(last["optimizer_state/exp_avg_sq"].copy()).mul_(BETA2)
            .addcmul_(gradient, gradient, value=1 - BETA2).numpy())
        for one, two, other in zip(separate, fused, theirs):
            differ["separate"] += int((one != other).sum())
            differ["fused"] += int((two != other).sum())
            differ["forms"] += int((one != two).sum())
    assert min(differ["separate"], differ["fused"]) == 0, differ
    assert max(differ["separate"], differ["fused"]) == differ["forms"] > 0
