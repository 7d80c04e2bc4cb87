# SPDX-License-Identifier: Apache-2.0
"""The lines that `halfscope policies` offers for a policy's settings: run where their framework is
installed, with warnings as errors, and they must set what was asked for. ./run frameworks installs
each; elsewhere most are skipped."""
import ast
import importlib
import importlib.util
import json
import pathlib
import types

import pytest

import frameworks
from program import run


@pytest.fixture
def tuned(tmp_path):
    """(settings, lines) that the policies command finds for a framework, of a quiet series."""
    path = tmp_path / "amax.txt"
    path.write_text("".join(f"{2.0 ** (i % 9 - 4)}\n" for i in range(400)))

    def ask(framework):
        said = run("policies", "--amax", path, "--framework", framework, "--json", "-")
        [found] = [t["tuned"] for t in json.loads(said.stdout) if "tuned" in t]
        return found["settings"], found["paste"]["lines"]

    return ask


def require(scaler, settings):
    """Of torch.amp.GradScaler."""
    assert scaler.is_enabled()
    assert scaler.get_scale() == settings["init_scale"] != 65536
    assert scaler.get_growth_interval() == settings["growth_interval"]


def test_torch(tuned, monkeypatch):
    torch = frameworks.torch_with_a_gpu(monkeypatch)
    settings, lines = tuned("torch")
    require(frameworks.run(lines, torch=torch)["scaler"], settings)


def test_lightning(tuned, monkeypatch):
    lightning = frameworks.need("lightning")
    torch = frameworks.torch_with_a_gpu(monkeypatch)
    settings, lines = tuned("lightning")
    monkeypatch.setattr(lightning, "Trainer", lambda plugins: plugins)  # it would ask for the GPU
    [plugin] = frameworks.run(lines, torch=torch, lightning=lightning)["trainer"]
    assert plugin.precision == "16-mixed"
    require(plugin.scaler, settings)


def test_accelerate(tuned, monkeypatch):
    accelerate = frameworks.need("accelerate")
    frameworks.torch_with_a_gpu(monkeypatch)
    settings, lines = tuned("accelerate")
    handlers = {}
    frameworks.run(lines, Accelerator=lambda **given: handlers.update(given))
    assert handlers["mixed_precision"] == "fp16"
    given = handlers["kwargs_handlers"][0].to_kwargs()
    scaler = accelerate.utils.get_grad_scaler(**given)
    require(scaler, settings)


def test_transformers(tuned, monkeypatch, tmp_path):
    transformers = frameworks.need("transformers")
    settings, lines = tuned("transformers")
    torch = frameworks.need("torch")
    model = torch.nn.Linear(2, 2)
    arguments = transformers.TrainingArguments(tmp_path / "out", use_cpu=True, report_to=[])
    trainer = transformers.Trainer(model, arguments)
    frameworks.torch_with_a_gpu(monkeypatch)
    frameworks.run(lines, torch=torch, trainer=trainer)
    trainer.create_optimizer()
    prepared = trainer.accelerator.prepare(trainer.optimizer)
    require(prepared.scaler, settings)


def test_fastai(tuned, monkeypatch):
    learner = frameworks.need("fastai.learner")
    frameworks.need("fastai.callback.fp16")
    torch = frameworks.torch_with_a_gpu(monkeypatch)
    settings, lines = tuned("fastai")
    data = types.SimpleNamespace(device=torch.device("cpu"))
    learn = learner.Learner(data, torch.nn.Linear(2, 2), loss_func=torch.nn.MSELoss())
    learn = frameworks.run(lines, learn=learn)["learn"]
    [callback] = [c for c in learn.cbs if type(c).__name__ == "MixedPrecision"]
    callback.learn = types.SimpleNamespace(scaler=None)
    callback.before_fit()
    require(callback.learn.scaler, settings)


