# SPDX-License-Identifier: Apache-2.0
"""Trains models whose forward() nobody calls: an encoder and a decoder of one module, two modules of one
optimizer, and a closure of L-BFGS."""

import torch
from torch import nn

torch.manual_seed(5)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 3), nn.Tanh())
        self.decoder = nn.Linear(3, 8)


def autoencoder():
    model = Autoencoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(16, 8)
        optimizer.zero_grad()
        nn.functional.mse_loss(model.decoder(model.encoder(x)), x).backward()
        optimizer.step()


def backbone_and_head():
    backbone, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 4)
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], lr=0.01)
    for step in range(6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(backbone(torch.randn(12, 8))), torch.arange(12) % 4)
        loss.backward()
        optimizer.step()


def closure_of_lbfgs():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    x = torch.randn(32, 8)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
        loss.backward()
        return loss

    for step in range(5):
        optimizer.step(closure)


autoencoder()
backbone_and_head()
closure_of_lbfgs()
