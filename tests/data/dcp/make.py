# SPDX-License-Identifier: Apache-2.0
"""Made two-ranks/ and tensors.pt with PyTorch 2.15: python make.py OUT [RANKS]"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp


def tensors():
    by_seed = torch.Generator().manual_seed(0)
    return {"w": torch.randn(5, 3, generator=by_seed) * 1e-6,
            "e": torch.randn(3, 7, 2, generator=by_seed).to(torch.float16),
            "b": torch.randn(4, generator=by_seed).to(torch.bfloat16)}


def save(rank, ranks, out, meeting):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method=f"file://{meeting}")
    mesh = init_device_mesh("cpu", (ranks,))
    placed = {"w": Shard(0), "e": Shard(1), "b": Replicate()}
    state = {name: distribute_tensor(tensor, mesh, [placed[name]])
             for name, tensor in tensors().items()}
    dcp.save({"weight_grad": state, "plain": torch.ones(()), "ids": torch.arange(3), "step": 7},
             checkpoint_id=out)
    dist.destroy_process_group()


def make(out, ranks=2):
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(save, (ranks, out, os.path.join(folder, "meeting")), nprocs=ranks)
    torch.save({f"weight_grad.{name}": tensor for name, tensor in tensors().items()},
               os.path.join(out, "..", "tensors.pt"))


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
