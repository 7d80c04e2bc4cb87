# SPDX-License-Identifier: Apache-2.0
"""Other tools' recording, for bench_recording.py. The functions compute what the tools'
documentation says, on the tensors that the recorder sees at a recorded step: weights,
activations and their gradients."""

import contextlib
import math

import torch


def histc(tensor, name):
    """64 bins from the smallest to the largest value, as wandb.watch records them."""
    flat = tensor.detach().flatten().float()
    low, high = flat.min().item(), flat.max().item()
    if not math.isfinite(high - low):  # a step that a GradScaler skips has no bins
        return None
    return torch.histc(flat, bins=64, min=low, max=high).tolist()


def statistics(tensor, name):
    """The statistics of Transformer Engine's LogTensorStats for values in high precision."""
    x = tensor.detach().float()
    return torch.stack([x.min(), x.max(), x.mean(), x.std(), x.abs().mean(), x.norm(1),
                        x.norm(2), x.abs().max()]).tolist()


def add_histogram(folder):
    """TensorBoard's add_histogram with its default bins. None if it is not installed, or if its
    NumPy does not work with PyTorch 1.13."""
    try:
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter(folder)
        writer.add_histogram("first", torch.ones(2))
    except (ImportError, TypeError):
        return None
    return lambda tensor, name: writer.add_histogram(name, tensor)


@contextlib.contextmanager
def looking_at(model, optimizer, look):
    """Calls `look(tensor, name)` for every tensor that the recorder records at a step, except
    updates."""
    handles = []

    def see_output(name):
        def hook(module, inputs, output):
            if not isinstance(output, torch.Tensor) or not output.requires_grad:
                return
            look(output, f"activation/{name}")
            output.register_hook(lambda grad: look(grad, f"activation_grad/{name}") and None)
        return hook

    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(see_output(name)))
    before = optimizer.step

    def step(*arguments, **named):
        for name, weight in model.named_parameters():
            look(weight, f"weight/{name}")
            look(weight.grad, f"weight_grad/{name}")
        return before(*arguments, **named)

    optimizer.step = step
    try:
        yield
    finally:
        optimizer.step = before
        for handle in handles:
            handle.remove()
