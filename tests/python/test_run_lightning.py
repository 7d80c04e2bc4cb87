# SPDX-License-Identifier: Apache-2.0
"""halfscope run with Lightning: the log of RecorderCallback, in all bits; processes that Lightning starts."""

import pytest

import frameworks

frameworks.need("lightning")

from recorded_scripts import SCRIPTS, by_hand, recorded, require_same_logs  # noqa: E402


def test_processes_that_the_trainer_spawns(tmp_path):
    script = (SCRIPTS / "lightning_fit.py").read_text().replace('"ddp"', '"ddp_spawn"')
    (tmp_path / "spawn.py").write_text(script)
    recorded("spawn.py", tmp_path, 2)
    by_hand("lightning_fit.py", tmp_path, [
        ('"ddp"', '"ddp_spawn"'),
        ("logger=False,", "logger=False, callbacks=[__import__('halfscope.lightning').lightning"
                          ".RecorderCallback('log', every=5, sample_every=10)],")], 2)
    require_same_logs(tmp_path, {f"rank-000{rank}": f"log/rank-000{rank}" for rank in (0, 1)})


def test_only_one_optimizer_of_several_trainers(tmp_path):
    import lightning
    import torch
    from scripts.lightning_fit import Classifier

    from halfscope.torch import record

    data = [(torch.randn(5, 6), torch.arange(5) % 3) for _ in range(3)]
    batches = torch.utils.data.DataLoader(data, batch_size=None)
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    with record(tmp_path / "run", only_one=True) as recording:
        for _ in range(2):
            lightning.Trainer(accelerator="cpu", max_steps=2, **quiet).fit(Classifier(), batches)
        model = torch.nn.Linear(6, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(data[0][0]).sum().backward()
        optimizer.step()
    assert recording.folders == [str(tmp_path / "run")]
    assert recording.notes[0] == "optimizer 2 and later ones are not recorded"


@pytest.mark.parametrize("devices", [1, 2])
def test_lightning(tmp_path, devices):
    _, answer = recorded(SCRIPTS / "lightning_fit.py", tmp_path, devices)
    by_hand("lightning_fit.py", tmp_path, [
        ("logger=False,", "logger=False, callbacks=[__import__('halfscope.lightning').lightning"
                          ".RecorderCallback('log', every=5, sample_every=10)],")], devices)
    require_same_logs(tmp_path, {"": "log"} if devices == 1 else
                      {f"rank-000{rank}": f"log/rank-000{rank}" for rank in (0, 1)})
    assert answer.count("halfscope run: recorded in run;") == 1
