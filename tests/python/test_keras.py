# SPDX-License-Identifier: Apache-2.0
"""halfscope.keras: the log holds what fit() of Keras 3 gives the optimizer, on the backend that is
installed: JAX, PyTorch or TensorFlow."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import frameworks
import numpy as np
import pytest

import halfscope
from halfscope import _halfscope

if importlib.util.find_spec("keras") and "KERAS_BACKEND" not in os.environ:
    os.environ["KERAS_BACKEND"] = next(
        name for name in ("tensorflow", "jax", "torch") if importlib.util.find_spec(name))
keras = frameworks.need("keras")

from halfscope.keras import RecorderCallback  # noqa: E402
from program import ROOT  # noqa: E402

BACKEND = keras.backend.backend()
INPUTS = np.random.default_rng(0).normal(size=(48, 8)).astype("float32")
LABELS = (INPUTS.sum(1, keepdims=True) > 0).astype("float32")
STEPS = 6


class Given(keras.callbacks.Callback):
    """Collects the running means of the loss."""

    def on_train_begin(self, logs=None):
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))


def model_of(optimizer, **settings):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu", name="first"),
                              keras.layers.Dense(1, name="last")], name="net")
    # XLA of TensorFlow cannot call back: without it, recorded or not, for the same bits.
    settings = {"jit_compile": False, **settings} if BACKEND == "tensorflow" else settings
    model.compile(optimizer=optimizer, loss=keras.losses.BinaryCrossentropy(from_logits=True), **settings)
    return model


def fit(model, *callbacks, size=16, **settings):
    """Returns the losses of two epochs of three batches, and the weights."""
    given = Given()
    model.fit(INPUTS, LABELS, batch_size=size, epochs=2, shuffle=False, verbose=0,
              callbacks=[*callbacks, given], **settings)
    return given.losses, [np.asarray(weight).tobytes() for weight in model.get_weights()]


def read(callback):
    return _halfscope.read_run_log(callback.log.folder)


def sample_of(folder, step, name):
    content = pathlib.Path(folder, "tensors", f"step-{step:06d}.safetensors").read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    first, end = json.loads(content[8:begin])[name]["data_offsets"]
    return np.frombuffer(content[begin + first:begin + end], "float32")


def sgd(**settings):
    return keras.optimizers.SGD(0.5, **settings)


def test_a_run_is_recorded_and_stays_the_same(tmp_path):
    plain = fit(model_of(sgd()))
    callback = RecorderCallback(tmp_path / "run", every=2, sample_every=3, about={"name": "small"})
    model = model_of(sgd())
    assert fit(model, callback) == plain
    scalars, records, samples = read(callback)
    assert list(scalars) == list(range(STEPS))
    means = np.array(plain[0]).reshape(2, 3) * [1, 2, 3]
    np.testing.assert_allclose([step["loss"] for step in scalars.values()],
                               np.diff(means, prepend=0).ravel(), rtol=1e-5)
    assert {step["learning_rate"] for step in scalars.values()} == {0.5}
    assert sorted({record["step"] for record in records}) == [0, 2, 3, 4]
    assert {record["name"] for record in records if record["step"] == 2} == {
        f"{role}/net.{layer}.{part}" for role in ("weight", "weight_grad")
        for layer in ("first", "last") for part in ("kernel", "bias")}
    assert not any(record["scaled"] for record in records)
    assert list(samples) == [0, 3]
    assert json.loads(pathlib.Path(callback.log.folder, "run.json").read_text())["name"] == "small"
    assert halfscope.recommend(callback.log.folder)["static_scale"]


def test_gradients_are_those_of_the_step(tmp_path):
    callback = RecorderCallback(tmp_path / "run", every=None, sample_every=1)
    fit(model_of(sgd()), callback)
    scalars = read(callback)[0]
    for step in range(STEPS):
        before, gradient, after = (sample_of(callback.log.folder, step, f"{role}/net.first.kernel")
                                   for role in ("weight", "weight_grad", "weight_after"))
        assert np.abs(gradient).max() > 0
        np.testing.assert_array_equal(after, before - np.float32(0.5) * gradient)
        if step:
            np.testing.assert_array_equal(before, last)
        last = after
        parts = [sample_of(callback.log.folder, step, f"weight_grad/net.{name}.{part}")
                 for name in ("first", "last") for part in ("kernel", "bias")]
        assert scalars[step]["max_abs_weight_grad"] == max(float(np.abs(part).max()) for part in parts)


@pytest.mark.parametrize("sample_every", (None, 1))
def test_a_loss_scale_that_overflows(tmp_path, sample_every):
    def optimizer():
        return keras.optimizers.LossScaleOptimizer(sgd(), initial_scale=2.0 ** 126, dynamic_growth_steps=2)

    plain = fit(model_of(optimizer()))
    callback = RecorderCallback(tmp_path / "run", every=1, sample_every=sample_every)
    assert fit(model_of(optimizer()), callback) == plain
    scalars, records, _ = read(callback)
    assert list(scalars) == list(range(STEPS))
    assert [step["loss_scale"] for step in scalars.values()] == [
        2.0 ** 126, 2.0 ** 126, 2.0 ** 127, 2.0 ** 127, np.inf, np.inf]
    assert [step["found_inf"] for step in scalars.values()] == [False] * 4 + [True] * 2
    assert {record["scaled"] for record in records if "weight_grad" in record["name"]} == {True}


def test_a_constant_loss_scale_and_accumulation(tmp_path):
    callback = RecorderCallback(tmp_path / "run", every=1)
    fit(model_of(sgd(loss_scale_factor=256.0, gradient_accumulation_steps=2)), callback)
    scalars, records, _ = read(callback)
    assert [step["loss_scale"] for step in scalars.values()] == [256] * STEPS
    assert all(step["loss"] < 10 for step in scalars.values())
    assert {record["scale"] for record in records if "weight_grad" in record["name"]} == {256}


def test_nan_among_finite_gradients(tmp_path, monkeypatch):
    """The output layer's bias alone gets NaN."""
    monkeypatch.setitem(globals(), "LABELS", np.full_like(LABELS, np.nan))
    callback = RecorderCallback(tmp_path / "run")
    model = model_of(sgd())
    model.build(INPUTS.shape)
    model.layers[1].kernel.assign(np.zeros((16, 1)))
    fit(model, callback)
    assert np.isnan(read(callback)[0][0]["max_abs_weight_grad"])


