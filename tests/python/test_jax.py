# SPDX-License-Identifier: Apache-2.0
"""halfscope.jax: the log holds the gradients that a JAX training loop returns, bit for bit."""

import json
import pathlib
import re
import subprocess
import sys
import warnings

import frameworks
import numpy as np
import pytest

jax = frameworks.need("jax")
optax = frameworks.need("optax")

from jax import numpy as jnp  # noqa: E402

import halfscope  # noqa: E402
import halfscope.jax  # noqa: E402
from halfscope import _halfscope  # noqa: E402
from halfscope._arrivals import Arrivals  # noqa: E402
from program import ROOT  # noqa: E402

STEPS = 12
PARAMETERS = {"layers": [{"w": np.linspace(-1, 1, 32, dtype="float32").reshape(8, 4)},
                         {"w": np.linspace(1, 2, 4, dtype="float16")}]}
INPUTS = np.random.default_rng(0).normal(size=(STEPS, 16, 8)).astype("float32")


def loss_of(parameters, x):
    first, second = (layer["w"] for layer in parameters["layers"])
    return jnp.mean((jnp.tanh(x @ first) @ second.astype("float32")) ** 2)


def train(optimizer, scan=False, steps=STEPS):
    """Returns (losses, gradients, parameters at the end), each with all steps."""
    def step(carry, x):
        parameters, state = carry
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x)
        updates, state = optimizer.update(gradients, state, parameters, value=loss)
        return (optax.apply_updates(parameters, updates), state), (loss, gradients)

    carry = (PARAMETERS, optimizer.init(PARAMETERS))
    if scan:
        (end, _), results = jax.jit(lambda carry: jax.lax.scan(step, carry, INPUTS[:steps]))(carry)
        return *results, end
    step, results = jax.jit(step), []
    for x in INPUTS[:steps]:
        carry, result = step(carry, x)
        results.append(result)
    return *jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *results), carry[0]


def same(a, b):
    return jax.tree_util.tree_all(jax.tree_util.tree_map(
        lambda x, y: np.asarray(x).tobytes() == np.asarray(y).tobytes(), a, b))


