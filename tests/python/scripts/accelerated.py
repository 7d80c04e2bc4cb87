# SPDX-License-Identifier: Apache-2.0
"""Trains in a loop of its own with Accelerate: accumulation, clipping, a schedule."""

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
torch.manual_seed(7)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
batches = [(torch.randn(6, 8), torch.arange(6) % 4) for _ in range(14)]
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
for x, y in batches:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
