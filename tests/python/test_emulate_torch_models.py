# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.emulate on models and loops of many kinds; roundings judged by PyTorch's half."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from halfscope.torch import emulate
from halfscope.torch.emulate_rounding import round_, rounded


def half(tensor):
    return tensor.detach().half().float()


def is_half(tensor):
    tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
    return torch.equal(tensor, half(tensor))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(11)
    torch.set_num_threads(1)


def sgd(model, **settings):
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, **settings})


def one_step(model, inputs, scale=256.0, optimizer=None, log=None, loss_of=None):
    """Returns the outputs and {name: scaled gradient}."""
    optimizer = optimizer or sgd(model)
    with emulate(model, optimizer, "mixed", scale, log=log, sample_every=1) as run:
        outputs = model(inputs)
        run.backward((loss_of or (lambda y: y.square().mean()))(outputs))
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()
                     if p.grad is not None}
        optimizer.step()
    assert run.steps == 1 and run.skipped == 0
    return outputs, gradients


def test_inputs_are_rounded_on_the_way_in_and_stay_what_they_were():
    model = nn.Linear(8, 4, bias=False)
    x = torch.randn(5, 8)
    before = x.clone()
    want = half(functional.linear(half(x), half(model.weight)))
    outputs, _ = one_step(model, x)
    assert torch.equal(outputs, want) and torch.equal(x, before)