def test_the_model_is_restored_and_can_be_trained_again(tmp_path, recwarn):
    model = model_of(sgd())
    fit(model)  # compiles the step without the recorder
    methods = vars(model.optimizer).copy()
    first = RecorderCallback(tmp_path / "first")
    fit(model, first)
    assert vars(model.optimizer).keys() == methods.keys()
    assert list(read(first)[0]) == list(range(STEPS, 2 * STEPS))
    fit(model)
    second = RecorderCallback(tmp_path / "second")
    fit(model, second)
    assert len(read(first)[0]) == len(read(second)[0]) == STEPS
    with pytest.raises(halfscope.BadInput, match="holds a run log already"):
        fit(model, RecorderCallback(tmp_path / "second"))
    fit(model)
    assert not [str(warning.message) for warning in recwarn if warning.category is RuntimeWarning]


def test_an_error_while_recording_ends_the_recording_alone(tmp_path):
    plain = fit(model_of(sgd()))
    callback = RecorderCallback(tmp_path / "run")

    class Closes(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            callback.log.close()

    with pytest.warns(RuntimeWarning, match="recording stops, training goes on"):
        assert fit(model_of(sgd()), callback, Closes()) == plain


class Interrupts(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            raise KeyboardInterrupt


@pytest.mark.parametrize("again", (True, False))
def test_a_fit_that_is_interrupted_leaves_nothing_to_the_next(tmp_path, again):
    model = model_of(sgd())
    first, second = (RecorderCallback(tmp_path / name, every=None) for name in ("first", "second"))
    with pytest.raises(KeyboardInterrupt):
        fit(model, first, Interrupts())
    before = len(read(first)[0])
    assert before <= 2
    fit(model, *([second] if again else []))
    with pytest.raises(halfscope.BadInput, match="this log is closed"):
        first.log.step(loss=1)
    assert before <= len(read(first)[0]) <= 2
    assert not again or len(read(second)[0]) == STEPS
    assert not {"apply", "stateless_apply", "scale_loss"} & vars(model.optimizer).keys()
    assert "make_train_function" not in vars(model)


def test_two_callbacks_at_once(tmp_path):
    callbacks = [RecorderCallback(tmp_path / name, every=None) for name in ("first", "second")]
    fit(model_of(sgd()), *callbacks)
    assert [len(read(callback)[0]) for callback in callbacks] == [STEPS, STEPS]


def test_a_failure_to_read_a_step_ends_the_recording_alone(tmp_path, monkeypatch):
    plain = fit(model_of(sgd()))
    calls = []

    def fails(*_, **__):
        calls.append(1)
        raise ValueError("cannot be read")

    monkeypatch.setattr(RecorderCallback, "_trees", fails)
    with pytest.warns(RuntimeWarning, match="training goes on: ValueError: cannot be read") as heard:
        assert fit(model_of(sgd()), RecorderCallback(tmp_path / "run", sample_every=1)) == plain
    assert len(calls) == 1  # nothing is read once the recording ended
    assert len([one for one in heard if "training goes on" in str(one.message)]) == 1


@pytest.mark.skipif(BACKEND == "jax", reason="halfscope.jax computes the largest magnitude on JAX")
def test_the_largest_magnitude_of_float64():
    from halfscope.keras import _largest

    values = [keras.ops.convert_to_tensor([2.0, -1e200], "float64"), None, keras.ops.ones(2, "bfloat16")]
    assert float(_largest(values)) == 1e200


@pytest.mark.skipif(BACKEND == "torch", reason="Keras runs one step at a time on PyTorch")
def test_several_steps_in_one_execution(tmp_path):
    callback = RecorderCallback(tmp_path / "run", every=2)
    fit(model_of(sgd(), steps_per_execution=3), callback)
    assert list(read(callback)[0]) == list(range(STEPS))


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError, match="every is 0, expected a number of steps above 0"):
        RecorderCallback(tmp_path / "run", every=0)


def test_the_example_of_the_documentation(tmp_path):
    block = re.search(r"## Keras\n.*?```python\n(.*?)```", (ROOT / "docs/jax.md").read_text(), re.S)[1]
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(_halfscope.read_run_log(tmp_path / "keras-run")[0]) == 64
