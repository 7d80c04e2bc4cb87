# SPDX-License-Identifier: Apache-2.0
"""Sparse gradients, as of nn.Embedding(sparse=True): recorded as the dense ones they stand for."""

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder

WORDS = torch.tensor([1, 1, 1, 4, 5, 5])


def network(sparse):
    torch.manual_seed(3)
    return nn.Sequential(nn.Embedding(20, 6, sparse=sparse), nn.Linear(6, 20, bias=False))


def train(model, optimizer, microbatches=1):
    """Three steps; returns the gradients of each, dense."""
    made = []
    for _ in range(3):
        for _ in range(microbatches):
            nn.functional.cross_entropy(model(WORDS), torch.arange(6)).backward()
        made.append({name: p.grad.to_dense().clone() if p.grad.is_sparse else p.grad.clone()
                     for name, p in model.named_parameters()})
        optimizer.step()
        optimizer.zero_grad()
    return made


@pytest.mark.parametrize("microbatches", [1, 3])
@pytest.mark.parametrize("optimizer_of", [
    lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    lambda p: torch.optim.Adagrad(p, lr=0.1)],
    ids=["SGD", "SGD, momentum", "SGD, Nesterov", "Adagrad"])
def test_sampled_steps_hold_the_dense_gradient(tmp_path, read_log, optimizer_of, microbatches):
    model = network(sparse=True)
    with Recorder(model, optimizer_of(list(model.parameters())), tmp_path / "run", sample_every=1,
                  local_gradients=True) as recorder:
        made = train(model, recorder.optimizer, microbatches)
    log = read_log(tmp_path / "run")
    for step, gradients in enumerate(made):
        sample, _ = log.sample(step)
        for name, gradient in gradients.items():
            assert torch.equal(sample[f"weight_grad/{name}"], gradient)
            table = log.tables[f"weight_grad/{name}", step]["table"]
            assert table == halfscope.binade_table(gradient)
        if microbatches > 1:
            assert sample["local_weight_grad/0.weight"].shape == (microbatches, 20, 6)
        assert log.scalars[step]["max_abs_weight_grad"] == max(
            g.abs().max().item() for g in gradients.values())


def test_sparse_and_dense_gradients_give_one_log(tmp_path, read_log):
    samples = []
    for sparse in (True, False):
        model = network(sparse)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Recorder(model, optimizer, tmp_path / str(sparse), sample_every=1):
            train(model, optimizer)
        samples.append([read_log(tmp_path / str(sparse)).sample(step)[0] for step in range(3)])
    for sparse, dense in zip(*samples):
        assert sparse.keys() == dense.keys()
        assert "update/0.weight" in sparse
        for name in dense:
            assert torch.allclose(sparse[name], dense[name], rtol=1e-5, atol=1e-7), name
