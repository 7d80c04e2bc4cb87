# SPDX-License-Identifier: Apache-2.0
"""What the recorder makes of models and loops that are not plain."""

import copy

import pytest
import torch
from small_runs import batch, hooks_get_none_too, loss_of, small_network, train
from torch import nn

import halfscope
from halfscope.torch import Recorder


def test_an_undefined_gradient_is_none_that_arrived(tmp_path, monkeypatch, read_log):
    logs = []
    for name in ("as it is", "with None"):
        model = small_network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Recorder(model, optimizer, tmp_path / name) as recorder:
            train(model, optimizer, recorder, 2)
        logs.append(read_log(tmp_path / name))
        hooks_get_none_too(monkeypatch)
    assert logs[0].scalars == logs[1].scalars
    assert logs[0].tables == logs[1].tables


def test_gradient_accumulation_is_one_step(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    microbatches, losses = [], []
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        for step in range(2):
            optimizer.zero_grad()
            for part in range(3):
                before = [0 if p.grad is None else p.grad.clone() for p in model.parameters()]
                loss = recorder.loss(loss_of(model, 3 * step + part) / 3)
                loss.backward()
                losses.append(loss.item())
                microbatches.append(max((p.grad - b).abs().max().item()
                                        for p, b in zip(model.parameters(), before)))
            accumulated = model[3].weight.grad.clone()
            optimizer.step()
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == [0, 1]
    assert log.tables["weight_grad/3.weight", 1]["table"] == halfscope.binade_table(accumulated)
    for step in range(2):
        for part in range(3):
            recorded = log.scalars[step]["more"][f"max_abs/weight_grad/microbatch-{part}"]
            assert recorded == pytest.approx(microbatches[3 * step + part], rel=1e-4)
            assert f"max_abs/activation_grad/microbatch-{part}" in log.scalars[step]["more"]
    record = log.tables["activation/3", 1]
    assert record["shape"] == (3, 7, 5) and record["table"].total == 105
    assert log.tables["activation_grad/3", 1]["shape"] == (3, 7, 5)
    assert log.scalars[1]["loss"] == pytest.approx(sum(losses[3:]))


@pytest.mark.parametrize("scale", [None, 16.0])
def test_microbatches_are_recorded_with_the_scale(tmp_path, read_log, scale):
    """The two cancel, so that their sum does not tell what overflows."""
    model = nn.Linear(4, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x = torch.full((1, 4), 1000.0)
    with Recorder(model, optimizer, tmp_path / "run", loss_scale=scale) as recorder:
        for _ in range(4):
            optimizer.zero_grad()
            (recorder.loss(model(x).sum()) * (scale or 1)).backward()
            (recorder.loss(-model(x * 0.999).sum()) * (scale or 1)).backward()
            optimizer.step()
    more = read_log(tmp_path / "run").scalars[0]["more"]
    assert more["max_abs/weight_grad/microbatch-0"] == 1000 * (scale or 1)
    traces = halfscope.policies(tmp_path / "run", policies=["static,scale=32", "static,scale=128"])
    assert [len(t["skipped"]) for t in traces if t["policy"].startswith("static")][:2] == [0, 4]
    assert halfscope.recommend(tmp_path / "run")["static_scale"] == 32  # 1000 * 2^6 < 65520, headroom


class Odd(nn.Module):
    """A frozen layer, a layer used twice, two layers that share a weight, several outputs."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(4, 4)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)
        self.twice = nn.Linear(4, 4)
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.recurrent = nn.LSTM(4, 4)
        self.unused = nn.Linear(4, 4)

    def forward(self, x):
        a = self.twice(self.frozen(x))
        self.seen = [a, self.twice(a)]
        for tensor in self.seen:
            tensor.retain_grad()
        return self.recurrent(self.second(self.first(self.seen[1])))[0]


def test_frozen_shared_repeated_and_several_outputs(tmp_path, read_log):
    torch.manual_seed(0)
    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1):
        model(torch.randn(2, 3, 4)).square().sum().backward()
        shared = model.first.weight.grad.clone()
        optimizer.step()
    log = read_log(tmp_path / "run")
    names = set(log.names(0))
    assert "weight/frozen.weight" in names
    assert not names & {"weight_grad/frozen.weight", "update/frozen.weight",
                        "weight_grad/unused.weight", "update/unused.weight"}
    assert {"activation/frozen", "weight_grad/first.weight"} <= names
    assert "activation_grad/frozen" not in names  # nothing behind it is trained
    assert "weight/second.weight" not in names and "activation/second" in names
    assert log.tables["weight_grad/first.weight", 0]["table"] == halfscope.binade_table(shared)
    assert {"activation/recurrent.0", "activation/recurrent.1.0", "activation/recurrent.1.1"} <= names
    one, two = model.seen
    assert log.tables["activation/twice", 0]["table"] == (
        halfscope.binade_table(one.contiguous()) + halfscope.binade_table(two.contiguous()))
    assert log.tables["activation_grad/twice", 0]["table"] == (
        halfscope.binade_table(one.grad.contiguous()) + halfscope.binade_table(two.grad.contiguous()))
    sample, _ = log.sample(0)
    assert torch.equal(sample["activation/twice"], torch.stack([one, two]).detach())


def test_in_place_activations(tmp_path, read_log):
    """The gradient of an in-place module's output is its own, not that of the value it replaced."""
    plain = small_network()
    in_place = small_network()
    in_place[1] = nn.ReLU(inplace=True)
    logs = []
    for name, model in (("plain", plain), ("in_place", in_place)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Recorder(model, optimizer, tmp_path / name, sample_every=1) as recorder:
            train(model, optimizer, recorder, 1)
        logs.append(read_log(tmp_path / name))
    tables, samples = zip(*(({key: record["table"] for key, record in log.tables.items()},
                             log.sample(0)[0]) for log in logs))
    assert tables[0] == tables[1]
    assert tables[0]["activation_grad/0", 0] != tables[0]["activation_grad/1", 0]
    assert all(torch.equal(samples[0][name], samples[1][name]) for name in samples[0])


def test_evaluation_between_steps_is_not_recorded(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        for step in range(2):
            with torch.no_grad():
                model(torch.full((50, 1, 8, 8), 1e6))
            train(model, optimizer, recorder, 1)
    assert read_log(tmp_path / "run").tables["activation/0", 1]["shape"] == (7, 4, 6, 6)


def test_a_backward_pass_belongs_to_the_step_that_comes_next(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        loss = loss_of(model, 0)
        optimizer.step()
        loss.backward()
        optimizer.step()
        loss = loss_of(model, 1)
    loss.backward()  # a graph that outlives the recording harms nobody
    assert recorder.step == 2 and not recorder.modules.take().activation_grads
    log = read_log(tmp_path / "run")
    assert ("activation/0", 0) in log.tables and ("activation_grad/0", 0) not in log.tables
    assert ("activation/0", 1) not in log.tables and ("activation_grad/0", 1) in log.tables
    assert log.scalars[0]["max_abs_activation_grad"] is None


def test_infinite_and_missing_gradients(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        handle = model[0].weight.register_hook(lambda gradient: gradient.fill_(float("inf")))
        loss_of(model, 0).backward()
        handle.remove()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        optimizer.step()
        loss_of(small_network(), 0).backward()
        assert recorder.step == 2
    log = read_log(tmp_path / "run")
    assert log.scalars[0]["max_abs_weight_grad"] == float("inf")
    assert log.tables["weight_grad/0.weight", 0]["table"].inf == model[0].weight.numel()
    assert log.scalars[0]["found_inf"] is False  # no scaler, so nothing was skipped
    assert log.scalars[1]["max_abs_weight_grad"] is None
    assert log.scalars[1]["loss"] is None


def test_modules_are_chosen_and_copies_of_the_model_are_free(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    linear = lambda path, module: isinstance(module, nn.Linear)  # noqa: E731
    with Recorder(model, optimizer, tmp_path / "run", modules=linear) as recorder:
        free = copy.deepcopy(model)
        torch.save(model, tmp_path / "model.pt")
        train(model, optimizer, recorder, 1)
        free(batch(0)[0]).sum().backward()  # seen by nobody
        train(model, optimizer, recorder, 1)
    log = read_log(tmp_path / "run")
    assert {name for name in log.names(1) if name.startswith("activation")} == {
        "activation/3", "activation_grad/3"}
    assert log.tables["activation/3", 1]["shape"] == (7, 5)


class Offset(nn.Module):
    """Returns its parameter as it is."""

    def __init__(self):
        super().__init__()
        self.values = nn.Parameter(torch.tensor([0.5, -0.25, 1.0]))

    def forward(self):
        return self.values


class WithOffset(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.offset, self.linear = Offset(), nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x + self.offset())


def test_a_parameter_that_a_module_returns_has_one_gradient_a_pass(tmp_path, read_log):
    """It outlives the step, and with it a hook on it."""
    model = WithOffset()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parts = []
    with Recorder(model, optimizer, tmp_path / "run"):
        for step in range(4):
            optimizer.zero_grad()
            for microbatch in range(1 + step % 2):
                before = model.offset.values.grad
                before = torch.zeros(3) if before is None else before.clone()
                model(torch.randn(5, 3)).square().sum().backward()
                parts.append((step, model.offset.values.grad - before))
            optimizer.step()
        assert not model.offset.values._backward_hooks or len(model.offset.values._backward_hooks) == 1
    log = read_log(tmp_path / "run")
    for step in range(4):
        arrived = torch.stack([part for at, part in parts if at == step])
        record = log.tables["activation_grad/offset", step]
        assert record["shape"] == (tuple(arrived.shape) if step % 2 else (3,))
        if step % 2 == 0:
            assert record["table"] == halfscope.binade_table(arrived)
    assert not model.offset.values._backward_hooks
