# SPDX-License-Identifier: Apache-2.0
"""The lines `halfscope recommend` offers: run in their framework where it is installed, else held
against the signature that framework_signatures.json records."""
import ast
import json
import pathlib
import types

import numpy as np
import pytest

import frameworks
from program import json_of

SIGNATURES = json.loads(
    (pathlib.Path(__file__).parent / "framework_signatures.json").read_text())
FRAMEWORKS = {"pytorch", "lightning", "accelerate", "transformers", "tensorflow", "keras", "fastai",
              "deepspeed", "megatron", "nemo", "fairseq", "apex", "mxnet", "nnabla", "jax", "jmp"}
FLAGS = {"megatron", "fairseq"}  # of command lines
LARGEST = [1e-3, 1.0, 40000.0, 1e9]


def advice(folder, values):
    path = folder / "gradients.npy"
    np.save(path, np.asarray(values, dtype=np.float32))
    return json_of("recommend", path)


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
    assert set(found["snippets"]) == FRAMEWORKS - {"fairseq"}  # whose scale is never static
    assert set(found["dynamic_snippets"]) <= FRAMEWORKS
    assert "pytorch" in found["dynamic_snippets"]


def test_calls_fit_the_recorded_signatures(found):
    seen = set()
    for lines in (found["snippets"], found["dynamic_snippets"]):
        for framework, code in lines.items():
            if framework in FLAGS:
                names = [word for word in code.split() if word.startswith("--")]
                assert set(names) <= set(SIGNATURES[framework]["parameters"])
                seen.add(framework)
                continue
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
    assert seen | {"deepspeed fp16", "fairseq"} == set(SIGNATURES)


def test_deepspeed_configuration_means_the_scale(found):
    scale = found["static_scale"]
    assert json.loads("{" + found["snippets"]["deepspeed"] + "}") == {
        "fp16": {"enabled": True, "loss_scale": scale}}
    if found["dynamic"]["init"] < 1:  # an integer power from 1 up is all it can start at
        assert "deepspeed" not in found["dynamic_snippets"]
    else:
        fp16 = json.loads("{" + found["dynamic_snippets"]["deepspeed"] + "}")["fp16"]
        assert 2 ** fp16["initial_scale_power"] == found["dynamic"]["init"]
        assert fp16["loss_scale_window"] == 1000  # DeepSpeed's own, where nothing is replayed
        assert fp16["loss_scale"] == 0


@pytest.fixture
def torch(monkeypatch):
    return frameworks.torch_with_a_gpu(monkeypatch)


def scaler_of(torch, line):
    return frameworks.run(line, torch=torch)["scaler"]


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
    keras = frameworks.need("keras")
    if keras.__version__ < "3":
        pytest.skip("lines for Keras 3")
    for code, scale in ((found["snippets"]["keras"], found["static_scale"]),
                        (found["dynamic_snippets"]["keras"], found["dynamic"]["init"])):
        optimizer = frameworks.run(code, keras=keras, optimizer=keras.optimizers.SGD(0.1))["optimizer"]
        optimizer.build([keras.Variable([1.0])])
        assert float(optimizer.dynamic_scale) == scale


def test_the_keras_2_lines_set_the_scale(found):
    class tf:
        keras = frameworks.need("tf_keras")

    for code, scale, dynamic in (
            (found["snippets"]["tensorflow"], found["static_scale"], False),
            (found["dynamic_snippets"]["tensorflow"], found["dynamic"]["init"], True)):
        names = frameworks.run(code, tf=tf, optimizer=tf.keras.optimizers.SGD(0.1))
        assert float(names["optimizer"].loss_scale) == scale
        assert names["optimizer"].dynamic is dynamic


def test_the_static_mxnet_lines_scale_and_unscale(found):
    mx = frameworks.need("mxnet")
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    names = frameworks.run(found["snippets"]["mxnet"], gluon=mx.gluon, net=net)
    with mx.autograd.record():
        out = net(mx.nd.ones((2, 4)))
        scaled = names["loss_fn"](out, mx.nd.array([0, 1]))
        plain = mx.gluon.loss.SoftmaxCrossEntropyLoss()(out, mx.nd.array([0, 1]))
    assert np.allclose(scaled.asnumpy(), plain.asnumpy() * found["static_scale"], rtol=1e-6)
    assert names["trainer"]._scale == 1 / found["static_scale"]


def test_the_dynamic_mxnet_lines_set_the_scale(found, monkeypatch):
    mx, amp = frameworks.need("mxnet"), frameworks.mxnet_amp(monkeypatch)
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    names = frameworks.run(found["dynamic_snippets"]["mxnet"], amp=amp, trainer=trainer)
    scaler = names["trainer"]._amp_loss_scaler
    assert scaler.loss_scale == scaler._next_loss_scale == found["dynamic"]["init"]
    assert scaler._scale_seq_len == found["dynamic"]["growth_interval"]


