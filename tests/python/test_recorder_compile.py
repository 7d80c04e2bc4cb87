# SPDX-License-Identifier: Apache-2.0
"""The recorder on a model that torch.compile compiles."""

import warnings

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
def test_a_recorder_that_starts_before_the_first_call_sees_all(tmp_path, read_log, compile_it, first):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = compile_it(model) if first == "compile" else None
    with Recorder(compiled or model, optimizer, tmp_path / "run"):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Recorder")
            made = train(compiled or compile_it(model), dict(model.named_parameters()), optimizer)
    log = read_log(tmp_path / "run")
    require_weight_gradients(log, made)
    twin = small_network()
    x, y = batch(0)
    outputs = twin[0](x), twin(x)
    for layer, output in zip("03", outputs):
        found = log.tables[f"activation/{layer}", 0]["table"]
        assert found.total == output.numel()
        assert log.tables[f"activation_grad/{layer}", 0]["table"].total == output.numel()
    assert log.scalars[0]["max_abs_activation_grad"] > 0


def test_one_that_starts_later_says_that_it_does_not_see_the_modules(tmp_path, read_log, compile_it):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = compile_it(model)
    train(compiled, dict(model.named_parameters()), optimizer)
    with Recorder(compiled, optimizer, tmp_path / "run"):
        with pytest.warns(RuntimeWarning, match="start the Recorder before") as said:
            made = train(compiled, dict(model.named_parameters()), optimizer)
    assert len([w for w in said if "start the Recorder" in str(w.message)]) == 1
    log = read_log(tmp_path / "run")
    require_weight_gradients(log, made)
    assert not any(name.startswith("activation") for name, _ in log.tables)
