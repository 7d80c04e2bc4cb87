# SPDX-License-Identifier: Apache-2.0
"""The recorder on a model that torch.compile compiles."""

import json

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder, emulate
from small_runs import batch, small_network

pytestmark = pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")


@pytest.fixture(params=["eager", "inductor"])
def compile_it(request):
    torch._dynamo.reset()
    return lambda model: torch.compile(model, backend=request.param)


def train(network, parameters, optimizer, steps=2):
    """Clipped steps; the gradients that backward made."""
    made = []
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        made.append({name: p.grad.clone() for name, p in parameters.items()})
        nn.utils.clip_grad_norm_(parameters.values(), 0.001)
        optimizer.step()
    return made


def require_weight_gradients(log, made, every=1):
    for step, gradients in enumerate(made):
        for name, gradient in gradients.items() if step % every == 0 else ():
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


class Compiler:
    """Counts what torch.compile compiles; needs no C++ compiler."""

    def __init__(self):
        from torch._dynamo.testing import CompileCounter

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        self._counter = CompileCounter()

    def __call__(self, model, how="wrapper"):
        if how == "wrapper":
            return torch.compile(model, backend=self._counter)
        model.compile(backend=self._counter)
        return model

    @property
    def graphs(self):
        """How many were compiled; none had a break."""
        breaks = torch._dynamo.utils.counters["graph_break"]
        assert not breaks, dict(breaks)
        assert self._counter.op_count % 4 == 0  # the network's four operations, in one graph
        return self._counter.frame_count


@pytest.fixture
def compiler():
    return Compiler()


@pytest.mark.filterwarnings("ignore:Recorder. torch.compile:RuntimeWarning")
@pytest.mark.parametrize("how", ["wrapper", "in place"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("before", [0, 1])
def test_it_is_compiled_once_and_has_no_graph_break(tmp_path, read_log, compiler, before, every, how):
    """Steps of both kinds, the samples' too. before: steps before it is recorded."""
    model = small_network()
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = compiler(model, how)
    train(compiled, parameters, optimizer, before)
    with Recorder(compiled, optimizer, tmp_path / "run", every=every, sample_every=4,
                  local_gradients=True):
        made = train(compiled, parameters, optimizer, 9)
        assert compiler.graphs == 1
    if before:
        train(compiled, parameters, optimizer, 2)
        assert compiler.graphs == 1
    require_weight_gradients(read_log(tmp_path / "run"), made, every)


@pytest.mark.filterwarnings("ignore:Recorder. two steps had backward:RuntimeWarning")
@pytest.mark.parametrize("every, magnitudes_every, graphs", [(1, 1, 1), (3, 1, 1), (1, None, 1),
                                                             (3, None, 2)])
def test_where_it_is_compiled_later_each_kind_of_step_is_compiled_once(
        tmp_path, read_log, compiler, every, magnitudes_every, graphs):
    """A recorder that was given the model before it was compiled has hooks where it reads gradients
    of activations."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", every=every,
                  magnitudes_every=magnitudes_every):
        made = train(compiler(model), dict(model.named_parameters()), optimizer, 9)
    assert compiler.graphs == graphs
    require_weight_gradients(read_log(tmp_path / "run"), made, every)


@pytest.mark.filterwarnings("ignore:Recorder. torch.compile:RuntimeWarning")
def test_a_part_that_is_compiled_is_compiled_once(tmp_path, read_log, compiler):
    """The other modules have their activations in the log."""
    model = nn.Sequential(compiler(small_network()), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", every=2):
        train(model, dict(model.named_parameters()), optimizer, 5)
    assert compiler.graphs == 1
    names = read_log(tmp_path / "run").names(2)
    assert [name for name in names if name.startswith("activation/")] == ["activation/1"]
    assert "weight_grad/0.3.weight" in names


@pytest.mark.filterwarnings("ignore:Recorder. torch.compile:RuntimeWarning")
def test_what_gradients_were_computed_in_is_not_known(tmp_path, read_log, compiler):
    """Autocast inside of the graph is not seen, and a float32 gradient may be a 16-bit result."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = compiler(model)
    with Recorder(compiled, optimizer, tmp_path / "run"):
        with torch.autocast("cpu", torch.bfloat16):
            train(compiled, dict(model.named_parameters()), optimizer, 1)
    assert read_log(tmp_path / "run").tables["weight_grad/3.weight", 0]["computed_dtype"] is None
    assert json.loads((tmp_path / "run/run.json").read_text())["autocast"] == {"cpu": "bfloat16"}


@pytest.mark.parametrize("how", ["wrapper", "in place", "a part"])
def test_emulate_refuses_a_compiled_model(tmp_path, compiler, how):
    model = small_network()
    if how == "a part":
        model.add_module("3", compiler(model[3]))
    else:
        model = compiler(model, how)
    with pytest.raises(TypeError, match="model: torch.compile compiles it, or a part of it, .* give "
                                        r"emulate\(\) the model that is not compiled"):
        emulate(model, torch.optim.SGD(model.parameters(), lr=0.1), log=tmp_path / "run")
    assert not (tmp_path / "run").exists()
