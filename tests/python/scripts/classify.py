# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network as a reference script does: functions for an epoch and for
evaluation, a schedule, arguments, and a checkpoint at the end."""

import argparse
import os

import torch
from torch import nn


def train_one_epoch(model, criterion, optimizer, data_loader, epoch):
    model.train()
    for i, (image, target) in enumerate(data_loader):
        output = model(image)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"Epoch: [{epoch}] loss: {loss.item():.4f}")


def evaluate(model, data_loader):
    model.eval()
    with torch.inference_mode():
        right = sum((model(image).argmax(1) == target).sum().item() for image, target in data_loader)
    print(f"Test: Acc@1 {100 * right / 96:.3f}")


def main(args):
    torch.manual_seed(0)
    images, labels = torch.randn(96, 3, 12, 12), torch.arange(96) % 10
    dataset = torch.utils.data.TensorDataset(images, labels)
    data_loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size, shuffle=True,
                                              num_workers=args.workers)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, optimizer, data_loader, epoch)
        lr_scheduler.step()
        evaluate(model, data_loader)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
               os.path.join(args.output_dir, "checkpoint.pth"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--batch-size", default=24, type=int)
    parser.add_argument("--workers", default=1, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--every", default=7, type=int, help="an option that halfscope run has too")
    parser.add_argument("--output-dir", default=".")
    main(parser.parse_args())
