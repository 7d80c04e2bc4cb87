# SPDX-License-Identifier: Apache-2.0
"""Trains a generative adversarial network: two networks, two optimizers, and the discriminator's
gradients of two backward passes. With --amp each optimizer has a GradScaler, made in the other
order."""

import contextlib
import sys

import torch
from torch import nn

torch.manual_seed(999)
netG = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh())
netD = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
amp = "--amp" in sys.argv
if amp:
    scalerG = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=3)
    scalerD = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=5)
context = torch.autocast("cpu", torch.float16) if amp else contextlib.nullcontext()


def backward(loss, scaler):
    (scaler.scale(loss) if amp else loss).backward()


def step(optimizer, scaler):
    if amp:
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step()


for i in range(12):
    data = torch.randn(16, 8).tanh()
    netD.zero_grad()
    with context:
        errD_real = criterion(netD(data), torch.ones(16, 1))
    backward(errD_real, amp and scalerD)
    with context:
        fake = netG(torch.randn(16, 6))
        errD_fake = criterion(netD(fake.detach()), torch.zeros(16, 1))
    backward(errD_fake, amp and scalerD)
    step(optimizerD, amp and scalerD)

    netG.zero_grad()
    with context:
        errG = criterion(netD(fake), torch.ones(16, 1))
    backward(errG, amp and scalerG)
    step(optimizerG, amp and scalerG)
print("Loss_D", (errD_real + errD_fake).item(), "Loss_G", errG.item())
