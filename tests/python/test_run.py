# SPDX-License-Identifier: Apache-2.0
"""halfscope run: the log of a script as it is equals that of a Recorder added by hand, in all bits."""

import concurrent.futures

import pytest

torch = pytest.importorskip("torch")

from recorded_scripts import (EVERY, SCRIPTS, by_hand, execute, recorded,  # noqa: E402
                              require_same_logs)

import halfscope  # noqa: E402
from conftest import Log  # noqa: E402

NEEDS_SCALER = pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"),
                                  reason="this PyTorch's GradScaler needs a GPU")


def test_a_gpt_with_accumulation_and_a_scaler(tmp_path):
    out, answer = recorded(SCRIPTS / "gpt_loop.py", tmp_path)
    plain, _ = by_hand("gpt_loop.py", tmp_path, [
        ("for iter_num in", "recorder = RECORDER(model=model, optimizer=optimizer, out='log', scaler=scaler)"
                            ".start()\nfor iter_num in"),
        ("scaler.scale(loss)", "scaler.scale(recorder.loss(loss))")])
    require_same_logs(tmp_path, {"": "log"})
    assert out == plain
    log = Log(tmp_path / "run")
    assert sorted(log.scalars) == list(range(12))
    assert {step for _, step in log.tables} == {0, 5, 10}
    assert str(halfscope.recommend(tmp_path / "run")).splitlines()[0] in answer


def test_a_reference_script(tmp_path):
    """A parser of its own, with an option --every too; a schedule; workers; evaluation."""
    out, _ = recorded(SCRIPTS / "classify.py", tmp_path, "--epochs", 2, "--every", 3)
    plain, _ = by_hand("classify.py", tmp_path, [
        ("    for epoch in", "    global recorder\n    recorder = RECORDER(model=model, optimizer=optimizer, "
                             "out='log').start()\n    for epoch in"),
        ("loss.backward()", "recorder.loss(loss).backward()")], "--epochs", 2)
    require_same_logs(tmp_path, {"": "log"})
    assert out == plain
    assert sorted(Log(tmp_path / "run").scalars) == list(range(8))


GAN = [("for i in range", "g = RECORDER(model=netG, optimizer=optimizerG, out='g'SCALER_G).start()\n"
                          "d = RECORDER(model=netD, optimizer=optimizerD, out='d'SCALER_D).start()\n"
                          "for i in range"),
       ("backward(errD_real,", "backward(d.loss(errD_real),"),
       ("backward(errD_fake,", "backward(d.loss(errD_fake),"),
       ("backward(errG,", "backward(g.loss(errG),")]


@pytest.mark.parametrize("amp", [pytest.param("--amp", marks=NEEDS_SCALER), "--plain"])
def test_two_optimizers_have_a_folder_each(tmp_path, amp):
    _, answer = recorded(SCRIPTS / "gan.py", tmp_path, amp)
    scaler = ", scaler=scaler{}" if amp == "--amp" else ""
    by_hand("gan.py", tmp_path, [
        (old, new.replace("SCALER_G", scaler.format("G")).replace("SCALER_D", scaler.format("D")))
        for old, new in GAN], amp)
    require_same_logs(tmp_path, {"optimizer-0": "d", "optimizer-1": "g"})
    assert "recorded in run/optimizer-0, run/optimizer-1" in answer
    for i in (0, 1):
        assert str(halfscope.recommend(tmp_path / f"run/optimizer-{i}")) in answer


def test_models_that_are_called_in_parts(tmp_path):
    recorded(SCRIPTS / "parts.py", tmp_path)
    noted = [("nn.functional.mse_loss(model.decoder(model.encoder(x)), x).backward()",
              "recorder.loss(nn.functional.mse_loss(model.decoder(model.encoder(x)), x)).backward()"),
             ("arange(12) % 4)\n        loss.backward()",
              "arange(12) % 4)\n        recorder.loss(loss).backward()")]
    models = {"model.parameters(), lr=0.1)": ("model", "a"),
              "*head.parameters()], lr=0.01)": ("nn.ModuleList([backbone, head])", "b"),
              "lr=0.5, max_iter=4)": ("model", "c")}
    by_hand("parts.py", tmp_path, noted + [
        (old, f"{old}\n    recorder = RECORDER(model={model}, optimizer=optimizer, out='{out}').start()")
        for old, (model, out) in models.items()])
    require_same_logs(tmp_path, {"": "a", "optimizer-1": "b", "optimizer-2": "c"})


DDP = [("    generator =", "    recorder = RECORDER(model=model, optimizer=optimizer, out='log').start()\n"
                           "    generator ="),
       ("loss.backward()", "recorder.loss(loss).backward()")]


@pytest.fixture
def ddp_by_hand(tmp_path):
    """Returns a function that requires the log's equality, and the script's output."""
    plain, _ = by_hand("ddp.py", tmp_path, DDP, f"file://{tmp_path}/meet-by-hand")
    return plain, lambda: require_same_logs(
        tmp_path, {f"rank-000{rank}": f"log/rank-000{rank}" for rank in (0, 1)})


def test_processes_that_the_script_starts(tmp_path, ddp_by_hand):
    plain, require_same = ddp_by_hand
    out, answer = recorded(SCRIPTS / "ddp.py", tmp_path, f"file://{tmp_path}/meet")
    require_same()
    assert out == plain
    assert str(halfscope.recommend(tmp_path / "run")) in answer


def test_ranks_of_a_launcher(tmp_path, ddp_by_hand):
    """They agree on a folder, and rank 0 alone answers."""
    _, require_same = ddp_by_hand
    (tmp_path / "halfscope-runs/ddp").mkdir(parents=True)
    (tmp_path / "halfscope-runs/ddp/notes").write_text("of an earlier run")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ranks = [pool.submit(execute, "-m", "halfscope.run", *EVERY, SCRIPTS / "ddp.py",
                             f"file://{tmp_path}/meet", folder=tmp_path, RANK=str(rank), WORLD_SIZE="2")
                 for rank in (0, 1)]
    assert ranks[1].result() == ("", "")
    (tmp_path / "halfscope-runs/ddp-2").rename(tmp_path / "run")
    require_same()
    assert "recorded in halfscope-runs/ddp-2" in ranks[0].result()[1]


@pytest.mark.skipif(torch.__version__ < "2", reason="torchrun of this PyTorch needs an older Python")
def test_torchrun(tmp_path, ddp_by_hand):
    _, require_same = ddp_by_hand
    execute("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "-m", "halfscope.run",
            *EVERY, "--out", "run", SCRIPTS / "ddp.py", "env://", folder=tmp_path)
    require_same()
