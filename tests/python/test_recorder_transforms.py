# SPDX-License-Identifier: Apache-2.0
"""A recorded model that is also called where its tensors hold no values: under transforms of
torch.func, with FakeTensors, while it is traced. Such calls are not recorded, and end nothing."""

import inspect
import warnings

import pytest
import torch
from small_runs import batch, require_same_log, small_network, train
from torch import nn

from halfscope.torch import Recorder


def per_sample_gradients(model):
    func = pytest.importorskip("torch.func")
    x, y = batch(0)

    def loss(parameters, x, y):
        return nn.functional.cross_entropy(func.functional_call(model, parameters, (x[None],)), y[None])

    parameters = {name: p.detach() for name, p in model.named_parameters()}
    func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)


def jvp(model):
    func = pytest.importorskip("torch.func")
    func.jvp(model, (batch(0)[0],), (torch.ones(7, 1, 8, 8),))


def fake_tensors(model):
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    if "allow_non_fake_inputs" not in inspect.signature(fake.FakeTensorMode).parameters:
        pytest.skip("before PyTorch 2.0")
    with fake.FakeTensorMode(allow_non_fake_inputs=True):
        model(torch.randn(7, 1, 8, 8))


def jit_trace(model):
    traced = torch.jit.trace(model, batch(0)[0])  # compares two graphs, with all that is in them
    assert "detach" not in str(traced.inlined_graph)


@pytest.mark.parametrize("call", [per_sample_gradients, jvp, fake_tensors, jit_trace])
def test_the_log_is_that_of_a_run_without_the_call(tmp_path, read_log, call):
    logs = []
    for name in ("without", "with"):
        model = small_network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with Recorder(model, optimizer, tmp_path / name, sample_every=2) as recorder:
                train(model, optimizer, recorder, 2)
                if name == "with":
                    call(model)
                train(model, optimizer, recorder, 2)
        logs.append(read_log(tmp_path / name))
    require_same_log(*logs)
