# SPDX-License-Identifier: Apache-2.0
"""The recorder on a model that torch.compile compiles."""

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder
from small_runs import batch, small_network

pytestmark = pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")


@pytest.fixture(params=["eager", "inductor"])
def compile_it(request):
    torch._dynamo.reset()
    return lambda model: torch.compile(model, backend=request.param)


def train(network, parameters, optimizer):
    """Two steps, clipped; the gradients that backward made."""
    made = []
    for step in range(2):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        made.append({name: p.grad.clone() for name, p in parameters.items()})
        nn.utils.clip_grad_norm_(parameters.values(), 0.001)
        optimizer.step()
    return made


def require_weight_gradients(log, made):
    for step, gradients in enumerate(made):
        for name, gradient in gradients.items():
            record = log.tables[f"weight_grad/{name}", step]
            assert record["table"] == halfscope.binade_table(gradient)
        assert log.scalars[step]["max_abs_weight_grad"] == max(
            g.abs().max().item() for g in gradients.values())


@pytest.mark.parametrize("first", ["recorder", "compile"])
def test_weights_and_their_gradients_are_recorded_and_the_rest_is_named(tmp_path, read_log,
                                                                       compile_it, first):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = compile_it(model) if first == "compile" else None
    with pytest.warns(RuntimeWarning, match="torch.compile compiles the model") as said:
        with Recorder(compiled or model, optimizer, tmp_path / "run"):
            made = train(compiled or compile_it(model), dict(model.named_parameters()), optimizer)
    assert len([w for w in said if "torch.compile" in str(w.message)]) == 1
    log = read_log(tmp_path / "run")
    require_weight_gradients(log, made)
    assert not any(name.startswith("activation") for name, _ in log.tables)