def test_keras(tuned):
    keras = frameworks.need("keras")
    settings, lines = tuned("keras")
    optimizer = frameworks.run(lines, keras=keras, optimizer=keras.optimizers.SGD(0.1))["optimizer"]
    optimizer.build([keras.Variable([1.0])])
    assert float(optimizer.dynamic_scale) == settings["initial_scale"]
    assert optimizer.dynamic_growth_steps == settings["dynamic_growth_steps"]


def test_keras_2(tuned):
    tf = types.SimpleNamespace(keras=frameworks.need("tf_keras"))
    settings, lines = tuned("tensorflow")
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer = frameworks.run(lines, tf=tf, optimizer=optimizer)["optimizer"]
    assert optimizer.dynamic and float(optimizer.loss_scale) == settings["initial_scale"]
    assert optimizer.dynamic_growth_steps == settings["dynamic_growth_steps"]


@pytest.fixture
def tf1():
    """TensorFlow 1.15 warns of what it does inside itself: its warnings do not count."""
    tf = frameworks.need("tensorflow")
    if not tf.__version__.startswith("1."):
        pytest.skip(f"lines for TensorFlow 1, this is {tf.__version__}")
    return tf


def test_tensorflow_1(tuned, tf1):
    settings, lines = tuned("tf1")
    made = {"tf": tf1}
    exec(lines, made)
    scale = made["loss_scale"]
    assert scale.initial_loss_scale == settings["initial_loss_scale"]
    assert scale.increment_period == settings["increment_period"]


def test_tensorflow_contrib(tuned, tf1):
    settings, lines = tuned("tf-contrib")
    made = {"tf": tf1, "optimizer": tf1.train.GradientDescentOptimizer(0.1)}
    exec(lines, made)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        scale = session.run(made["manager"].get_loss_scale())
    assert scale == settings["init_loss_scale"]
    assert made["manager"]._incr_every_n_steps == settings["incr_every_n_steps"]
    assert made["optimizer"]._loss_scale_manager is made["manager"]


@pytest.mark.parametrize("policy", ["deepspeed", "deepspeed-fused"])
def test_deepspeed(tuned, policy):
    frameworks.need("deepspeed")
    config = frameworks.need("deepspeed.runtime.precision_config")
    settings, lines = tuned(policy)
    given = json.loads("{" + lines + "}")
    with frameworks.no_warning():
        fp16 = config.get_float16_config(given)
    assert set(given["fp16"]) <= set(config.DeepSpeedFP16Config.model_fields)
    assert fp16.enabled and fp16.loss_scale == 0
    assert 2 ** fp16.initial_scale_power == settings["init_scale"]
    assert fp16.loss_scale_window == settings["scale_window"]
    assert fp16.hysteresis == settings["delayed_shift"]
    assert fp16.min_loss_scale == settings["min_scale"]


def flags_of(lines):
    """{flag: value} of a command line."""
    words = lines.split()
    assert words[0] == "--fp16"
    return dict(zip(words[1::2], words[2::2]))


