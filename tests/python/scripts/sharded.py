# SPDX-License-Identifier: Apache-2.0
"""Trains with FSDP2 (fully_shard) on two processes, which meet at the URL of the first argument."""

import os
import sys

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

rank = int(os.environ["RANK"])
torch.distributed.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size=2)
torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
fully_shard(model[0])
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(rank)
for _ in range(7):
    x = torch.randn(9, 6, generator=generator)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), torch.arange(9) % 3)
    loss.backward()
    optimizer.step()
torch.distributed.destroy_process_group()
