# SPDX-License-Identifier: Apache-2.0
"""Weights of which some are kept in BF16: what a step leaves unchanged there is lost in the run itself. The
judge compares the weights before and after each step in plain PyTorch."""
import contextlib
import functools
import json
import re

import pytest

from program import json_of

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from halfscope.torch import Recorder, emulate  # noqa: E402

recommend = functools.partial(json_of, "recommend")


class Casting(nn.Module):
    """Runs each layer in the format of its own parameters."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            own = next(layer.parameters(), None)
            x = layer(x if own is None else x.to(own.dtype))
        return x.float()


def dense():
    return Casting(nn.Sequential(nn.Linear(32, 48), nn.LayerNorm(48), nn.ReLU(), nn.Linear(48, 48),
                                 nn.LayerNorm(48), nn.ReLU(), nn.Linear(48, 4)))


class Attention(nn.Module):
    """One block of a transformer over 8 tokens of 4 features."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Linear(4, 32), nn.LayerNorm(32)
        self.qkv, self.out, self.head = nn.Linear(32, 96), nn.Linear(32, 32), nn.Linear(32, 4)

    def forward(self, x):
        kept = self.qkv.weight.dtype
        x = self.embed(x.reshape(-1, 8, 4).to(kept))
        q, k, v = self.qkv(self.norm(x.to(self.norm.weight.dtype)).to(kept)).chunk(3, dim=-1)
        weights = torch.softmax(q.float() @ k.float().transpose(1, 2), dim=-1)
        return self.head(self.out((weights @ v.float()).to(kept)).mean(1)).float()


class Memory(nn.Module):
    """An LSTM cell of plain products, over 8 steps of 4 features."""

    def __init__(self):
        super().__init__()
        self.gates, self.norm, self.head = nn.Linear(4 + 24, 96), nn.LayerNorm(24), nn.Linear(24, 4)

    def forward(self, x):
        h = c = x.new_zeros(len(x), 24)
        for now in x.reshape(-1, 8, 4).unbind(1):
            i, f, o, g = self.gates(torch.cat([now, h], 1).to(self.gates.weight.dtype)).float().chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(self.norm(h).to(self.head.weight.dtype)).float()


def train(model, log, optimizer_of, loop=None, steps=6):
    """The updates that are not zero of the weights kept in BF16, and those that change nothing, over all
    steps. The gradient tells whether there is one."""
    torch.manual_seed(1)
    x, y = torch.randn(64, 32), torch.randint(0, 4, (64,))
    optimizer = optimizer_of(model.parameters())
    run = loop(model, optimizer, log) if loop else contextlib.nullcontext()
    recorder = contextlib.nullcontext() if loop else Recorder(model, optimizer, log, every=1, sample_every=1)
    lost = updates = 0
    with run, recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            (run.backward if loop else torch.Tensor.backward)(loss)
            before = [p.detach().clone() for p in model.parameters()]
            optimizer.step()
            for p, was in zip(model.parameters(), before):
                if p.dtype == torch.bfloat16:
                    moves = p.grad != 0
                    lost += int((moves & (p == was)).sum())
                    updates += int(moves.sum())
    return lost, updates


def share_in(title):
    return float(re.search(r"([\d.]+) % of [\d,]+ sampled weight updates are lost", title)[1]) / 100


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-5)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3)


@pytest.mark.parametrize("network", [dense, Attention, Memory])
@pytest.mark.parametrize("optimizer", [adam, sgd])
def test_weights_partly_in_bf16_lose_what_pytorch_loses(network, optimizer, tmp_path):
    torch.manual_seed(0)
    model = network()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.to(torch.bfloat16)
    lost, updates = train(model, tmp_path / "run", optimizer)
    answer = recommend(tmp_path / "run", "--format", "bfloat16")["answer"]
    narrow = sum(p.dtype == torch.bfloat16 for p in model.parameters())
    assert answer["headline"].startswith(
        f"{narrow} of {len(list(model.parameters()))} weight tensors are stored in BF16: ")
    assert answer["severity"] == "breaks"
    assert abs(share_in(answer["headline"]) - lost / updates) < 0.01
    assert "Nothing was found" not in json.dumps(answer)
    assert "If weights were stored" not in json.dumps(answer)


def test_emulated_bf16_is_said_as_a_fact(tmp_path):
    torch.manual_seed(0)
    train(dense(), tmp_path / "run", adam,
          lambda model, optimizer, log: emulate(model, optimizer, precision="bf16", log=log, every=1,
                                                sample_every=1))
    headline = recommend(tmp_path / "run")["answer"]["headline"]
    assert headline.startswith("6 of 10 weight tensors are stored in BF16: 9")
    assert "are lost there" in headline


def test_weights_in_fp32_lose_nothing(tmp_path):
    torch.manual_seed(0)
    assert train(dense(), tmp_path / "run", adam) == (0, 0)
    found = recommend(tmp_path / "run", "--format", "bfloat16")
    titles = [finding["title"] for finding in found["answer"]["findings"]]
    assert any(title.startswith("If weights were stored in BF16 alone") for title in titles)
    assert not any("are stored in BF16" in title for title in titles)


def test_each_weight_has_the_format_it_is_kept_in(tmp_path):
    torch.manual_seed(0)
    model = dense()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.to(torch.bfloat16)
    train(model, tmp_path / "run", adam)
    found = json_of("analyze", tmp_path / "run")
    kept = {t["name"].removeprefix("weight/"): t["kept_in"] for t in found["tensors"] if "updates" in t}
    names = {torch.bfloat16: "BF16", torch.float32: "F32"}
    assert kept == {name: names[p.dtype] for name, p in model.named_parameters()}