def test_the_nnabla_lines_set_the_scale(found):
    nnabla = frameworks.need("nnabla")
    solvers = frameworks.need("nnabla.solvers")
    module = frameworks.need("nnabla.experimental.mixed_precision_training")
    weight = nnabla.Variable.from_numpy_array(np.array([2.0], np.float32), need_grad=True)
    loss = weight * weight
    solver = solvers.Sgd(1.0)
    solver.set_parameters({"weight": weight})
    loss.forward()
    solver.zero_grad()
    frameworks.run(found["snippets"]["nnabla"], loss=loss, solver=solver)
    assert weight.g[0] == 4.0  # scaled by a power of two, and unscaled
    updater = frameworks.run(found["dynamic_snippets"]["nnabla"], solver=solver, loss=loss,
                             data_feeder=lambda: None,
                             DynamicLossScalingUpdater=module.DynamicLossScalingUpdater)["updater"]
    assert updater.scale == found["dynamic"]["init"]
    assert updater.N == found["dynamic"]["growth_interval"]


def test_deepspeed_takes_the_settings(found):
    frameworks.need("deepspeed")
    config = frameworks.need("deepspeed.runtime.precision_config")
    with frameworks.no_warning():
        fixed = config.get_float16_config(json.loads("{" + found["snippets"]["deepspeed"] + "}"))
    assert fixed.enabled and fixed.loss_scale == found["static_scale"]
    if "deepspeed" in found["dynamic_snippets"]:
        line = found["dynamic_snippets"]["deepspeed"]
        with frameworks.no_warning():
            dynamic = config.get_float16_config(json.loads("{" + line + "}"))
        assert dynamic.loss_scale == 0  # which is how it says dynamic
        assert 2 ** dynamic.initial_scale_power == found["dynamic"]["init"]


@pytest.mark.parametrize("names, scale_in", [("snippets", "static_scale"), ("dynamic_snippets", "dynamic")])
def test_the_jax_lines_set_the_scale(found, names, scale_in):
    """jmp's static scale and Flax' DynamicScale have it under different names."""
    jmp, jnp = frameworks.need("jmp"), frameworks.need("jax.numpy")
    frameworks.need("flax")
    scale = found[scale_in] if scale_in == "static_scale" else found[scale_in]["init"]
    assert float(frameworks.run(found[names]["jax"])["dynamic_scale"].scale) == scale
    assert float(frameworks.run(found[names]["jmp"], jmp=jmp, jnp=jnp)["loss_scale"].loss_scale) == scale


def scales_of(found):
    """(lines of each framework, the scale that they set)."""
    yield found["snippets"], found["static_scale"]
    yield found["dynamic_snippets"], found["dynamic"]["init"]


def test_the_fastai_lines_set_the_scale(found, torch):
    learner = frameworks.need("fastai.learner")
    frameworks.need("fastai.callback.fp16")
    for lines, scale in scales_of(found):
        data = types.SimpleNamespace(device=torch.device("cpu"))
        learn = learner.Learner(data, torch.nn.Linear(2, 2), loss_func=torch.nn.MSELoss())
        learn = frameworks.run(lines["fastai"], learn=learn)["learn"]
        [callback] = [c for c in learn.cbs if type(c).__name__ == "MixedPrecision"]
        callback.learn = types.SimpleNamespace(scaler=None)
        callback.before_fit()
        assert callback.learn.scaler.get_scale() == scale


def test_the_lightning_lines_set_the_scale(found, torch, monkeypatch):
    lightning = frameworks.need("lightning")
    monkeypatch.setattr(lightning, "Trainer", lambda plugins: plugins)  # it would ask for the GPU
    for lines, scale in scales_of(found):
        made = frameworks.run(lines["lightning"], torch=torch, lightning=lightning)
        assert made["trainer"][0].scaler.get_scale() == scale


def test_the_accelerate_lines_set_the_scale(found, torch):
    accelerate = frameworks.need("accelerate")
    for lines, scale in scales_of(found):
        given = {}
        frameworks.run(lines["accelerate"], Accelerator=lambda **said: given.update(said))
        assert given["mixed_precision"] == "fp16"
        settings = given["kwargs_handlers"][0].to_kwargs()
        assert accelerate.utils.get_grad_scaler(**settings).get_scale() == scale


def test_the_transformers_lines_set_the_scale(found, torch):
    frameworks.need("transformers")
    for lines, scale in scales_of(found):
        trainer = types.SimpleNamespace(accelerator=types.SimpleNamespace(scaler=None))
        frameworks.run(lines["transformers"], torch=torch, trainer=trainer)
        assert trainer.accelerator.scaler.get_scale() == scale
