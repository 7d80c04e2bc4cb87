# SPDX-License-Identifier: Apache-2.0
"""halfscope run with Hugging Face's Trainer and Accelerate: the log of the documented lines, in all bits."""

import frameworks

frameworks.need("transformers")

from recorded_scripts import SCRIPTS, by_hand, manifest, recorded, require_same_logs  # noqa: E402

CALLBACK = ("train_dataset=Blocks())", "train_dataset=Blocks(), callbacks=[__import__('halfscope.transformers')"
                                       ".transformers.RecorderCallback('log', every=5, sample_every=10)])")


def test_the_trainer(tmp_path):
    recorded(SCRIPTS / "trainer_clm.py", tmp_path, "out")
    by_hand("trainer_clm.py", tmp_path, [CALLBACK], "out")
    require_same_logs(tmp_path, {"": "log"})
    assert manifest(tmp_path / "run")["recorder"]["clipping"] == "norm 0.5"


def test_a_trainer_with_a_callback_of_its_own_is_left_alone(tmp_path):
    (tmp_path / "own.py").write_text(
        (SCRIPTS / "trainer_clm.py").read_text().replace(*CALLBACK))
    _, answer = recorded("own.py", tmp_path, "out")
    assert (tmp_path / "log/run.json").exists() and not (tmp_path / "run/run.json").exists()
    assert "nothing was recorded" in answer


def test_two_trainings_of_a_trainer(tmp_path):
    (tmp_path / "twice.py").write_text((SCRIPTS / "trainer_clm.py").read_text().replace(
        "    trainer.train()\n", "    trainer.train()\n" * 2))
    _, answer = recorded("twice.py", tmp_path, "out")
    assert "recorded in run, run/optimizer-1;" in answer


def test_accelerate(tmp_path):
    recorded(SCRIPTS / "accelerated.py", tmp_path)
    by_hand("accelerated.py", tmp_path, [
        ("for x, y in batches", "recorder = RECORDER(model=model, optimizer=optimizer, out='log').start()\n"
                                "for x, y in batches"),
        ("accelerator.backward(loss)", "accelerator.backward(loss); recorder.loss(loss / 2)")])
    require_same_logs(tmp_path, {"": "log"})
