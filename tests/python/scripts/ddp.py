# SPDX-License-Identifier: Apache-2.0
"""Trains with DistributedDataParallel on two processes: those of torchrun, or two that the script
starts itself. They meet at the URL of the first argument."""

import os
import sys

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, meeting):
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(7):
        x = torch.randn(9, 6, generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), torch.arange(9) % 3)
        loss.backward()
        optimizer.step()
    if rank == 0:
        print("loss", loss.item(), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]), sys.argv[1])
    else:
        torch.multiprocessing.spawn(train, (sys.argv[1],), nprocs=2)
