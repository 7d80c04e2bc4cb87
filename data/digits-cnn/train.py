# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on scikit-learn's digits in FP32 and records the run.

1797 images of handwritten digits, 8x8 pixels (UCI "Optical Recognition of Handwritten Digits"). The
log beside this file was made by `python train.py log`; README.md says on what machine.
"""

import argparse
from collections import OrderedDict

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from halfscope.torch import Recorder

SEED = 0
BATCH = 32
STEPS = 901
RECORDED = (0, 1, 2, 5, 10, 30, 100, 300, 600, 900)
SAMPLED = (0, 100, 900)


def digits():
    """(training images, labels, test images, labels); pixels from 0 to 1."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images, labels, test_size=0.2, random_state=SEED, stratify=labels)
    train, test, train_labels, test_labels = (torch.as_tensor(part) for part in split)

    def pixels(part):
        return (part / 16).float().reshape(-1, 1, 8, 8)

    return pixels(train), train_labels, pixels(test), test_labels


def network():
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(1, 8, 3, padding=1), relu1=nn.ReLU(),
        conv2=nn.Conv2d(8, 16, 3, padding=1), relu2=nn.ReLU(),
        pool=nn.MaxPool2d(2), flatten=nn.Flatten(), classifier=nn.Linear(16 * 4 * 4, 10)))


def has_numbers_of_its_own(path, module):
    return not isinstance(module, nn.Flatten)  # the pool's, in another shape


def batches(images, labels, steps):
    """Epoch after epoch, each in an order of its own; an epoch's last, smaller batch is left out."""
    done = 0
    while True:
        order = torch.randperm(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            if done == steps:
                return
            chosen = order[first:first + BATCH]
            yield images[chosen], labels[chosen]
            done += 1


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder of the log; it may not hold one yet")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()

    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in the same order everywhere
    torch.use_deterministic_algorithms(True)
    images, labels, test_images, test_labels = digits()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    about = {"data": "scikit-learn digits, 1437 of 1797 images", "batch": BATCH, "seed": SEED}

    with Recorder(model, optimizer, options.out, every=RECORDED, sample_every=SAMPLED,
                  modules=has_numbers_of_its_own, about=about) as recorder:
        for x, y in batches(images, labels, options.steps):
            optimizer.zero_grad()
            loss = recorder.loss(loss_function(model(x), y))
            loss.backward()
            optimizer.step()

    print(f"loss of the last batch {loss.item():.6f}, "
          f"training accuracy {accuracy(model, images, labels):.2%}, "
          f"test accuracy {accuracy(model, test_images, test_labels):.2%}")


if __name__ == "__main__":
    main()
