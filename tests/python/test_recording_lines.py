# SPDX-License-Identifier: Apache-2.0
"""The lines that a page and `halfscope recommend` offer to record what a log could not tell: run, each
with the names that its framework gives, and the log they leave is read."""
import importlib.util
import json
import subprocess
import sys
import types

import numpy as np
import pytest

import frameworks
from program import BUILD

GRADIENTS = {"layer.weight": [[0.5, -3e-9], [2e-8, 4.0]], "layer.bias": [0.25, 0.0]}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """{tool: lines}, as reports/answer/gaps.cpp has them."""
    writer = BUILD / "bin" / "write_sample_pages"
    assert writer.exists(), f"{writer} is missing: build the target write_sample_pages first"
    folder = tmp_path_factory.mktemp("pages")
    subprocess.run([writer, folder], check=True)
    return json.loads((folder / "recording.json").read_text())


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def tensors(log):
    """{name: its entry} by `analyze --json`; nothing had to be assumed."""
    said = subprocess.run([BUILD / "halfscope", "analyze", log, "--json", "-"], check=True,
                          capture_output=True, text=True)
    found = json.loads(said.stdout)["tensors"]
    assert {t["role_source"] for t in found} == {"name"}
    return {t["name"]: t for t in found}


def check(found, scale=1.0):
    """Whether the tensors are GRADIENTS times the scale they carry."""
    for values in GRADIENTS.values():
        values = np.abs(np.array(values, np.float32)).ravel()
        want = {"total": values.size, "zero": int((values == 0).sum()),
                "max_abs": float(values.max()),
                "flushed_to_zero": int(((values > 0) & (values <= 2.0**-25)).sum())}
        assert any(all(t[key] == value for key, value in want.items()) for t in found.values()), want
    assert len(found) == len(GRADIENTS)


def test_deepspeed(lines, run, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    scale = 1024.0
    model = torch.nn.Module()
    model.layer = torch.nn.Linear(2, 2)
    model.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    for name, parameter in model.named_parameters():
        if name in GRADIENTS:
            parameter.grad = scale * torch.tensor(GRADIENTS[name])
    utils = types.ModuleType("deepspeed.utils")
    utils.safe_get_full_grad = lambda parameter: parameter.grad  # None of a frozen one
    monkeypatch.setitem(sys.modules, "deepspeed", types.ModuleType("deepspeed"))
    monkeypatch.setitem(sys.modules, "deepspeed.utils", utils)
    engine = types.SimpleNamespace(module=model, global_rank=1,
                                   optimizer=types.SimpleNamespace(loss_scale=scale))
    exec(lines["DeepSpeed"], {"engine": engine, "step": 12})
    assert list(run.iterdir()) == []  # another rank takes part, and writes nothing
    engine.global_rank = 0
    exec(lines["DeepSpeed"], {"engine": engine, "step": 12})
    found = tensors(run)
    check(found)
    assert all(t["steps"] == [12] for t in found.values())


def test_tensorflow(lines, run):
    class Variable:
        name = "kernel"  # Keras 3 gives many variables one name

    class Model:
        trainable_variables = [Variable() for _ in GRADIENTS]

    gradients = [np.array(values, np.float32) for values in GRADIENTS.values()]
    exec(lines["TensorFlow"], {"model": Model, "gradients": gradients, "step": 3})
    found = tensors(run)
    check(found)
    assert set(found) == {"weight_grad/0/kernel", "weight_grad/1/kernel"}
    assert all(t["steps"] == [3] for t in found.values())


def test_tensorflow_itself(lines, run):
    tf = frameworks.need("tensorflow")
    if tf.__version__.startswith("1."):
        pytest.skip("lines for TensorFlow 2")

    class Model:
        trainable_variables = [tf.Variable([1.0, 2.0], name="kernel")]

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(Model.trainable_variables[0] * [3e-9, 5.0])
    gradients = tape.gradient(loss, Model.trainable_variables)
    frameworks.run(lines["TensorFlow"], model=Model, gradients=gradients, step=3)
    (found,) = tensors(run).values()
    assert found["flushed_to_zero"] == 1 and found["max_abs"] == 5.0


def test_paddle(lines, run):
    class Parameter:
        def __init__(self, gradient):
            self.grad = None if gradient is None else self
            self.numpy = lambda: np.array(gradient, np.float32)

    class Model:
        def named_parameters(self):
            yield from ((name, Parameter(values)) for name, values in GRADIENTS.items())
            yield "unused", Parameter(None)

    exec(lines["Paddle"], {"model": Model(), "step": 7})
    found = tensors(run)
    check(found)
    assert set(found) == {f"weight_grad/{name}" for name in GRADIENTS}


def test_paddle_itself(lines, run):
    paddle = frameworks.need("paddle")
    model = paddle.nn.Linear(2, 1)
    (model(paddle.to_tensor([[3e-9, 5.0]]))).sum().backward()
    frameworks.run(lines["Paddle"], model=model, step=7)
    found = tensors(run)
    assert set(found) == {"weight_grad/weight", "weight_grad/bias"}
    weight = found["weight_grad/weight"]
    assert weight["flushed_to_zero"] == 1 and weight["max_abs"] == 5.0


def test_deepspeed_hands_out_gradients():
    """By the name that the lines import it by; a ZeRO optimizer needs a GPU."""
    frameworks.need("deepspeed")
    assert callable(frameworks.need("deepspeed.utils").safe_get_full_grad)


def test_pytorch(lines, tmp_path, monkeypatch):
    torch = frameworks.need("torch")
    if not importlib.util.find_spec("halfscope"):
        pytest.skip("the module halfscope is not built for this Python")
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loop = """
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
"""
    head, body = lines["PyTorch"].rsplit("\n", 1)
    assert body.strip().startswith("...")
    frameworks.run(head + loop, model=model, optimizer=optimizer, torch=torch)
    frameworks.run(lines["PyTorch"].replace('"run"', '"other"'), model=model, optimizer=optimizer)
    found = tensors(tmp_path / "run")
    assert found["weight_grad/weight"]["max_abs"] == 4.0
    assert "updates" in found["weight/weight"]