def defined_in(path):
    """Names of the fields of the classes in a Python file: it is not imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.target.id for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}


def file_of(package, *parts):
    (folder,) = importlib.util.find_spec(package).submodule_search_locations
    return pathlib.Path(folder, *parts)


def test_fairseq(tuned):
    if importlib.util.find_spec("fairseq") is None:
        frameworks.need("fairseq")
    fields = defined_in(file_of("fairseq", "dataclass", "configs.py"))
    settings, lines = tuned("fairseq")
    flags = flags_of(lines)
    assert {flag[2:].replace("-", "_") for flag in flags} <= fields
    assert float(flags["--fp16-init-scale"]) == settings["init_scale"]
    assert int(flags["--fp16-scale-window"]) == settings["scale_window"]


def test_megatron(tuned):
    """Its command line has an argument for each field of this class."""
    if importlib.util.find_spec("megatron") is None:
        frameworks.need("megatron")
    fields = defined_in(file_of("megatron", "core", "optimizer", "optimizer_config.py"))
    settings, lines = tuned("megatron")
    flags = flags_of(lines)
    assert {flag[2:].replace("-", "_") for flag in flags} <= fields
    assert float(flags["--initial-loss-scale"]) == settings["initial_scale"]
    assert int(flags["--loss-scale-window"]) == settings["growth_interval"]


def test_colossalai(tuned):
    frameworks.need("torch")
    if importlib.util.find_spec("colossalai") is None:
        frameworks.need("colossalai")
    settings, lines = tuned("colossalai")
    [call] = [node for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Call)]
    source = file_of("colossalai", "amp", "naive_amp", "grad_scaler", "dynamic_grad_scaler.py")
    [init] = [node for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
              if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    given = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    assert set(given) <= {argument.arg for argument in init.args.args}
    assert given == {name: settings[name] for name in given}


def test_jmp(tuned):
    jmp = frameworks.need("jmp")
    jnp = frameworks.need("jax.numpy")
    settings, lines = tuned("jmp")
    scale = frameworks.run(lines, jmp=jmp, jnp=jnp)["loss_scale"]
    assert float(scale.loss_scale) == settings["loss_scale"]
    assert int(scale.period) == settings["period"]


def test_flax(tuned):
    flax = frameworks.need("flax")
    settings, lines = tuned("flax")
    scale = frameworks.run(lines, flax=flax)["dynamic_scale"]
    assert float(scale.scale) == settings["scale"]
    assert int(scale.growth_interval) == settings["growth_interval"]


def test_paddle(tuned, monkeypatch):
    paddle = frameworks.need("paddle")
    gpu = types.SimpleNamespace(_expected_place=types.SimpleNamespace(is_gpu_place=lambda: True))
    monkeypatch.setattr(paddle.amp.grad_scaler, "_dygraph_tracer", lambda: gpu)
    settings, lines = tuned("paddle")
    scaler = frameworks.run(lines, paddle=paddle)["scaler"]
    assert float(scaler.get_init_loss_scaling()) == settings["init_loss_scaling"]
    assert scaler.get_incr_every_n_steps() == settings["incr_every_n_steps"]


def test_mindspore(tuned):
    mindspore = frameworks.need("mindspore")
    settings, lines = tuned("mindspore")
    manager = frameworks.run(lines, mindspore=mindspore)["manager"]
    assert float(manager.get_loss_scale()) == settings["init_loss_scale"]
    assert manager.scale_window == settings["scale_window"]


def test_mindspore_cell(tuned):
    mindspore = frameworks.need("mindspore")
    settings, lines = tuned("mindspore-cell")
    cell = frameworks.run(lines, mindspore=mindspore)["scale_sense"]
    assert float(cell.get_loss_scale()) == settings["loss_scale_value"]
    assert cell.scale_window == settings["scale_window"]


def test_nnabla(tuned):
    nnabla = frameworks.need("nnabla")
    module = frameworks.need("nnabla.experimental.mixed_precision_training")
    solvers = frameworks.need("nnabla.solvers")
    settings, lines = tuned("nnabla")
    loss = nnabla.Variable(())
    updater = frameworks.run(lines, solver=solvers.Sgd(), loss=loss, data_feeder=lambda: None,
                             DynamicLossScalingUpdater=module.DynamicLossScalingUpdater)["updater"]
    assert updater.scale == settings["scale"]
    assert updater.N == settings["N"]


def test_mxnet(tuned, monkeypatch):
    mx, amp = frameworks.need("mxnet"), frameworks.mxnet_amp(monkeypatch)
    settings, lines = tuned("mxnet")
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    frameworks.run(lines, amp=amp, trainer=trainer)
    scaler = trainer._amp_loss_scaler
    assert scaler.loss_scale == scaler._next_loss_scale == settings["init_scale"]
    assert scaler._scale_seq_len == settings["scale_window"]
