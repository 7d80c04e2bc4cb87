# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.emulate: bits against a twin that PyTorch's own half type rounds, by hand."""

import pytest
import torch
from small_runs import batch, hooks_get_none_too, small_network
from torch import nn

from halfscope.torch import emulate

LEARNING_RATE = 0.05


class Twin:
    """small_network() in mixed or pure precision, layer by layer, every rounding in sight."""

    def __init__(self, model, dtype, master):
        self.model = model
        self.dtype = dtype
        self.master = master
        self.masters = {name: p.detach().clone() if master else self.round(p)
                        for name, p in model.named_parameters()}

    def round(self, tensor):
        return tensor.detach().to(self.dtype).float()

    def step(self, x, y, scale=1.0):
        """Returns everything that was seen: {name: tensor}."""
        seen = {f"weight/{name}": self.round(m) for name, m in self.masters.items()}
        values, records = self.round(x), []
        for name, module in self.model.named_children():
            inputs = values.requires_grad_(name != "0")
            weights = {key: seen[f"weight/{name}.{key}"].requires_grad_()
                       for key, _ in module.named_parameters()}
            output = torch.nn.utils.stateless.functional_call(module, weights, (inputs,))
            values = self.round(output)
            seen[f"activation/{name}"] = values.clone()
            records.append((name, inputs, weights, output))
        logits = values.requires_grad_()
        loss = nn.functional.cross_entropy(logits, y)
        gradient, = torch.autograd.grad(loss * scale, logits)
        for name, inputs, weights, output in reversed(records):
            gradient = self.round(gradient)
            seen[f"activation_grad/{name}"] = gradient
            wanted = [*([inputs] if inputs.requires_grad else []), *weights.values()]
            found = list(torch.autograd.grad(output, wanted, gradient))
            gradient = found.pop(0) if inputs.requires_grad else None
            for key, value in zip(weights, found):
                seen[f"weight_grad/{name}.{key}"] = self.round(value)
        for name, values in self.masters.items():
            values.add_(seen[f"weight_grad/{name}"] * (1 / scale), alpha=-LEARNING_RATE)
            if not self.master:
                values.copy_(self.round(values))
        seen["loss"] = loss.detach()
        return seen


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)


def train(model, optimizer, run, steps, loss_of=nn.functional.cross_entropy):
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        run.backward(loss_of(model(x), y))
        optimizer.step()


def test_an_undefined_gradient_stays_one(tmp_path, monkeypatch, read_log):
    logs = []
    for name in ("as it is", "with None"):
        model = small_network()
        optimizer = sgd(model)
        with emulate(model, optimizer, "mixed", 1024.0, log=tmp_path / name) as run:
            train(model, optimizer, run, 2)
        logs.append(read_log(tmp_path / name))
        hooks_get_none_too(monkeypatch)
    assert logs[0].scalars == logs[1].scalars
    assert logs[0].tables == logs[1].tables


@pytest.mark.parametrize("precision, dtype, master", [
    ("mixed", torch.float16, True), ("fp16", torch.float16, False),
    ("mixed-bf16", torch.bfloat16, True), ("bf16", torch.bfloat16, False)])
@pytest.mark.parametrize("scale", [None, 1024.0, 2.0 ** -12])
def test_every_bit_is_the_twins(tmp_path, read_log, precision, dtype, master, scale):
    torch.set_num_threads(1)
    model = small_network()
    twin = Twin(small_network(), dtype, master)
    optimizer = sgd(model)
    seen = []
    with emulate(model, optimizer, precision, scale, log=tmp_path / "run", sample_every=1) as run:
        train(model, optimizer, run, 4)
        seen = [twin.step(*batch(step), scale or 1.0) for step in range(4)]
        for name, values in run.master_weights().items():
            assert torch.equal(values, twin.masters[name])
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, twin.round(twin.masters[name]))
    log = read_log(tmp_path / "run")
    for step, expected in enumerate(seen):
        tensors, metadata = log.sample(step)
        assert log.scalars[step]["loss"] == expected.pop("loss").item()
        assert log.scalars[step]["loss_scale"] == (scale or 1.0)
        for name, values in expected.items():
            assert tensors[name].dtype == dtype, name
            assert torch.equal(tensors[name].float(), values), name
            record = log.tables[name, step]
            gradient = name.partition("/")[0].endswith("_grad")
            assert record["scaled"] == (gradient and scale is not None)
            assert record["computed_dtype"] == ("F16" if dtype == torch.float16 else "BF16")
        assert ("master_weight/0.weight" in tensors) == master
    if scale == 2.0 ** -12 and dtype == torch.float16:
        assert min(v[v != 0].abs().min() for n, v in expected.items() if "_grad" in n) < 2.0 ** -14


