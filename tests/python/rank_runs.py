# SPDX-License-Identifier: Apache-2.0
"""Run logs of several ranks, of which one may be ill."""
import json
import math

import numpy as np

from halfscope import _halfscope

STEPS = 40


def write_run(folder, ranks, change=lambda rank, step, values: None, steps=STEPS):
    """A run whose ranks and steps differ a little from each other."""
    for rank in ranks:
        writer = _halfscope.RunLogWriter(folder / f"rank-{rank:04}", json.dumps(
            {"scaled": False, "rank": rank, "world_size": len(ranks), "sharded": [], "about": {}}))
        for step in range(steps):
            noise = 2 ** (0.3 * math.sin(12.9898 * rank + 78.233 * step))
            values = {"loss": 2.5 * noise, "max_abs_activation_grad": 0.25 * noise,
                      "part": 3.0 * noise}
            change(rank, step, values)
            writer.write_scalars(
                step=step, learning_rate=0.1, loss_scale=1024.0, found_inf=False,
                max_abs_weight_grad=0.5, more={"max_abs/weight_grad/microbatch-0": values.pop("part")},
                **values)
        table = _halfscope.count_binades(np.ones(4, np.float32))
        writer.write_tensors(0, [("weight_grad/w", _halfscope.Gathered.of(
            table, "F32", (4,), 1.0, 4.0), False, 1.0)])
    return folder


def ill(rank, step, values):
    if rank == 317 and step >= 30:
        values["part"] *= 64
