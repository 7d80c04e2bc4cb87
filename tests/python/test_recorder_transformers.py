# SPDX-License-Identifier: Apache-2.0
"""halfscope.transformers: the log is that of a Recorder in the loop that the Trainer runs; and the
recorder on the wrapper that Accelerate puts around an optimizer."""

import json

import pytest

import frameworks

transformers = frameworks.need("transformers")

import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from accelerate.optimizer import AcceleratedOptimizer  # noqa: E402
from accelerate.state import AcceleratorState  # noqa: E402
from recorder_callbacks import (documented, require_alerts_and_a_summary,  # noqa: E402
                                require_refusal_of_a_folder_with_a_log)
from small_runs import batch, loss_of, require_same_log, small_network  # noqa: E402
from torch import nn  # noqa: E402

from halfscope.torch import Recorder  # noqa: E402
from halfscope.torch.guard import Hook  # noqa: E402
from halfscope.transformers import RecorderCallback  # noqa: E402


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = small_network()

    def forward(self, x, labels):
        logits = self.network(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Normalized(Network):
    """As Transformers' own models: the loss is a sum over all microbatches' labels."""

    def forward(self, x, labels, num_items_in_batch=None, **kwargs):
        logits = self.network(x)
        if num_items_in_batch is None:
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
        loss = nn.functional.cross_entropy(logits, labels, reduction="sum") / num_items_in_batch
        return {"loss": loss, "logits": logits}


class Trainer(transformers.Trainer):
    """The examples in order."""

    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)


BATCHES = [batch(step) for step in range(6)]
EXAMPLES = [{"x": x, "labels": y} for xs, ys in BATCHES for x, y in zip(xs, ys)]


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(tmp_path, callback, model=None, checkpoint=None, **settings):
    settings = {"num_train_epochs": 1, "save_strategy": "no", **settings}
    arguments = transformers.TrainingArguments(
        output_dir=tmp_path / "out", per_device_train_batch_size=7, report_to="none", use_cpu=True,
        disable_tqdm=True, **settings)
    model = model or Network()
    optimizer = sgd(model)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    AcceleratorState._reset_state(True)
    trainer = Trainer(model, arguments, train_dataset=EXAMPLES, optimizers=(optimizer, constant),
                      callbacks=[callback])
    trainer.train(resume_from_checkpoint=checkpoint)
    assert not [hook for module in model.modules() for hook in (*module._forward_hooks.values(),
                                                                *module._forward_pre_hooks.values())
                if isinstance(hook, Hook)]
    return trainer