def test_fp32_is_the_loop_as_it_was():
    torch.set_num_threads(1)
    model, plain = small_network(), small_network()
    optimizer, other = sgd(model), sgd(plain)
    with emulate(model, optimizer, "fp32", 256) as run:
        train(model, optimizer, run, 3)
    for step in range(3):
        x, y = batch(step)
        other.zero_grad()
        nn.functional.cross_entropy(plain(x), y).backward()
        other.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters()))


def expanded(model):
    model[0].bias = nn.Parameter(torch.ones(1).expand_as(model[0].bias))
    return model


def state_of(model, optimizer):
    """What a leak would show in."""
    modules = list(model.modules())
    return ([(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in modules],
            [len(p._backward_hooks or ()) for p in model.parameters()],
            dict(vars(optimizer)).keys(), [p.data_ptr() for p in model.parameters()])


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_puts_everything_back(fails):
    model = small_network()
    optimizer = sgd(model)
    before = state_of(model, optimizer)
    try:
        with emulate(model, optimizer, "mixed", 64) as run:
            train(model, optimizer, run, 2)
            masters = run.master_weights()
            if fails:
                raise KeyError("the loop's own")
    except KeyError:
        assert fails
    assert state_of(model, optimizer) == before
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, masters[name])
        assert not torch.equal(parameter, parameter.half().float())
    x, y = batch(0)
    outputs = model(x)
    assert not torch.equal(outputs, outputs.half().float())
    optimizer.zero_grad()
    nn.functional.cross_entropy(outputs, y).backward()
    assert not torch.equal(model[0].weight.grad, model[0].weight.grad.half().float())
    with emulate(model, optimizer):  # and once more
        pass
    with pytest.raises(RuntimeError, match="outside of the context"):
        run.backward(outputs.sum())


def test_in_fp16_the_weights_stay_rounded_and_so_does_the_state():
    model = small_network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-4)
    with emulate(model, optimizer, "fp16", 128) as run:
        train(model, optimizer, run, 2)
    for parameter in model.parameters():
        state = optimizer.state[parameter]
        for values in (parameter, state["exp_avg"], state["exp_avg_sq"]):
            assert torch.equal(values, values.half().float())


def test_evaluation_sees_the_rounded_weights_and_is_not_recorded(tmp_path, read_log):
    model = small_network()
    optimizer = sgd(model)
    x, _ = batch(9)
    with emulate(model, optimizer, log=tmp_path / "run") as run:
        train(model, optimizer, run, 1)
        with torch.no_grad():
            seen = model(x)
        train(model, optimizer, run, 1)
    twin = Twin(small_network(), torch.float16, True)
    twin.step(*batch(0))
    assert torch.equal(seen, twin.step(x, batch(9)[1])["activation/3"])
    log = read_log(tmp_path / "run")
    assert log.tables["activation/3", 1]["shape"] == (7, 5)  # of one call


def test_what_the_loop_writes_into_weights_is_kept():
    model = small_network()
    optimizer = sgd(model)
    other = {name: values + 0.3 for name, values in small_network().state_dict().items()}
    with emulate(model, optimizer, "mixed") as run:
        train(model, optimizer, run, 1)
        model.load_state_dict(other)
        model(batch(0)[0])
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, other[name].half().float())
            assert torch.equal(run.master_weights()[name], other[name])
    assert all(torch.equal(p, other[n]) for n, p in model.named_parameters())


def test_norms_keep_fp32_parameters_and_round_what_they_return(tmp_path, read_log):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(),
                          nn.LayerNorm(144), nn.Linear(144, 5), nn.Softmax(1))
    for module in (model[1], model[4]):
        nn.init.uniform_(module.weight, 0.5, 1.5)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = sgd(model)
    with emulate(model, optimizer, "mixed", 1024, log=tmp_path / "run", sample_every=1) as run:
        for name in ("1.weight", "4.weight"):
            assert torch.equal(dict(model.named_parameters())[name], before[name])
        optimizer.zero_grad()
        run.backward(model(batch(0)[0]).square().sum())
        gradient = model[1].weight.grad.clone()
        assert not torch.equal(gradient, gradient.half().float())
        optimizer.step()
        statistics = model[1].running_mean
        assert not torch.equal(statistics, statistics.half().float())
    tensors, _ = read_log(tmp_path / "run").sample(0)
    assert tensors["weight/1.weight"].dtype == torch.float32
    assert tensors["weight_grad/4.bias"].dtype == torch.float32
    assert "master_weight/1.weight" not in tensors and "master_weight/0.weight" in tensors
    assert {tensors[f"activation/{i}"].dtype for i in range(7)} == {torch.float16}