def test_what_several_uses_give_back_is_rounded_each_and_summed():
    class Fork(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.left, self.right = (nn.Linear(6, 6, bias=False) for _ in range(3))

        def forward(self, x):
            x = self.stem(x)
            return self.left(x) + self.right(x)

    model, x = Fork(), torch.randn(3, 6)
    left, right = half(model.left.weight), half(model.right.weight)
    _, gradients = one_step(model, x, loss_of=torch.sum)
    ones = torch.full((3, 6), 256.0)
    arrived = half(half(ones @ left) + half(ones @ right))
    assert torch.equal(gradients["stem.weight"], half(arrived.t() @ half(x)))


def test_inplace_modules_write_into_their_input():
    class Quirk(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.act, self.last = nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 2)

        def forward(self, x):
            x = self.first(x)
            self.act(x)           # the result is not used: x is what changed
            return self.last(x)

    model, x = Quirk(), torch.randn(9, 6)
    hidden = half(functional.linear(half(x), half(model.first.weight), half(model.first.bias))).relu()
    want = half(functional.linear(hidden, half(model.last.weight), half(model.last.bias)))
    outputs, gradients = one_step(model, x)
    assert torch.equal(outputs, want)
    assert all(is_half(g) for g in gradients.values())


def test_tied_weights_and_a_module_called_twice_have_one_gradient():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.into = nn.Linear(4, 4, bias=False)
            self.out = nn.Linear(4, 4, bias=False)
            self.out.weight = self.into.weight

        def forward(self, x):
            return self.out(self.into(self.into(x)))

    model, x = Tied(), torch.randn(3, 4)
    start = model.into.weight.detach().clone()
    w = half(start).requires_grad_()
    _, gradients = one_step(model, x, scale=64.0)
    assert list(gradients) == ["into.weight"] and is_half(gradients["into.weight"])
    a = half(half(x) @ w.t())
    b = half(a @ w.t())
    y = half(b @ w.t())
    dy = half(2 * 64.0 / y.numel() * y)
    db = half(dy @ w)
    da = half(db @ w)
    want = half(dy.t() @ b + db.t() @ a + da.t() @ half(x))
    torch.testing.assert_close(gradients["into.weight"], want, rtol=2 ** -9, atol=0)
    assert torch.equal(model.into.weight, start - 0.1 * (gradients["into.weight"] / 64.0))
    assert model.out.weight is model.into.weight


def test_tuples_nested_containers_and_recurrent_layers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.ModuleDict({"rnn": nn.LSTM(5, 7), "heads": nn.ModuleList([nn.Linear(7, 2)])})

        def forward(self, x):
            outputs, (h, c) = self.body["rnn"](x)
            self.seen = outputs, h, c
            return self.body["heads"][0](outputs[-1]) + c.mean()

    model = Net()
    _, gradients = one_step(model, torch.randn(3, 2, 5))
    assert all(is_half(values) for values in (*model.seen, *gradients.values()))
    assert len(gradients) == 6


def test_attention_is_one_module(tmp_path, read_log):
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    outputs, gradients = one_step(model, torch.randn(2, 3, 8), log=tmp_path / "run")
    assert is_half(outputs)
    for name, gradient in gradients.items():
        assert is_half(gradient) == (not name.startswith("norm")), name
    assert "activation/self_attn.0" in read_log(tmp_path / "run").sample(0)[0]


def test_parametrized_weights_are_rounded_as_they_are_made(tmp_path, read_log):
    class Doubled(nn.Module):
        def forward(self, weight):
            return weight * 1.1

    model = nn.Sequential(nn.Linear(4, 4, bias=False))
    nn.utils.parametrize.register_parametrization(model[0], "weight", Doubled())
    original = model[0].parametrizations.weight.original.detach().clone()
    x = torch.randn(3, 4)
    outputs, gradients = one_step(model, x, log=tmp_path / "run")
    assert torch.equal(outputs, half(half(x) @ half(half(original) * 1.1).t()))
    assert is_half(gradients["0.parametrizations.weight.original"])
    assert "activation/0" in read_log(tmp_path / "run").sample(0)[0]


def test_sparse_gradients_of_embeddings_are_rounded():
    model = nn.Sequential(nn.Embedding(9, 3, sparse=True), nn.Flatten(), nn.Linear(6, 1))
    ids = torch.tensor([[1, 1], [4, 1], [8, 0]])
    optimizer = sgd(model)
    start = model[0].weight.detach().clone()
    with emulate(model, optimizer, "mixed", 128.0) as run:
        for _ in range(2):  # the second one is added
            run.backward(model(ids).square().sum() / 7)
        gradient = model[0].weight.grad
        assert gradient.layout == torch.sparse_coo
        dense = gradient.to_dense().clone()
        assert is_half(dense) and dense.count_nonzero() == 4 * 3
        optimizer.step()
    torch.testing.assert_close(model[0].weight, start - 0.1 * dense / 128.0, rtol=1e-6, atol=1e-7)


def test_accumulated_gradients_are_rounded_at_every_addition(tmp_path, read_log):
    """Each microbatch's gradient is its value and a bit more, which rounding takes off; what is left
    is half of the last place of the sum, a tie to even: nothing is ever added to the first."""
    model = nn.Linear(3, 1, bias=False)
    optimizer = sgd(model)
    values = (1.0, 2.0 ** -11, 2.0 ** -11, 2.0 ** -11)
    with emulate(model, optimizer, "mixed", log=tmp_path / "run") as run:
        for value in values:
            run.backward(model(torch.tensor([[value] * 3, [2.0 ** -23] * 3])).sum())
            assert torch.equal(model.weight.grad, torch.ones(1, 3))
        optimizer.step()
    more = read_log(tmp_path / "run").scalars[0]["more"]
    assert [more[f"max_abs/weight_grad/microbatch-{i}"] for i in range(4)] == list(values)


def test_frozen_and_unfrozen_parameters():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    frozen = model[0].weight.requires_grad_(False)
    start = frozen.detach().clone()
    optimizer = sgd(model)
    x = torch.randn(2, 4)
    with emulate(model, optimizer, "mixed", 8.0) as run:
        assert is_half(frozen) and not torch.equal(frozen, start)
        run.backward(model(x).sum())
        optimizer.step()
        assert torch.equal(run.master_weights()["0.weight"], start)
        frozen.requires_grad_()
        optimizer.zero_grad()
        run.backward(model(x).square().sum() / 3)
        assert is_half(frozen.grad) and frozen.grad.any()
        optimizer.step()
    assert not torch.equal(frozen, start) and not is_half(frozen)


def test_channels_last_and_transposed_memory_is_rounded_in_place():
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    model.extra = nn.Parameter(torch.randn(5, 2).t())
    pointers = [p.data_ptr() for p in model.parameters()]
    outputs, gradients = one_step(model, torch.randn(2, 3, 5, 5))
    assert is_half(outputs) and all(is_half(g) for g in gradients.values())
    assert [p.data_ptr() for p in model.parameters()] == pointers


def test_a_copy_made_inside_is_an_ordinary_model():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with emulate(model, sgd(model), "mixed", 8.0):
        twin = copy.deepcopy(model)
    x = torch.randn(3, 4)
    assert not is_half(twin(x))
    twin(x).sum().backward()


def test_a_loss_inside_the_model_stays_fp32():
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.loss = nn.Linear(4, 3), nn.CrossEntropyLoss()

        def forward(self, x):
            return self.loss(self.fc(x), torch.tensor([0, 2]))

    outputs, gradients = one_step(WithLoss(), torch.randn(2, 4), loss_of=lambda y: y)
    assert not is_half(outputs) and is_half(gradients["fc.weight"])


def test_a_scheduler_and_zero_grad_of_the_model_do_not_mind():
    model = nn.Linear(2, 2)
    optimizer = sgd(model)
    early = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    with emulate(model, optimizer, "mixed", 4.0) as run:
        late = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for _ in range(2):
            model.zero_grad()
            run.backward(model(torch.ones(1, 2)).sum())
            optimizer.step()
            early.step()
            late.step()
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.weight) and run.steps == 2