def test_it_is_the_log_of_the_loop(tmp_path, read_log):
    train(tmp_path, RecorderCallback(tmp_path / "run", every=2, sample_every=3), max_grad_norm=0.05)
    model = Network()
    optimizer = sgd(model)
    with Recorder(model, optimizer, tmp_path / "loop", every=2, sample_every=3) as recorder:
        for x, y in BATCHES:
            optimizer.zero_grad()
            recorder.loss(model(x, y)["loss"]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
    require_same_log(read_log(tmp_path / "run"), read_log(tmp_path / "loop"))
    manifest = json.loads((tmp_path / "run/run.json").read_text())
    assert manifest["recorder"]["clipping"] == "norm 0.05"
    assert manifest["autocast"] == {"cpu": None}


@pytest.mark.parametrize("kind", [Network, Normalized])
def test_microbatches(tmp_path, read_log, kind):
    """Four, and the two that are left in the last step."""
    model = kind()
    train(tmp_path, RecorderCallback(tmp_path / "run"), model, gradient_accumulation_steps=4,
          max_grad_norm=0.0)
    twin = Network()
    optimizer = sgd(twin)
    with Recorder(twin, optimizer, tmp_path / "loop") as recorder:
        for batches in (BATCHES[:4], BATCHES[4:]):
            for x, y in batches:
                (recorder.loss(twin(x, y)["loss"] / len(batches))).backward()
            optimizer.step()
            optimizer.zero_grad()
    log, other = read_log(tmp_path / "run"), read_log(tmp_path / "loop")
    if kind is Network:
        require_same_log(log, other)
    assert sorted(log.scalars) == [0, 1]
    for step in (0, 1):
        assert log.scalars[step]["loss"] == pytest.approx(other.scalars[step]["loss"], rel=1e-5)
        assert log.scalars[step]["max_abs_weight_grad"] == pytest.approx(
            other.scalars[step]["max_abs_weight_grad"], rel=1e-4)


def test_autocast_inside_of_forward(tmp_path, read_log):
    train(tmp_path, RecorderCallback(tmp_path / "run"), bf16=True)
    assert json.loads((tmp_path / "run/run.json").read_text())["autocast"] == {"cpu": "bfloat16"}
    record = read_log(tmp_path / "run").tables["weight_grad/network.3.weight", 0]
    assert (record["source_dtype"], record["computed_dtype"]) == ("F32", "BF16")


def test_a_run_that_goes_on_counts_on(tmp_path, read_log):
    train(tmp_path, RecorderCallback(tmp_path / "run"), save_strategy="epoch")
    train(tmp_path, RecorderCallback(tmp_path / "more"), num_train_epochs=2,
          checkpoint=tmp_path / "out/checkpoint-6")
    assert sorted(read_log(tmp_path / "more").scalars) == list(range(6, 12))


def test_a_folder_that_holds_a_log_stops_the_run_before_it_begins(tmp_path):
    require_refusal_of_a_folder_with_a_log(tmp_path, RecorderCallback, train, Network)


def test_alerts_and_the_summary(tmp_path):
    require_alerts_and_a_summary(tmp_path, RecorderCallback(tmp_path / "run", every=3), train)


def test_the_lines_of_the_documentation(tmp_path, root, monkeypatch):
    monkeypatch.chdir(tmp_path)
    AcceleratorState._reset_state(True)
    lines = documented(root, "halfscope.transformers")
    arguments = transformers.TrainingArguments(output_dir="out", max_steps=2, report_to="none",
                                               use_cpu=True, disable_tqdm=True)
    names = {"transformers": transformers, "model": Network(), "arguments": arguments,
             "data": EXAMPLES}
    exec(lines, names)
    names["trainer"].train()
    assert names["callback"].recorder.step == 2


# Accelerate.


def scaler_loop(model, optimizer, scaler, clip_with):
    """Step 2 overflows."""
    for step in range(5):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, step) * (1e38 if step == 2 else 1.0)).backward()
        scaler.unscale_(clip_with)
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        yield


def test_its_optimizer_with_a_scaler(tmp_path, read_log):
    AcceleratorState._reset_state(True)
    Accelerator(cpu=True)
    scaler, twin = (torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2))
    model = small_network()
    inner = sgd(model)
    optimizer = AcceleratedOptimizer(inner, scaler=scaler)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=2):
        for _ in scaler_loop(model, optimizer, scaler, inner):
            optimizer.step()
    model = small_network()
    plain = sgd(model)
    with Recorder(model, plain, tmp_path / "loop", sample_every=2, scaler=twin):
        for _ in scaler_loop(model, plain, twin, plain):
            twin.step(plain)
            twin.update()
    log = read_log(tmp_path / "run")
    require_same_log(log, read_log(tmp_path / "loop"))
    assert [log.scalars[step]["found_inf"] for step in range(5)] == [i == 2 for i in range(5)]
    assert "update/3.weight" in log.names(3)
    before = optimizer._optimizer_patched_step_method  # its own again
    assert before.__qualname__.endswith("patched_step") and not hasattr(before, "__self__")


def test_its_optimizer_while_gradients_accumulate(tmp_path, read_log):
    AcceleratorState._reset_state(True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = small_network()
    model, optimizer = accelerator.prepare(model, sgd(model))
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        for step in range(4):
            with accelerator.accumulate(model):
                accelerator.backward(recorder.loss(loss_of(model, step)))
                optimizer.step()
                optimizer.zero_grad()
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == [0, 1]
    assert "update/3.weight" in log.names(1)
