# SPDX-License-Identifier: Apache-2.0
"""Sums over elements, layer by layer: which elements `halfscope reduce` adds up, and in which order.
The judge picks them with NumPy's axes and adds one by one in float16."""
import numpy as np
import pytest

from sum_runs import reduce, write_rank


def chained(addends):
    """[addend][sum], one after the other in float16: sums, additions, lost, overflow."""
    with np.errstate(over="ignore"):
        rounded = addends.astype(np.float32).astype(np.float16)
        total, lost = rounded[0], 0
        for addend in rounded[1:]:
            sums = total + addend
            lost += int(((sums == total) | (sums == addend))[(total != 0) & (addend != 0) & np.isfinite(sums)].sum())
            total = sums
    return {"sums": total.size, "additions": total.size * (len(rounded) - 1), "lost": lost,
            "overflow": int(np.isinf(total).sum())}


def by_channel(x, axis=1):
    """Batch and pixels are added, in the order of memory."""
    return np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])


def centred(x):
    wide = x.astype(np.float64)
    return wide - wide.mean(0)


def values(*shape, seed=0):
    random = np.random.default_rng(seed)
    return (random.standard_normal(shape) * 2.0 ** random.integers(-6, 7, shape)).astype(np.float32)


IMAGES, ROWS = values(3, 5, 4, 6), values(40, 7, seed=1)
SQUARE = values(3, 5, 4, 5, seed=2)  # as wide as it has channels
MANY, LONG, PAIRS = values(21, 20, 31, 33, seed=3), values(2100, 600, seed=4), values(300_000, 2, seed=5)


@pytest.mark.parametrize("layer, tensors, sum, name, addends", [
    ("Conv2d", {"activation_grad/b": IMAGES, "weight/b.weight": values(5, 2, 3, 3), "weight/b.bias": values(5)},
     "bias_gradient", "activation_grad/b", by_channel(IMAGES)),
    ("Linear", {"activation_grad/b": ROWS, "weight/b.weight": values(7, 3), "weight/b.bias": values(7)},
     "bias_gradient", "activation_grad/b", ROWS),
    ("Conv2d", {"activation_grad/b": SQUARE, "weight/b.bias": values(5)},
     "bias_gradient", "activation_grad/b", by_channel(SQUARE)),
    ("Own", {"activation_grad/b": SQUARE, "weight/b.bias": values(5)},
     "bias_gradient", "activation_grad/b", by_channel(SQUARE)),
    ("Conv1d", {"activation_grad/b": SQUARE[:, :, 0], "weight/b.bias": values(5)},
     "bias_gradient", "activation_grad/b", by_channel(SQUARE[:, :, 0])),
    ("Linear", {"activation_grad/b": SQUARE, "weight/b.bias": values(5)},
     "bias_gradient", "activation_grad/b", by_channel(SQUARE, 3)),
    ("BatchNorm2d", {"activation/a": IMAGES, "activation/b": IMAGES, "weight/b.weight": values(5)},
     "mean", "activation/a", by_channel(IMAGES)),
    ("BatchNorm2d", {"activation/a": IMAGES, "activation/b": IMAGES, "weight/b.weight": values(5)},
     "variance", "activation/a", centred(by_channel(IMAGES)) ** 2),
    ("LayerNorm", {"activation/a": ROWS, "activation/b": ROWS, "weight/b.weight": values(7)},
     "mean", "activation/a", ROWS.T),
    ("LayerNorm", {"activation/a": IMAGES, "activation/b": IMAGES, "weight/b.weight": values(4, 6)},
     "variance", "activation/a", centred(IMAGES.reshape(15, 24).T) ** 2),
    ("GroupNorm(2, 4, eps=1e-05", {"activation/a": IMAGES[:, :4], "activation/b": IMAGES[:, :4], "weight/b.weight": values(4)},
     "variance", "activation/a", centred(IMAGES[:, :4].reshape(6, 48).T) ** 2),
    ("InstanceNorm2d(5, eps=1e-05", {"activation/a": IMAGES, "activation/b": IMAGES},
     "mean", "activation/a", IMAGES.reshape(15, 24).T),
    ("RMSNorm", {"activation/a": ROWS, "activation/b": ROWS, "weight/b.weight": values(7)},
     "mean_square", "activation/a", ROWS.T.astype(np.float64) ** 2),
    ("Softmax", {"activation/a": ROWS, "activation/b": ROWS},
     "softmax", "activation/a", np.exp((ROWS.astype(np.float64) - ROWS.max(1, keepdims=True)).T)),
    ("Linear", {"weight_grad/b.weight": ROWS, "weight/b.weight": ROWS},
     "gradient_norm", "weight_grad/b.weight", (ROWS.astype(np.float64) ** 2).reshape(-1, 1)),
    # More elements, and more sums, than are held at a time.
    ("Conv2d", {"activation_grad/b": MANY, "weight/b.weight": values(20, 2, 3, 3), "weight/b.bias": values(20)},
     "bias_gradient", "activation_grad/b", by_channel(MANY)),
    ("Conv2d", {"activation_grad/b": MANY[:, :3], "weight/b.weight": values(3, 2, 3, 3), "weight/b.bias": values(3)},
     "bias_gradient", "activation_grad/b", by_channel(MANY[:, :3])),
    ("LayerNorm", {"activation/a": LONG, "activation/b": LONG, "weight/b.weight": values(600)},
     "variance", "activation/a", centred(LONG.T) ** 2),
    ("Softmax", {"activation/a": LONG, "activation/b": LONG},
     "softmax", "activation/a", np.exp((LONG.astype(np.float64) - LONG.max(1, keepdims=True)).T)),
    ("RMSNorm", {"activation/a": PAIRS, "activation/b": PAIRS, "weight/b.weight": values(2)},
     "mean_square", "activation/a", PAIRS.T.astype(np.float64) ** 2)])
def test_the_addends_of_a_layer(tmp_path, layer, tensors, sum, name, addends):
    log = write_rank(tmp_path / "run", tensors, f"M(\n  (a): Identity()\n  (b): {layer + ')' if '(' in layer else layer + '()'}\n)")
    (found,) = [entry for entry in reduce(log, "--format", "fp16", "--order", "sequential", "--over", "elements")
                if (entry["sum"], entry["name"]) == (sum, name)]
    wanted = chained(np.asarray(addends))
    assert wanted["lost"] > 0
    assert {key: found[key] for key in wanted} == wanted
    assert found["count"] == len(addends)
