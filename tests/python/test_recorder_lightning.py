# SPDX-License-Identifier: Apache-2.0
"""halfscope.lightning: the log is that of a Recorder in the loop that Lightning runs."""

import json

import pytest

import frameworks

lightning = frameworks.need("lightning")

import torch  # noqa: E402
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402
from recorder_callbacks import (documented, require_alerts_and_a_summary,  # noqa: E402
                                require_refusal_of_a_folder_with_a_log)
from small_runs import batch, require_same_log, small_network  # noqa: E402
from torch import nn  # noqa: E402

import halfscope.lightning  # noqa: E402
from halfscope.lightning import RecorderCallback  # noqa: E402
from halfscope.torch import Recorder  # noqa: E402
from halfscope.torch.guard import Hook  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*(num_workers|log_every_n_steps|`IterableDataset`)")


class Network(lightning.LightningModule):
    """It calls a module of its own, not itself, as many do."""

    def __init__(self, fails_at=None):
        super().__init__()
        self.network = small_network()
        self._fails_at = fails_at

    def loss(self, x, y):
        return nn.functional.cross_entropy(self.network(x), y)

    def training_step(self, xy, index):
        if index == self._fails_at:
            raise ZeroDivisionError
        return self.loss(*xy)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class TwoOptimizers(Network):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, xy, index):
        optimizers = self.optimizers()
        self.manual_backward(self.loss(*xy))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    def configure_optimizers(self):
        return [torch.optim.SGD(self.network[i].parameters(), lr=0.1) for i in (0, 3)]


BATCHES = [batch(step) for step in range(6)]


def loader(batches):
    return torch.utils.data.DataLoader(batches, batch_size=None)


def fit(tmp_path, callback, model=None, batches=BATCHES, **settings):
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
        default_root_dir=tmp_path, **settings)
    model = model or Network()
    trainer.fit(model, train_dataloaders=loader(batches))
    assert is_as_it_was(model, trainer)
    return trainer


def is_as_it_was(model, trainer):
    hooks = [hook for module in model.modules()
             for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())]
    return not any(isinstance(hook, Hook) for hook in hooks) and not any(
        "step" in vars(optimizer) for optimizer in trainer.optimizers)


def test_it_is_the_log_of_the_loop(tmp_path, read_log):
    fit(tmp_path, RecorderCallback(tmp_path / "run", every=2, sample_every=3), gradient_clip_val=0.05)
    model = Network()
    optimizer = model.configure_optimizers()
    with Recorder(model, optimizer, tmp_path / "loop", every=2, sample_every=3) as recorder:
        for x, y in BATCHES:
            optimizer.zero_grad()
            recorder.loss(model.loss(x, y)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
    require_same_log(read_log(tmp_path / "run"), read_log(tmp_path / "loop"))
    assert json.loads((tmp_path / "run/run.json").read_text())["recorder"]["clipping"] == "norm 0.05"


def test_microbatches(tmp_path, read_log):
    fit(tmp_path, RecorderCallback(tmp_path / "run"), accumulate_grad_batches=2)
    model = Network()
    optimizer = model.configure_optimizers()
    with Recorder(model, optimizer, tmp_path / "loop") as recorder:
        for i, (x, y) in enumerate(BATCHES):
            recorder.loss(model.loss(x, y) / 2).backward()
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
    require_same_log(read_log(tmp_path / "run"), read_log(tmp_path / "loop"))
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1, 2]


def test_a_scaler(tmp_path, read_log):
    """One step is skipped."""
    batches = [(x * (1e30 if i == 2 else 1.0), y) for i, (x, y) in enumerate(BATCHES)]
    scaler, twin = (torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2))
    fit(tmp_path, RecorderCallback(tmp_path / "run"), batches=batches,
        plugins=[MixedPrecision("16-mixed", "cpu", scaler)])
    model = Network()
    optimizer = model.configure_optimizers()
    with Recorder(model, optimizer, tmp_path / "loop", scaler=twin):
        for x, y in batches:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                loss = model.loss(x, y)
            twin.scale(loss).backward()
            twin.step(optimizer)
            twin.update()
    log = read_log(tmp_path / "run")
    require_same_log(log, read_log(tmp_path / "loop"))
    assert [log.scalars[step]["found_inf"] for step in range(6)] == [i == 2 for i in range(6)]
    assert log.scalars[3]["loss_scale"] == 512.0
    assert json.loads((tmp_path / "run/run.json").read_text())["autocast"] == {"cpu": "float16"}
    assert halfscope.recommend(tmp_path / "run").static_scale


def test_several_optimizers_have_a_folder_each(tmp_path, read_log):
    fit(tmp_path, RecorderCallback(tmp_path / "run"), TwoOptimizers())
    for i, name in enumerate(["network.0.weight", "network.3.weight"]):
        log = read_log(tmp_path / "run" / f"optimizer-{i}")
        updated = {n for n in log.names(5) if n.startswith("update/")}
        assert updated == {f"update/{name}", f"update/{name}".replace("weight", "bias")}


def test_an_error_of_the_loop_leaves_a_log_and_no_hooks(tmp_path, read_log):
    callback, model = RecorderCallback(tmp_path / "run"), Network(fails_at=3)
    with pytest.raises(ZeroDivisionError):
        fit(tmp_path, callback, model)
    assert is_as_it_was(model, model.trainer)
    assert sorted(read_log(tmp_path / "run").scalars) == [0, 1, 2]


def test_a_run_that_goes_on_counts_on(tmp_path, read_log):
    first = fit(tmp_path, RecorderCallback(tmp_path / "run"))
    first.save_checkpoint(tmp_path / "checkpoint")
    second = lightning.Trainer(accelerator="cpu", devices=1, max_epochs=2, logger=False,
                               enable_checkpointing=False, enable_progress_bar=False,
                               callbacks=[RecorderCallback(tmp_path / "more")])
    second.fit(Network(), train_dataloaders=loader(BATCHES), ckpt_path=tmp_path / "checkpoint")
    assert sorted(read_log(tmp_path / "more").scalars) == list(range(6, 12))


def test_a_folder_that_holds_a_log_stops_the_run_before_it_begins(tmp_path):
    require_refusal_of_a_folder_with_a_log(tmp_path, RecorderCallback, fit, Network)


def test_alerts_and_the_summary(tmp_path):
    require_alerts_and_a_summary(tmp_path, RecorderCallback(tmp_path / "run", every=3), fit)


def test_the_lines_of_the_documentation(tmp_path, root, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = documented(root, "halfscope.lightning")
    names = {"lightning": lightning}
    exec(lines.replace("max_steps=10_000", "max_steps=2, accelerator='cpu', logger=False"), names)
    names["trainer"].fit(Network(), loader(BATCHES))
    assert names["callback"].recorder.step == 2
