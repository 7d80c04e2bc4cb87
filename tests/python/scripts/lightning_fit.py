# SPDX-License-Identifier: Apache-2.0
"""Trains with Lightning, on as many processes of the CPU as the first argument says."""

import sys

import lightning
import torch
from torch import nn


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.network(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.network(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


if __name__ == "__main__":
    lightning.seed_everything(1)
    data = [(torch.randn(5, 6), torch.arange(5) % 3) for _ in range(16)]
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    devices = int(sys.argv[1])
    trainer = lightning.Trainer(
        accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto", max_steps=7,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Classifier(), loader, loader)
