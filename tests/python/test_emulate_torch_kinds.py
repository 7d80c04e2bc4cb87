# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.emulate on gradients, containers and modules of unusual kinds."""

import collections
import dataclasses

import pytest
import torch
from torch import nn

from halfscope.torch import emulate


def is_half(tensor):
    return torch.equal(tensor, tensor.detach().half().float())


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)
    torch.set_num_threads(1)


def test_sparse_gradients_are_recorded(tmp_path, read_log):
    model = nn.EmbeddingBag(10, 4, mode="sum", sparse=True)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.1)
    with emulate(model, optimizer, "fp16", 8.0, log=tmp_path / "run", sample_every=1) as run:
        for _ in range(2):
            optimizer.zero_grad()
            run.backward(model(torch.tensor([[1, 1, 2]])).square().sum())
            gradient = model.weight.grad.to_dense().clone()
            optimizer.step()
    tensors, _ = read_log(tmp_path / "run").sample(1)
    assert tensors["weight_grad/weight"].dtype == torch.float16
    assert torch.equal(tensors["weight_grad/weight"].float(), gradient) and gradient.any()


@dataclasses.dataclass(frozen=True)
class Answer:
    values: torch.Tensor
    note: str = "kept"


def test_containers_of_all_kinds():
    class Kinds(nn.Module):
        def forward(self, x, cache):
            cache.append(1)
            found = collections.defaultdict(list)
            found["x"], found["answer"] = x * 1.1, Answer(x * 1.3)
            return found

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.kinds = nn.Linear(3, 3), Kinds()

        def forward(self, x):
            cache = []
            found = self.kinds(self.linear(x), cache)
            assert cache == [1] and found["none"] == []
            assert found["answer"].note == "kept"
            assert is_half(found["x"]) and is_half(found["answer"].values)
            return found["x"] + found["answer"].values

    model = Model()
    with emulate(model, sgd(model)) as run:
        run.backward(model(torch.randn(20, 3)).sum())
        assert is_half(model.linear.weight.grad) and model.linear.weight.grad.any()


def test_a_layer_with_adapters_inside_is_still_a_layer():
    class Adapted(nn.Linear):
        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs)
            self.down, self.up = nn.Linear(inputs, 2, bias=False), nn.Linear(2, outputs, bias=False)

        def forward(self, x):
            assert is_half(x)
            return super().forward(x) + self.up(self.down(x))

    model = nn.Sequential(Adapted(5, 7), nn.Flatten())
    with emulate(model, sgd(model)) as run:
        seen = []
        model[0].register_forward_hook(lambda module, x, y: seen.append(is_half(y)))
        run.backward(model(torch.randn(30, 5)).sum())
    assert seen == [True]
