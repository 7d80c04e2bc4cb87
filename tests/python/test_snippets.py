# SPDX-License-Identifier: Apache-2.0
"""The lines `halfscope recommend` offers: run in their framework where it is installed, else held
against the signature that framework_signatures.json records."""
import ast
import json
import os
import pathlib
import subprocess
import warnings

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build")) / "halfscope"
SIGNATURES = json.loads(
    (pathlib.Path(__file__).parent / "framework_signatures.json").read_text())
FRAMEWORKS = {"pytorch", "tensorflow", "keras", "fastai", "deepspeed", "apex", "mxnet", "nnabla"}
LARGEST = [1e-3, 1.0, 40000.0, 1e9]


def advice(folder, values):
    path = folder / "gradients.npy"
    np.save(path, np.asarray(values, dtype=np.float32))
    said = subprocess.run([PROGRAM, "recommend", path, "--json", "-"], check=True,
                          capture_output=True, text=True)
    return json.loads(said.stdout)


@pytest.fixture(params=LARGEST)
def found(request, tmp_path):
    return advice(tmp_path, [request.param, request.param / 1000])


def dotted(node):
    return dotted(node.value) + "." + node.attr if isinstance(node, ast.Attribute) else node.id


def calls(code):
    """(dotted name, number of positional arguments, keywords) of every call."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            yield dotted(node.func), len(node.args), [k.arg for k in node.keywords]


def test_every_framework_has_lines(found):
    assert set(found["snippets"]) == FRAMEWORKS
    assert set(found["dynamic_snippets"]) <= FRAMEWORKS
    assert "pytorch" in found["dynamic_snippets"]


def test_calls_fit_the_recorded_signatures(found):
    seen = set()
    for lines in (found["snippets"], found["dynamic_snippets"]):
        for framework, code in lines.items():
            if framework == "deepspeed":
                settings = json.loads("{" + code + "}")["fp16"]
                assert set(settings) <= set(SIGNATURES["deepspeed fp16"]["parameters"])
                seen.add("deepspeed fp16")
                continue
            for name, positional, keywords in calls(code):
                parameters = SIGNATURES[name]["parameters"]
                assert set(keywords) <= set(parameters), name
                assert positional <= len(parameters), name
                assert not set(keywords) & set(parameters[:positional]), name
                seen.add(name)
    assert seen | {"deepspeed fp16"} == set(SIGNATURES)


def test_deepspeed_configuration_means_the_scale(found):
    scale = found["static_scale"]
    assert json.loads("{" + found["snippets"]["deepspeed"] + "}") == {
        "fp16": {"enabled": True, "loss_scale": scale}}
    if found["dynamic"]["init"] < 1:  # an integer power from 1 up is all it can start at
        assert "deepspeed" not in found["dynamic_snippets"]
    else:
        fp16 = json.loads("{" + found["dynamic_snippets"]["deepspeed"] + "}")["fp16"]
        assert 2 ** fp16["initial_scale_power"] == found["dynamic"]["init"]
        assert fp16["loss_scale_window"] == found["dynamic"]["growth_interval"]
        assert fp16["loss_scale"] == 0


@pytest.fixture
def torch(monkeypatch):
    """PyTorch; without a GPU a GradScaler switches itself off, here it must believe there is one."""
    module = pytest.importorskip("torch")
    monkeypatch.setattr(module.cuda, "is_available", lambda: True)
    if hasattr(module.cuda.amp, "common"):
        monkeypatch.setattr(module.cuda.amp.common, "amp_definitely_not_available", lambda: False,
                            raising=False)
    for part in (module.cuda.amp.grad_scaler, getattr(module.amp, "grad_scaler", None)):
        if part is not None and hasattr(part, "amp_definitely_not_available"):
            monkeypatch.setattr(part, "amp_definitely_not_available", lambda: False)
    if not hasattr(module.amp, "GradScaler"):  # before 2.3: the older name, as the note says
        monkeypatch.setattr(module.amp, "GradScaler",
                            lambda device, **settings: module.cuda.amp.GradScaler(**settings),
                            raising=False)
    return module


def scaler_of(torch, line):
    names = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(line, names)
    return names["scaler"]


@pytest.mark.parametrize("largest", LARGEST)
def test_the_pytorch_line_sets_the_recommended_scale(tmp_path, torch, largest):
    found = advice(tmp_path, [largest, largest / 1000])
    scaler = scaler_of(torch, found["snippets"]["pytorch"])
    assert scaler.is_enabled()
    assert scaler.get_scale() == found["static_scale"]
    assert scaler.get_growth_interval() == 2**31 - 1
    assert largest * found["static_scale"] < 65520 / 2  # the headroom asked for
    assert largest * found["static_scale"] * 2 >= 65520 / 2


def test_the_dynamic_pytorch_line_sets_what_is_advised(found, torch):
    scaler = scaler_of(torch, found["dynamic_snippets"]["pytorch"])
    assert scaler.get_scale() == found["dynamic"]["init"]
    assert scaler.get_growth_interval() == found["dynamic"]["growth_interval"]


def test_the_keras_3_lines_set_the_scale(found):
    keras = pytest.importorskip("keras", minversion="3")
    for code, scale in ((found["snippets"]["keras"], found["static_scale"]),
                        (found["dynamic_snippets"]["keras"], found["dynamic"]["init"])):
        names = {"keras": keras, "optimizer": keras.optimizers.SGD(0.1)}
        exec(code, names)
        optimizer = names["optimizer"]
        optimizer.build([keras.Variable([1.0])])
        assert float(optimizer.dynamic_scale) == scale


def test_the_keras_2_lines_set_the_scale(found):
    class tf:
        keras = pytest.importorskip("tf_keras")

    for code, scale, dynamic in (
            (found["snippets"]["tensorflow"], found["static_scale"], False),
            (found["dynamic_snippets"]["tensorflow"], found["dynamic"]["init"], True)):
        names = {"tf": tf, "optimizer": tf.keras.optimizers.SGD(0.1)}
        exec(code, names)
        assert float(names["optimizer"].loss_scale) == scale
        assert names["optimizer"].dynamic is dynamic


def test_the_static_mxnet_lines_scale_and_unscale(found):
    mx = pytest.importorskip("mxnet")
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    names = {"gluon": mx.gluon, "net": net}
    exec(found["snippets"]["mxnet"], names)
    with mx.autograd.record():
        out = net(mx.nd.ones((2, 4)))
        scaled = names["loss_fn"](out, mx.nd.array([0, 1]))
        plain = mx.gluon.loss.SoftmaxCrossEntropyLoss()(out, mx.nd.array([0, 1]))
    assert np.allclose(scaled.asnumpy(), plain.asnumpy() * found["static_scale"], rtol=1e-6)
    assert names["trainer"]._scale == 1 / found["static_scale"]


def test_the_dynamic_mxnet_lines_set_the_scale(found):
    mx = pytest.importorskip("mxnet")
    from mxnet.contrib import amp
    amp.init()
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    names = {"amp": amp, "trainer": mx.gluon.Trainer(net.collect_params(), "sgd")}
    exec(found["dynamic_snippets"]["mxnet"], names)
    scaler = names["trainer"]._amp_loss_scaler
    assert scaler.loss_scale == scaler._next_loss_scale == found["dynamic"]["init"]
    assert scaler._scale_seq_len == found["dynamic"]["growth_interval"]
