# SPDX-License-Identifier: Apache-2.0
"""Run logs with full tensors, and what `halfscope reduce` says of their sums."""
import functools
import json

import numpy as np
from safetensors.numpy import save_file

from program import valid_json_of

reduce = functools.partial(valid_json_of, "reduce")


def one(log, *options, name="*"):
    (found,) = [entry for entry in reduce(log, *options) if entry["name"] == name]
    return found


def write_rank(folder, tensors, text="", rank=0, ranks=1, step=0, scale=None):
    (folder / "tensors").mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(
        {"schema": 1, "gradients": "scaled" if scale else "unscaled", "rank": rank, "world_size": ranks,
         "sharded": ["local_weight_grad", "activation", "activation_grad"], "network": {"text": text}}))
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()},
              folder / f"tensors/step-{step:06}.safetensors",
              metadata={"schema": "1", "step": str(step), **(
                  {"gradients": "scaled", "scale": str(scale)} if scale else {"gradients": "unscaled"})})
    return folder


def write_ranks(folder, gradients):
    """gradients: [rank][...] of one tensor."""
    for rank, values in enumerate(gradients):
        write_rank(folder / f"rank-{rank:04}", {"local_weight_grad/w": values}, rank=rank,
                   ranks=len(gradients))
    return folder
