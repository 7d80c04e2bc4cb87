# SPDX-License-Identifier: Apache-2.0
"""A large log as Transformer Engine's debug features print it: FP8 statistics of every layer.

    te_statistics_log.py OUT [--lines N]
"""

import argparse

import numpy as np

LAYERS, LAST_STEP = 373, 7369
KINDS = ("activation", "weight", "gradient")
STATISTICS = ("underflows%", "scale_inv_min", "scale_inv_max", "mse")
PARTS = ("self_attention.layernorm_qkv", "self_attention.proj", "layernorm_mlp.fc1", "layernorm_mlp.fc2")


def names():
    """LAYER_TENSOR, with the names of a transformer's layers."""
    layers = [f"model.encoder.layers.{i // 4}.{PARTS[i % 4]}" for i in range(LAYERS)]
    return [f"{layer}_{kind}" for layer in layers for kind in KINDS]


def shares(step, random):
    """Each tensor's underflow in percent. The first and the last layers lose more and more during
    the run."""
    depth = np.arange(LAYERS) / (LAYERS - 1)
    edge = np.abs(2 * depth - 1) ** 12
    gradient = 0.02 + 6 * edge * step / LAST_STEP
    all_kinds = np.stack([np.full(LAYERS, 0.05), np.full(LAYERS, 0.01), gradient], axis=1)
    return np.minimum(100, all_kinds * random.lognormal(0, 0.3, all_kinds.shape)).ravel()


def write_te_statistics(path, lines=6_013_920):
    """Writes `lines` lines, at steps from 0 to LAST_STEP, as a run that was stopped within its
    last step."""
    random = np.random.default_rng(11)
    tensors = names()
    a_step = len(tensors) * len(STATISTICS)
    steps = -(-lines // a_step)
    with open(path, "w") as out:
        for i in range(steps):
            step = i * LAST_STEP // max(steps - 1, 1)
            scales = random.lognormal(-3, 1, len(tensors))
            values = np.stack([shares(step, random), scales, 2 * scales, scales**2], axis=1)
            time = f"2026-01-13 {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d},123 - INFO - "
            text = [
                f"{time}{tensor}_{statistic} \t\t\t\t iteration={step:06d} \t\t\t\t value={value:.4f}\n"
                for tensor, row in zip(tensors, values, strict=True)
                for statistic, value in zip(STATISTICS, row, strict=True)
            ]
            out.writelines(text[: lines - i * a_step])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--lines", type=int, default=6_013_920)
    given = parser.parse_args()
    write_te_statistics(given.out, given.lines)


if __name__ == "__main__":
    main()