@pytest.mark.parametrize("make", [
    lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True), lambda p: torch.optim.AdamW(p, lr=0.01),
    lambda p: torch.optim.RMSprop(p), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9,
                                                                weight_decay=0.1, nesterov=True)])
def test_masters_go_the_way_of_the_users_optimizer(make):
    """Unscaled gradients into a plain optimizer on FP32 weights give the same masters."""
    model = nn.Linear(6, 3)
    twin = copy.deepcopy(model)
    optimizer, other = make(model.parameters()), make(twin.parameters())
    with emulate(model, optimizer, "mixed", 512.0) as run:
        for step in range(3):
            optimizer.zero_grad()
            run.backward(model(torch.randn(4, 6)).square().mean())
            run.unscale_()
            for p, q in zip(model.parameters(), twin.parameters()):
                q.grad = p.grad.clone()
            optimizer.step()
            other.step()
            for p, q in zip(run.master_weights().values(), twin.parameters()):
                assert torch.equal(p, q)


def test_the_recorded_update_is_that_of_the_masters(tmp_path, read_log):
    model = nn.Linear(6, 3)
    optimizer = sgd(model, weight_decay=0.3)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    _, gradients = one_step(model, torch.randn(4, 6), 512.0, optimizer, tmp_path / "run")
    tensors, _ = read_log(tmp_path / "run").sample(0)
    for name, master in before.items():
        assert torch.equal(tensors[f"master_weight/{name}"], master)
        assert torch.equal(tensors[f"weight/{name}"].float(), half(master))
        direction = (gradients[name] / 512.0).add(master, alpha=0.3)
        assert torch.equal(tensors[f"update/{name}"], -0.1 * direction)


def test_memory_with_gaps_and_of_any_order_is_rounded_and_nothing_beside_it():
    whole = torch.randn(4, 7, 6)
    before = whole.clone()
    for part in (whole[:, ::2], whole[1:, 1, :].t(), whole[3, 5, 2], whole[:0]):
        want = half(part)
        assert torch.equal(rounded(part, "binary16"), want)
        assert torch.equal(round_(part, "binary16"), want)
    untouched = torch.ones_like(whole, dtype=torch.bool)
    untouched[:, ::2] = untouched[1:, 1] = untouched[3, 5, 2] = False
    assert torch.equal(whole[untouched], before[untouched])
    assert not torch.equal(half(whole[untouched]), whole[untouched])
