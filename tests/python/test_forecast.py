# SPDX-License-Identifier: Apache-2.0
"""`halfscope weights --forecast` against the weights that PyTorch computes next."""

import json

import pytest
import torch
from program import run, stdout_of
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from halfscope.torch import Recorder

FUSED = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 4)  # on a CPU
SAMPLED_STEPS, ALL_STEPS = 12, 500


class Attention(nn.Module):
    """One block of attention over eight tokens, with an embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.attention = nn.MultiheadAttention(16, 2)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 32)

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.out(self.norm(x + self.attention(x, x, x)[0])).flatten(0, 1)


def perceptron():
    model = nn.Sequential(nn.Linear(24, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 10))
    return model, lambda: (torch.randn(16, 24), torch.randint(0, 10, (16,)))


def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return model, lambda: (torch.randn(8, 3, 12, 12), torch.randint(0, 10, (8,)))


def attention():
    def batch():
        tokens = torch.randint(0, 32, (8, 4))
        return tokens, tokens.roll(-1, 0).flatten()

    return Attention(), batch


def in_bfloat16():
    model, batch = perceptron()

    def narrow():
        x, y = batch()
        return x.bfloat16(), y

    return model.bfloat16(), narrow


ROLES = ("weight", "weight_after", "optimizer_state", "weight_grad")


def read_forecast(folder):
    return json.loads(stdout_of("weights", folder, "--forecast", "--json", "-"))


def forecast_of(network, make, steps, folder, seed=5, roles=ROLES, **options):
    """Trains with a sample of each step; returns the forecast's JSON."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, batch = network()
    optimizer = make(model.parameters(), **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    with Recorder(model, optimizer, folder, every=steps, sample_every=1,
                  sample_roles=roles):
        for _ in range(steps):
            x, y = batch()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
    return read_forecast(folder)


def check(found, exact):
    judged = found["judged"]
    assert judged["elements"] > 0
    assert judged["missed"] == 0  # recall 1
    assert judged["found"] == judged["moves"]  # precision 1
    assert judged["moved"] <= judged["found"] + judged["undecided"]
    assert 0 < judged["moved"] < judged["elements"]
    if exact:
        assert found["undecided"] == 0
        assert judged["moved"] == judged["found"]
    else:
        assert found["undecided"] < found["elements"] / 1000


STEPS = [SAMPLED_STEPS, pytest.param(ALL_STEPS, marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("network", [perceptron, convolutions, attention])
@pytest.mark.parametrize("row, options", [
    ("cpu", {"foreach": False}), ("cpu-foreach", {"foreach": True}),
    pytest.param("cpu-fused", {"fused": True}, marks=pytest.mark.skipif(
        not FUSED, reason="PyTorch has had fused=True on a CPU since 2.4"))])
def test_adamw(network, row, options, steps, tmp_path):
    found = forecast_of(network, torch.optim.AdamW, steps, tmp_path / "log", lr=2e-3, **options)
    assert {tensor["optimizer"] for tensor in found["tensors"]} == {row}
    check(found, exact=row == "cpu-fused")


def test_sgd_with_momentum(tmp_path):
    found = forecast_of(perceptron, torch.optim.SGD, SAMPLED_STEPS, tmp_path / "log", lr=0.01,
                        momentum=0.9)
    check(found, exact=True)


@pytest.mark.skipif(not FUSED, reason="16-bit steps of PyTorch before 2.4 have no row")
@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("make, options", [
    (torch.optim.AdamW, {"lr": 2e-3}), (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9})])
def test_bfloat16_parameters(make, options, foreach, tmp_path):
    found = forecast_of(in_bfloat16, make, SAMPLED_STEPS, tmp_path / "log", foreach=foreach,
                        **options)
    check(found, exact=True)


@pytest.mark.skipif(not FUSED, reason="PyTorch has had fused=True on a CPU since 2.4")
def test_a_fused_step_of_16_bit_state_is_refused(tmp_path):
    model, batch = in_bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    with Recorder(model, optimizer, tmp_path / "log", sample_every=1):
        for _ in range(2):
            x, y = batch()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    refused = run("weights", tmp_path / "log", "--forecast", expect=1).stderr
    assert "fused kernels compute the weights from it before it is rounded" in refused


def test_the_size_of_updates_alone_says_how_many_move(tmp_path):
    found = forecast_of(perceptron, torch.optim.AdamW, SAMPLED_STEPS, tmp_path / "log", lr=2e-3)
    assert found["expected_by_size"] == pytest.approx(found["judged"]["moved"], rel=0.05)


def test_ranks_are_judged_by_their_own_next_weights(tmp_path):
    """Without weight_after: by the next sample."""
    alone = []
    for rank in range(2):
        folder = tmp_path / "log" / f"rank-{rank:04}"
        alone.append(forecast_of(perceptron, torch.optim.SGD, 4, folder, seed=rank, lr=0.01, roles=(
            "weight", "optimizer_state", "weight_grad"), momentum=0.9))
        manifest = json.loads((folder / "run.json").read_text())
        manifest.update(rank=rank, world_size=2, sharded=["weight", "optimizer_state", "weight_grad"])
        (folder / "run.json").write_text(json.dumps(manifest))
    both = read_forecast(tmp_path / "log")
    assert both["steps"] == alone[0]["steps"] == [0, 1, 2, 3]
    assert both["moves"] == alone[0]["moves"] + alone[1]["moves"]
    assert both["judged"] == {key: n + alone[1]["judged"][key] for key, n in alone[0]["judged"].items()}
    check(both, exact=True)


def test_a_skipped_step_is_not_forecast(tmp_path):
    forecast_of(perceptron, torch.optim.SGD, 4, tmp_path / "log", lr=0.01)
    file = sorted((tmp_path / "log" / "tensors").glob("step-*.safetensors"))[2]
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata() | {"found_inf": "1"}
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}
    save_file(tensors, file, metadata)
    assert read_forecast(tmp_path / "log")["steps"] == [0, 1, 3]


def test_a_missing_log_is_named(tmp_path):
    assert "no such" in run("weights", tmp_path / "none", "--forecast", expect=1).stderr


def test_a_log_without_state_is_refused(tmp_path):
    model, batch = perceptron()
    optimizer = torch.optim.AdamW(model.parameters())
    with Recorder(model, optimizer, tmp_path / "log", sample_every=1, sample_roles=("weight",)):
        for _ in range(2):
            x, y = batch()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    refused = run("weights", tmp_path / "log", "--forecast", expect=1).stderr
    assert "optimizer_state" in refused and str(tmp_path / "log") in refused