def test_keep_fp32_leaves_a_modules_parameters_alone():
    model = small_network()
    before = model[3].weight.detach().clone()
    with emulate(model, sgd(model), keep_fp32=lambda path, module: path == "3"):
        assert torch.equal(model[3].weight, before)
        assert not torch.equal(model[0].weight, small_network()[0].weight)


@pytest.mark.parametrize("make, words", [
    (lambda m, o: emulate(m, [o, o]), "several optimizers are not emulated"),
    (lambda m, o: emulate(m, o, "fp8"), "precision: found 'fp8', expected one of fp32, fp16, mixed"),
    (lambda m, o: emulate(m, o, loss_scale="nonesuch"), "torch"),
    (lambda m, o: emulate(m, o, loss_scale="torch,nonesuch=1"), "init_scale"),
    (lambda m, o: emulate(m, o, loss_scale=0), "positive finite"),
    (lambda m, o: emulate(m, o, loss_scale=True), "expected None, a number or a policy"),
    (lambda m, o: emulate(m, o, loss_scale="te-delayed"), "is not a loss scale"),
    (lambda m, o: emulate(m, o, loss_scale="als"), "is not a loss scale"),
    (lambda m, o: emulate(m, o, loss_scale="-4"), "found -4, expected a positive finite number"),
    (lambda m, o: emulate(m, o, loss_scale=10 ** 400), "found 10000.*expected a positive finite number"),
    (lambda m, o: emulate(m, o, loss_scale=1e39), "normal in binary32"),
    (lambda m, o: emulate(m, o, loss_scale="nan"), "found nan, expected a positive finite number"),
    (lambda m, o: emulate(m.half(), o), "expected float32"),
    (lambda m, o: emulate(torch.jit.script(m), o), "found a torch.jit.ScriptModule, expected"),
    (lambda m, o: emulate(nn.Sequential(m, torch.jit.script(nn.ReLU())), o), "its module 1 is a"),
    (lambda m, o: emulate(m, sgd(small_network())), "none of its parameters is the model's"),
    (lambda m, o: emulate(m, torch.optim.LBFGS(m.parameters())), "LBFGS needs a closure"),
    (lambda m, o: emulate(nn.Sequential(m, nn.LazyLinear(2)), o), "1.weight has no values yet"),
    (lambda m, o: emulate(expanded(m), o), "share memory"),
    (lambda m, o: emulate(o, o), "expected a torch.nn.Module")])
def test_mistakes_are_named(make, words):
    model = small_network()
    with pytest.raises((TypeError, ValueError), match=words):
        make(model, sgd(model))


@pytest.mark.parametrize("scale", [1024, 1024.0, "1024", "2^10", "1.024e3", "static,scale=2^10"])
def test_a_number_is_taken_as_the_command_line_takes_it(scale):
    model = small_network()
    with emulate(model, sgd(model), loss_scale=scale) as run:
        assert run.loss_scale == 1024


def test_misuse_in_the_loop_is_named():
    model = small_network()
    optimizer = sgd(model)
    x, y = batch(0)
    with emulate(model, optimizer, "mixed", 8) as run:
        with pytest.raises(RuntimeError, match="under emulate"):
            emulate(model, sgd(model)).__enter__()
        nn.functional.cross_entropy(model(x), y).backward()
        with pytest.raises(RuntimeError, match=r"run.backward\(loss\) was not called"):
            optimizer.step()
        with pytest.raises(ValueError, match="closure"):
            optimizer.step(lambda: None)
        run.unscale_()
        with pytest.raises(RuntimeError, match="was called already"):
            run.unscale_()
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match="autocast"):
            model(x)
    model(x)


def test_an_old_log_is_refused_and_nothing_is_left(tmp_path):
    model = small_network()
    optimizer = sgd(model)
    before = state_of(model, optimizer)
    weights = [p.detach().clone() for p in model.parameters()]
    with emulate(model, optimizer, log=tmp_path / "run"):
        pass
    with pytest.raises(ValueError, match="run"), emulate(model, optimizer, log=tmp_path / "run"):
        pass
    assert state_of(model, optimizer) == before
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters()))
