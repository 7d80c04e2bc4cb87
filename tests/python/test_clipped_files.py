# SPDX-License-Identifier: Apache-2.0
"""Gradients dumped into files after clipping: the scale is an upper bound, and more would be wrong."""
import functools
import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import stdout_of

STEPS = 20
recommend = functools.partial(stdout_of, "recommend")


def backward():
    random = np.random.default_rng(0)
    return [{name: (random.standard_normal(shape) * (1 + step % 5)).astype(np.float32)
             for name, shape in (("a.weight", (64, 32)), ("a.bias", (32,)))}
            for step in range(STEPS)]


def clip(gradients, kind):
    """As torch.nn.utils.clip_grad_norm_(0.1) and clip_grad_value_(0.001) do."""
    if kind == "value":
        return {name: np.clip(g, np.float32(-1e-3), np.float32(1e-3)) for name, g in gradients.items()}
    norm = np.sqrt(sum(np.square(g, dtype=np.float64).sum() for g in gradients.values()))
    factor = np.float32(min(1, 0.1 / (norm + 1e-6))) if kind == "norm" else np.float32(1)
    return {name: g * factor for name, g in gradients.items()}


def write(folder, steps, how, more=None):
    if how == "ranks":  # each has a half
        for rank in range(2):
            own = folder / f"rank-{rank:04}"
            own.mkdir()
            write(own, [{n: np.array_split(g, 2)[rank] for n, g in step.items()} for step in steps], "run",
                  {"rank": rank, "world_size": 2, "sharded": ["weight_grad"]})
        return
    if how == "run":  # a run log of samples alone
        (folder / "tensors").mkdir()
        (folder / "run.json").write_text(json.dumps({"schema": 1, "gradients": "unscaled", **(more or {})}))
    for step, gradients in enumerate(steps):
        if how == "run":
            save_file({f"weight_grad/{name}": g for name, g in gradients.items()},
                      folder / "tensors" / f"step-{step:06d}.safetensors")
            continue
        if how == "npz":
            np.savez(folder / f"grads_step{step}.npz", **gradients)
            continue
        for name, g in gradients.items():  # halves of a tensor, as shards are
            parts = enumerate(np.array_split(g, 2)) if how == "shards" else [("", g)]
            for part, values in parts:
                if how == "shards":
                    np.savez(folder / f"g_{name}_{part}_step{step}.npz", **{name: values})
                else:
                    np.save(folder / f"grad_{name}_step{step}.npy", values)


@pytest.mark.parametrize("how", ["npz", "npy", "shards", "run", "ranks"])
@pytest.mark.parametrize("kind", ["norm", "value", "none"])
def test_clipped_before_they_were_dumped(tmp_path, kind, how):
    steps = backward()
    write(tmp_path, [clip(gradients, kind) for gradients in steps], how)
    answer = json.loads(recommend(tmp_path, "--json", "-"))
    scale = answer["static_scale"]
    overflow = [any(np.abs(np.float64(scale) * g).max() >= 65520 for g in gradients.values())
                for gradients in steps]
    if kind == "none":
        assert "clipped" not in answer and not any(overflow)
        return
    assert answer["clipped"] and answer["overflow_not_identifiable"] and all(overflow)
    assert "at most" in recommend(tmp_path).splitlines()[0]


def test_clipped_or_not_is_the_same_for_any_number_of_threads(tmp_path):
    write(tmp_path, [clip(gradients, "norm") for gradients in backward()], "shards")
    answers = {recommend(tmp_path, "--threads", n, "--json", "-") for n in ("1", "2", "4")}
    assert len(answers) == 1
