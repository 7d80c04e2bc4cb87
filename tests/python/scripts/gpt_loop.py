# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on the characters of its own text: accumulation, a GradScaler where PyTorch has
one for the CPU, clipping, a cosine of learning rates, evaluation before and between the steps."""

import contextlib
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

batch_size, block_size, accumulation, width = 4, 16, 3, 32
max_iters, eval_interval = 12, 6
learning_rate, grad_clip = 1e-2, 1.0
text = torch.tensor(list((__doc__ * 4).encode())) % 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.attn(self.ln_1(x)).chunk(3, -1)
        scores = (q @ k.transpose(1, 2)) / math.sqrt(width)
        future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        x = x + scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(64, width), nn.Embedding(block_size, width)
        self.h = nn.ModuleList([Block(), Block()])
        self.lm_head = nn.Linear(width, 64, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.dim() >= 2]
        rest = [p for p in self.parameters() if p.dim() < 2]
        return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1},
                                  {"params": rest, "weight_decay": 0.0}], lr=learning_rate)


def get_batch():
    start = torch.randint(len(text) - block_size, (batch_size,))
    x = torch.stack([text[i:i + block_size] for i in start])
    return x, torch.stack([text[i + 1:i + block_size + 1] for i in start])


@torch.no_grad()
def estimate_loss():
    model.eval()
    loss = sum(model(*get_batch())[1].item() for _ in range(2)) / 2
    model.train()
    return loss


torch.manual_seed(1337)
model = GPT()
if hasattr(torch.amp, "GradScaler"):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    ctx = torch.autocast("cpu", torch.float16)
else:
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    ctx = contextlib.nullcontext()
optimizer = model.configure_optimizers()
if "--compile" in sys.argv:
    model = torch.compile(model)
X, Y = get_batch()
for iter_num in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * 0.5 * (1 + math.cos(math.pi * iter_num / max_iters))
    if iter_num % eval_interval == 0:
        print(f"step {iter_num}: val loss {estimate_loss():.4f}")
    for micro_step in range(accumulation):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / accumulation
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
