# SPDX-License-Identifier: Apache-2.0
"""A network small enough to be trained in a test, its data, and a twin looked at by hand."""

import torch
from torch import nn

import halfscope


def small_network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 5))


def half_ulp(values):
    """Half the distance between neighbours of the values' type, at the values; in binary64."""
    info = torch.finfo(values.dtype)
    _, exponent = torch.frexp(values.double())
    unit = torch.full_like(values.double(), info.eps / 4)
    return torch.maximum(torch.ldexp(unit, exponent), torch.full_like(unit, info.tiny * info.eps / 2))


def hooks_get_none_too(monkeypatch):
    """As from PyTorch 2 on where an operation has several outputs and the loss depends on some."""
    register = torch.Tensor.register_hook

    def register_and_call(tensor, hook):
        assert hook(None) is None
        return register(tensor, hook)

    monkeypatch.setattr(torch.Tensor, "register_hook", register_and_call)


def batch(step):
    generator = torch.Generator().manual_seed(1000 + step)
    return torch.randn(7, 1, 8, 8, generator=generator), torch.arange(7) % 5


def loss_of(model, step):
    device = next(model.parameters()).device  # DataParallel moves it to a GPU where there is one
    x, y = (tensor.to(device) for tensor in batch(step))
    return nn.functional.cross_entropy(model(x), y)


def train(model, optimizer, recorder, steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = recorder.loss(loss_of(model, step))
        loss.backward()
        optimizer.step()


def twin_step(model, optimizer, step):
    """One step of a copy, and by hand everything the recorder should see of it: {name: tensor}."""
    x, y = batch(step)
    optimizer.zero_grad()
    seen = {f"weight/{name}": p.detach().clone() for name, p in model.named_parameters()}
    outputs = {}
    for name, module in model.named_children():
        x = module(x)
        if x.requires_grad:
            x.retain_grad()
        outputs[name] = x
    loss = nn.functional.cross_entropy(x, y)
    loss.backward()
    for name, output in outputs.items():
        seen[f"activation/{name}"] = output.detach()
        seen[f"activation_grad/{name}"] = output.grad
    for name, p in model.named_parameters():
        seen[f"weight_grad/{name}"] = p.grad.clone()
    optimizer.step()
    for name, p in model.named_parameters():
        seen[f"weight_after/{name}"] = p.detach().clone()
    return loss.item(), seen


def gradients_of(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def largest(gradients):
    return max(g.abs().max().item() for g in gradients.values())


def require_recorded(log, step, gradients):
    for name, gradient in gradients.items():
        assert log.tables[f"weight_grad/{name}", step]["table"] == halfscope.binade_table(gradient)
    assert log.scalars[step]["max_abs_weight_grad"] == largest(gradients)


def join_ranks(rank, folder, ranks=2):
    """They meet at a file, not at a port, which another test may have."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/ranks-meet-here",
                                         rank=rank, world_size=ranks)


def require_same_log(log, other):
    """Histograms, scalars and samples, to the bit; nothing is missing in either."""
    assert log.tables.keys() == other.tables.keys()
    for key, record in other.tables.items():
        assert log.tables[key] == record, key
    assert repr(log.scalars) == repr(other.scalars)  # NaN equals NaN
    assert log.sample_files.keys() == other.sample_files.keys()
    for step in other.sample_files:
        (mine, _), (theirs, _) = log.sample(step), other.sample(step)
        assert mine.keys() == theirs.keys()
        for name, values in theirs.items():
            assert torch.equal(mine[name].nan_to_num(), values.nan_to_num()), name
