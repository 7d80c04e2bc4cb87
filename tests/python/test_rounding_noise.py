# SPDX-License-Identifier: Apache-2.0
"""Gradients whose exact value is 0 and that hold rounding errors alone: they are found, said in one line,
and decide nothing. The judge computes the same gradients in FP64."""
import json
import math

import pytest

from program import json_of, stdout_of

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from halfscope.torch import Recorder  # noqa: E402


class Attention(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.embed, self.norm = nn.Embedding(20, width), nn.LayerNorm(width)
        self.qkv, self.out, self.head = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 20)

    def forward(self, tokens):
        x = self.embed(tokens)
        n, t, width = x.shape
        q, k, v = (z.view(n, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm(x)).chunk(3, -1))
        mixed = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(width / self.heads), -1) @ v
        return self.head(x + self.out(mixed.transpose(1, 2).reshape(n, t, width))).flatten(0, 1)


def cnn():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
                         nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 10))


def plain():
    """Without a gradient that is 0."""
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(8 * 16, 10))


def attention_data():
    return torch.randint(0, 20, (16, 12)), torch.randint(0, 20, (16 * 12,))


def images():
    return torch.randn(32, 3, 8, 8), torch.randint(0, 10, (32,))


def gradients_of(model, x, y):
    model.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    return {name: p.grad.double().clone() for name, p in model.named_parameters()}


def train(model, data, out, steps=3):
    """Of each parameter and over all steps, how many nonzero gradients in FP32 are off by half of themselves
    or more: FP64 tells what they are."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    noise = {name: 0 for name, _ in model.named_parameters()}
    exactly = type(model)() if isinstance(model, Attention) else (cnn if len(model) == 8 else plain)()
    exactly = exactly.double()
    inputs = [data() for _ in range(steps)]
    with Recorder(model, optimizer, out, every=1) as recorder:
        for x, y in inputs:
            exactly.load_state_dict({k: v.double() if v.is_floating_point() else v
                                     for k, v in model.state_dict().items()})
            exact = gradients_of(exactly, x.double() if x.is_floating_point() else x, y)
            optimizer.zero_grad()
            recorder.loss(nn.functional.cross_entropy(model(x), y)).backward()
            for name, p in model.named_parameters():
                g = p.grad.double()
                noise[name] += int(((g != 0) & ((g - exact[name]).abs() >= g.abs() / 2)).sum())
            optimizer.step()
    return noise


def noise_in(log):
    return {t["name"].removeprefix("weight_grad/"): t["rounding_noise"]
            for t in json_of("analyze", log)["tensors"] if "rounding_noise" in t}


@pytest.mark.parametrize("network, data, biases", [(Attention, attention_data, ["qkv.bias"]),
                                                   (cnn, images, ["0.bias", "3.bias"])])
def test_noise_is_what_fp64_calls_noise(network, data, biases, tmp_path):
    torch.manual_seed(0)
    true = train(network(), data, tmp_path / "run")
    found = noise_in(tmp_path / "run")
    assert sorted(found) == biases
    for name in biases:
        assert 0.9 * true[name] <= found[name] <= true[name], (name, found[name], true[name])
    advice = json_of("recommend", tmp_path / "run")
    titles = [finding["title"] for finding in advice["answer"]["findings"]]
    line, = (title for title in titles if "rounding errors of their sums" in title)
    assert all(name in line for name in biases) and f"{sum(found.values()):,} of the" in line


def test_noise_decides_nothing(tmp_path):
    torch.manual_seed(0)
    train(Attention(), attention_data, tmp_path / "run")
    advice = json_of("recommend", tmp_path / "run")
    # Keys' gradients of 1e-11 would need a scale of 2^20 and more; the others are far larger.
    assert advice["lowest"] <= 2**14
    assert not any("qkv.bias" in name for name in advice.get("above_target", []))
    shown = stdout_of("analyze", tmp_path / "run")
    rows = [line for line in shown.splitlines() if "weight_grad/" in line]
    assert "qkv.bias" not in rows[0]


def test_a_network_without_noise_has_none(tmp_path):
    torch.manual_seed(0)
    train(plain(), images, tmp_path / "run")
    assert noise_in(tmp_path / "run") == {}
    assert "rounding errors of their sums" not in json.dumps(json_of("recommend",
                                                                     tmp_path / "run")["answer"])