def samples(folder, step):
    """Returns {name: bytes} of a saved step."""
    content = pathlib.Path(folder, "tensors", f"step-{step:06d}.safetensors").read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    return {name: content[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


def plain_adam():
    return optax.with_extra_args_support(optax.adam(0.01))


@pytest.mark.parametrize("scan", (False, True))
def test_it_records_the_gradients_that_are_returned_and_changes_nothing(tmp_path, scan):
    plain = train(plain_adam(), scan)
    with halfscope.RunLog(tmp_path / "run") as log:
        recorded = train(optax.chain(halfscope.jax.record(log, 3, sample_every=4), optax.adam(0.01)), scan)
    assert same(plain, recorded)
    losses, gradients, _ = recorded
    scalars, records, saved = _halfscope.read_run_log(log.folder)
    assert list(scalars) == list(range(STEPS))
    assert [step["loss"] for step in scalars.values()] == [float(loss) for loss in losses]
    leaves = [np.asarray(layer["w"]) for layer in gradients["layers"]]
    assert [step["max_abs_weight_grad"] for step in scalars.values()] == [
        max(float(np.abs(leaf[i]).max()) for leaf in leaves) for i in range(STEPS)]
    assert sorted({record["step"] for record in records}) == [0, 3, 4, 6, 8, 9]
    assert {record["name"] for record in records} == {
        f"{role}/layers.{i}.w" for role in ("weight", "weight_grad") for i in (0, 1)}
    assert list(saved) == [0, 4, 8]
    for step in saved:
        assert [samples(log.folder, step)[f"weight_grad/layers.{i}.w"] for i in (0, 1)] == [
            leaf[step].tobytes() for leaf in leaves]


@pytest.mark.parametrize("mode", ("shard_map", "pmap", "sharded_arrays"))
def test_two_devices(tmp_path, mode):
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("jax_two_devices.py"), mode,
                           tmp_path / "run"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Warning: halfscope" not in done.stderr
    result = json.loads(done.stdout)
    assert result["devices"] == 2
    assert result["recorded"] == result["plain"]
    scalars, records, saved = _halfscope.read_run_log(tmp_path / "run")
    assert [np.float32(step["loss"]).tobytes().hex() for step in scalars.values()] == [
        loss for loss, _ in result["recorded"]]
    assert len(saved) == 5
    for step, (_, gradients) in enumerate(result["recorded"]):
        kept = samples(tmp_path / "run", step)
        assert {name: kept[f"weight_grad/{name}"].hex() for name in gradients} == gradients


def test_updates_of_the_optimizer(tmp_path):
    with halfscope.RunLog(tmp_path / "run") as log:
        _, gradients, _ = train(halfscope.jax.record(log, sample_every=1, optimizer=optax.sgd(0.5)), steps=2)
    kept = samples(log.folder, 1)
    half = np.asarray(gradients["layers"][0]["w"])[1] * np.float32(-0.5)
    assert kept["update/layers.0.w"] == half.tobytes()
    weights = [tensor for tensor in halfscope.analyze(log.folder)["tensors"] if tensor["role"] == "weight"]
    assert [weight["update_source"] for weight in weights] == ["update", "update"]


def test_the_largest_magnitude_is_of_the_rounded_value(tmp_path):
    """XLA leaves out the rounding to 16 bits inside of a fused computation."""
    with halfscope.RunLog(tmp_path / "run") as log:
        optimizer = halfscope.jax.record(log, every=None)

        @jax.jit
        def step(state, x):
            return optimizer.update((x * x).astype("float16"), state)

        _, state = step(optimizer.init(jnp.ones(2)), jnp.float32([1, 300]))
        step(state, jnp.float32([1, jnp.nan]))
    scalars = _halfscope.read_run_log(log.folder)[0]
    assert [str(step["max_abs_weight_grad"]) for step in scalars.values()] == ["inf", "nan"]


def test_gradients_that_carry_the_loss_scale(tmp_path):
    """As those of jmp before unscale(): the transformation stands first in the chain."""
    with halfscope.RunLog(tmp_path / "run", scaled=True) as log:
        optimizer = halfscope.jax.record(log, 2)
        state, gradient = optimizer.init(jnp.zeros(2)), jnp.array([3, -8], "float16")
        update = jax.jit(lambda state, gradient, scale: optimizer.update(gradient, state, loss_scale=scale))
        _, state = update(state, gradient, jnp.float32(4))
        _, skipped = update(state, gradient * jnp.inf, jnp.float32(4))
        del skipped  # the loop keeps the older state
        _, state = update(state, gradient, jnp.float32(2))
    scalars, records, _ = _halfscope.read_run_log(log.folder)
    found = [(step["loss_scale"], step["max_abs_weight_grad"], step["found_inf"]) for step in scalars.values()]
    assert found == [(4, 2, False), (4, np.inf, True), (2, 4, False)]
    assert [(record["name"], record["scaled"], record["scale"]) for record in records] == [
        ("weight_grad/0", True, 4)]
    with pytest.raises(TypeError, match="loss_scale=") as refused:
        optimizer.update(gradient, state)
    assert "\n" not in str(refused.value)


def test_flax(tmp_path):
    frameworks.need("flax")
    from flax.training.dynamic_scale import DynamicScale
    from flax.training.train_state import TrainState

    with halfscope.RunLog(tmp_path / "run") as log:
        optimizer = optax.chain(halfscope.jax.record(log, 2, sample_every=2), optax.sgd(0.01))
        state = TrainState.create(apply_fn=None, params={"w": jnp.ones(4, "float16")}, tx=optimizer)

        @jax.jit
        def step(state, scaler, x):
            value = scaler.value_and_grad(lambda params: jnp.sum(params["w"] * x).astype("float32"))
            scaler, finite, loss, gradients = value(state.params)
            after = halfscope.jax.apply_gradients(state, gradients, value=loss, loss_scale=scaler.scale)
            return jax.tree_util.tree_map(
                lambda new, old: jnp.where(finite, new, old), after, state), scaler, gradients

        scaler, returned = DynamicScale(scale=2.0 ** 14), []
        for x in (1, 2, 8, 1):
            state, scaler, gradients = step(state, scaler, jnp.float16(x))
            returned.append(np.asarray(gradients["w"]))
    scalars, records, saved = _halfscope.read_run_log(log.folder)
    assert json.loads(pathlib.Path(log.folder, "run.json").read_text())["gradients"] == "unscaled"
    assert [bool(step["found_inf"]) for step in scalars.values()] == [
        not np.isfinite(gradient).all() for gradient in returned]
    assert not any(record["scaled"] for record in records)
    for step in saved:
        assert samples(log.folder, step)["weight_grad/w"] == returned[step].tobytes()


def arrivals(tmp_path, every=1, **more):
    log = halfscope.RunLog(tmp_path / "run")
    return log, Arrivals(log, "recorder", every, None, "do something else", lambda: None, **more)


def losses_of(log):
    return {step: numbers["loss"] for step, numbers in _halfscope.read_run_log(log.folder)[0].items()}


def test_steps_that_arrive_in_another_order_are_written_in_theirs(tmp_path):
    log, steps = arrivals(tmp_path)
    for count in (0, 3, 2, 1, 6):
        gradient = np.full(2, count, "float32")
        steps.receive(count, count, {"loss": count}, {"weight_grad": {"w": gradient}})
    assert list(losses_of(log)) == [0, 1, 2, 3]
    log.close()  # 4 and 5 never arrive
    scalars, records, _ = _halfscope.read_run_log(log.folder)
    assert losses_of(log) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 6}
    assert [record["mean"] for record in records] == [0, 1, 2, 3, 6]


def test_losses_that_arrive_on_their_own(tmp_path):
    log, steps = arrivals(tmp_path, await_losses=True)
    steps.receive(0, 1, {}, {})
    assert losses_of(log) == {}
    steps.add_loss(1, 11)
    steps.add_loss(0, 10)
    steps.receive(1, np.inf, {"loss_scale": 1}, {})
    steps.receive(1, 1, {"loss_scale": 1}, {})  # after the skipped attempt
    steps.add_loss(1, 12)
    log.close()
    assert losses_of(log) == {0: 10, 1: 11, 2: 12}


def test_a_skipped_attempt_that_arrives_late_is_left_out_with_a_note(tmp_path):
    log, steps = arrivals(tmp_path, await_losses=True)
    for loss in (0, 10, 11, 12):
        steps.add_loss(min(loss, 1), loss)
    steps.receive(0, 1, {}, {})
    steps.receive(1, 1, {}, {})
    with pytest.warns(RuntimeWarning, match="a skipped attempt arrived late") as heard:
        steps.guarded(steps.receive, 1, np.inf, {}, {})
    assert len(heard) == 1
    steps.add_loss(2, 20)
    steps.guarded(steps.receive, 2, 1, {}, {})
    assert losses_of(log) == {0: 0, 1: 10, 2: 20}
    assert steps._losses.keys() == {1}  # nothing is kept of a step that was written


def test_close_writes_the_steps_that_wait_although_the_program_failed(tmp_path):
    def settle():
        raise RuntimeError("the program's own")

    log = halfscope.RunLog(tmp_path / "run")
    steps = Arrivals(log, "recorder", 1, None, "", settle)
    steps.receive(3, 1, {"loss": 5}, {})
    log.close()
    assert losses_of(log) == {0: 5}
    with pytest.raises(halfscope.BadInput, match="this log is closed"):
        log.step(loss=1)


@pytest.mark.parametrize("first", (0, 100))
def test_a_log_that_continues_at_a_later_step(tmp_path, first):
    """With a new state of the optimizer, or the one of the checkpoint."""
    log = halfscope.RunLog(tmp_path / "run", first_step=100)
    steps = Arrivals(log, "recorder", 1, None, "", lambda: None)
    for count in (first, first + 1):
        steps.receive(count, 1, {}, {})
    assert list(losses_of(log)) == [100, 101]  # before close()


def test_a_step_that_arrives_from_each_device_ends_the_recording_with_advice(tmp_path):
    with pytest.warns(RuntimeWarning, match="axis_name") as heard:
        with halfscope.RunLog(tmp_path / "run") as log:
            optimizer = halfscope.jax.record(log)
            jax.vmap(lambda gradient: optimizer.update(gradient, optimizer.init(gradient)))(jnp.ones((3, 4)))
    assert len(heard) == 1
    with halfscope.RunLog(tmp_path / "other") as log:
        optimizer = halfscope.jax.record(log, axis_name="member")
        jax.vmap(lambda gradient: optimizer.update(gradient, optimizer.init(gradient)),
                 axis_name="member")(jnp.ones((3, 4)))
    assert list(losses_of(log)) == [0]


def test_a_vectorised_loop_that_carries_its_state(tmp_path):
    with halfscope.RunLog(tmp_path / "run") as log:
        optimizer = halfscope.jax.record(log, every=2, axis_name="member")
        step = jax.jit(jax.vmap(lambda gradient, state: optimizer.update(gradient, state, value=gradient[0])[1],
                                axis_name="member"))
        gradients = jnp.arange(1.0, 13).reshape(3, 4)
        state = jax.vmap(optimizer.init)(gradients)
        for factor in range(1, 4):
            state = step(factor * gradients, state)
    _, records, _ = _halfscope.read_run_log(log.folder)
    assert losses_of(log) == {0: 1, 1: 2, 2: 3}
    assert [(record["step"], record["mean"]) for record in records] == [(0, 2.5), (2, 7.5)]


def test_values_that_cannot_be_read_end_the_recording_alone(tmp_path, monkeypatch):
    def fails(*_):
        raise MemoryError("no room for a copy")

    with pytest.warns(RuntimeWarning, match="training goes on: MemoryError: no room") as heard:
        with halfscope.RunLog(tmp_path / "run") as log:
            optimizer = halfscope.jax.record(log)
            update = jax.jit(optimizer.update)
            state = optimizer.init(jnp.ones(2))
            monkeypatch.setattr(jax.tree_util, "tree_map", fails)
            for _ in range(2):
                gradient, state = update(jnp.ones(2), state)
            jax.effects_barrier()
            monkeypatch.undo()
    assert len(heard) == 1 and gradient.tolist() == [1, 1]


def test_an_error_while_recording_ends_the_recording_alone(tmp_path):
    plain = train(plain_adam())
    log = halfscope.RunLog(tmp_path / "run")
    optimizer = optax.chain(halfscope.jax.record(log), optax.adam(0.01))
    log.close()
    with pytest.warns(RuntimeWarning, match="recording stops, training goes on") as heard:
        recorded = train(optimizer)
        jax.effects_barrier()
    assert same(plain, recorded)
    assert len(heard) == 1 and "\n" not in str(heard[0].message)


@pytest.mark.parametrize("tree, error, words", (
    ({}, halfscope.BadInput, "no arrays"),
    ({"w": np.ones(2, "int32")}, halfscope.BadInput, "no arrays"),
    ({"w": np.ones(2, "complex64")}, TypeError, "w': dtype complex64")))
def test_trees_that_no_log_can_hold_are_refused_before_training(tmp_path, tree, error, words):
    with halfscope.RunLog(tmp_path / "run") as log:
        with pytest.raises(error, match=words) as refused:
            halfscope.jax.record(log).init(tree)
        with pytest.raises(error, match=words):
            halfscope.jax.record(log).update(tree, halfscope.jax.RecordState(jnp.int32(0), optax.EmptyState()))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("settings", ({"every": 0}, {"every": "often"}, {"sample_every": -1}, {"every": True}))
def test_wrong_arguments(tmp_path, settings):
    with pytest.raises(TypeError, match="expected a number of steps above 0, or None"):
        halfscope.jax.record(halfscope.RunLog(tmp_path / "run"), **settings)


@pytest.mark.parametrize("module, import_line", (
    ("jax", "import halfscope.jax as m; m.record(halfscope.RunLog(sys.argv[1]))"),
    ("keras", "import halfscope.keras")))
def test_without_the_package_one_line_names_it(tmp_path, module, import_line):
    done = subprocess.run([sys.executable, "-c", f"import sys, halfscope; sys.modules[{module!r}] = None; "
                           f"{import_line}", tmp_path / "run"], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: halfscope.{module} needs 'halfscope[{module}]': pip install 'halfscope[{module}]'")


def test_the_example_of_the_documentation(tmp_path):
    block = re.search(r"## JAX\n.*?```python\n(.*?)```", (ROOT / "docs/jax.md").read_text(), re.S)[1]
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "loss scale" in done.stdout
    assert len(_halfscope.read_run_log(tmp_path / "run")[0]) == 100
