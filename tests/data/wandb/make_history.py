# SPDX-License-Identifier: Apache-2.0
"""Writes history.jsonl with the histograms that wandb makes, and values.json with what they are of.

Needs wandb and torch: python make_history.py. Rows are written as a user writes those of
run.scan_history(): one json.dumps a line. Tensors go through the code of wandb.watch().
"""

import json
import math
import pathlib

import torch
import wandb
from wandb.integration.torch.wandb_torch import TorchHistory

HERE = pathlib.Path(__file__).parent


class Run:
    """Takes what watch() logs."""

    def __init__(self):
        self.row = {}

    def _log(self, data, commit):
        for name, value in data.items():
            self.row[name] = value.to_json()


def tensors(step):
    generator = torch.Generator().manual_seed(step)
    normal = torch.randn(200, generator=generator)
    spread = torch.exp(4 * torch.randn(100, generator=generator)) * torch.sign(normal[:100])
    broken = normal[:40].clone()
    broken[3], broken[5], broken[6] = math.nan, math.inf, -math.inf
    return {
        "gradients/fc1.weight": 1e-3 * normal,
        "gradients/fc2.weight": 1e-6 * spread,
        "gradients/fc2.bias": broken,
        "gradients/head.bias": torch.zeros(10),
        "gradients/one.bias": torch.tensor([1e-7]),
        "gradients/half.weight": (1e-4 * normal[:60]).half(),
        "gradients/wide.weight": 1e-3 * normal[:40].double() / 3,
        "parameters/fc1.weight": normal.abs(),
    }


def packed(histogram):
    """Bins of one width as W&B's server gives them (github.com/wandb/wandb/issues/10732)."""
    bins, count = histogram["bins"], len(histogram["values"])
    size = (bins[-1] - bins[0]) / count
    return {
        "_type": "histogram",
        "values": histogram["values"],
        "packedBins": {"min": bins[0], "size": size, "count": count},
    }


def main():
    history, values = [], {}
    for step in (0, 100, 200):
        wandb.run = Run()
        watch = TorchHistory()
        for name, tensor in tensors(step).items():
            watch.log_tensor_stats(tensor, name)
            values[f"{name}@{step}"] = [float(x).hex() for x in tensor.double().tolist()]
        row = wandb.run.row
        row["own"] = wandb.Histogram(tensors(step)["gradients/fc1.weight"].tolist()).to_json()
        values[f"own@{step}"] = values[f"gradients/fc1.weight@{step}"]
        if step == 200:
            row = {name: packed(h) for name, h in row.items()}
        row.update({"train/loss": math.nan if step == 200 else 2.5 / (1 + step), "_step": step})
        row.update({"lr": 0.1, "amp/scale": 65536.0 / (1 + step / 100), "_runtime": 1.5 * step})
        history.append(row)
    lines = "".join(json.dumps(row) + "\n" for row in history)
    (HERE / "history.jsonl").write_text(lines)
    (HERE / "values.json").write_text(json.dumps(values, indent=0) + "\n")


if __name__ == "__main__":
    main()
