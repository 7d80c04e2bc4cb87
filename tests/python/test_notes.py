# SPDX-License-Identifier: Apache-2.0
"""Notes on a log stand behind the answer, what the answer rests on first. Ten are printed, then how
many more; the JSON has all."""

import json
import logging
import os
import random
import subprocess
import types

import numpy as np
import pytest
from log_inputs import CORPUS
from program import PROGRAM, json_of, run
from safetensors.numpy import save_file

import halfscope


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The files of a Hugging Face checkpoint, as its Trainer writes them."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("out") / "checkpoint-30"
    folder.mkdir()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Linear(16, 50))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 100)
    history = []
    for step in range(1, 31):
        words = torch.randint(0, 50, (8,))
        loss = torch.nn.functional.cross_entropy(model(words), words)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 10 == 0:
            history.append({"epoch": step / 30, "grad_norm": 1.25, "learning_rate": 5e-5,
                            "loss": loss.item(), "step": step})
    save_file({f"transformer.h.{name}": value.numpy() for name, value in model.state_dict().items()},
              folder / "model.safetensors", metadata={"format": "pt"})
    for name, what in {
            "optimizer.pt": optimizer.state_dict(), "scheduler.pt": schedule.state_dict(),
            "rng_state.pth": {"python": random.getstate(), "numpy": np.random.get_state(),
                              "cpu": torch.random.get_rng_state()},
            "training_args.bin": types.SimpleNamespace(learning_rate=5e-5, fp16=True)}.items():
        torch.save(what, folder / name)
    (folder / "trainer_state.json").write_text(json.dumps(
        {"epoch": 1.0, "global_step": 30, "log_history": history, "max_steps": 30}))
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return folder


def test_few_notes_on_a_checkpoint_and_the_most_important_first(checkpoint, caplog):
    with caplog.at_level(logging.WARNING, "halfscope"):
        halfscope.recommend(checkpoint)
    assert len(caplog.messages) <= 5
    assert "treated as a model's weights" in caplog.messages[0]
    assert not [note for note in caplog.messages if "loss scale" in note]  # it has no gradients
    skipped = [i for i, note in enumerate(caplog.messages) if "skipped" in note]
    assert skipped and min(skipped) > 0


@pytest.mark.parametrize("command", [["recommend"], ["analyze"], ["policies", "--constant-between"],
                                     ["reduce"], ["compare"]])
def test_notes_come_behind_the_answer(command, checkpoint, tmp_path):
    """Both streams are one, as on a terminal."""
    logs = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for log in logs:
        np.savez(log, **{"layer": np.float32([1e-9, 1.0]), "counts": np.int64([1, 2])})
    used = logs if command == ["compare"] else logs[:1]
    if command[0] == "policies":
        used, command = [checkpoint], ["policies", "--assume-constant-between"]
    done = subprocess.run([PROGRAM, *command, *map(os.fspath, used)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    lines = done.stdout.splitlines()
    notes = [i for i, line in enumerate(lines) if line.startswith("halfscope: ")]
    assert notes, done.stdout
    if done.returncode == 0:
        assert notes == list(range(notes[0], len(lines))) and notes[0] > 0, done.stdout
    else:
        assert lines[-1].startswith("halfscope: ")


def test_notes_come_before_an_error(tmp_path):
    log = tmp_path / "a.npz"
    np.savez(log, counts=np.int64([1, 2]), layer=np.float32([1.0]))
    done = subprocess.run([PROGRAM, "analyze", log, "--json", tmp_path / "none" / "x.json"],
                          capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and "none/x.json" in lines[-1]
    assert any("'counts' skipped" in line for line in lines[:-1])


def test_a_note_of_several_logs_is_there_once():
    log = os.fspath(CORPUS / "megatron.txt")
    once, twice = (subprocess.run([PROGRAM, "policies", *[log] * n], capture_output=True,
                                  text=True).stderr.splitlines() for n in (1, 2))
    assert len(set(twice)) == len(twice) >= len(once)


def tensor_files(folder, count):
    paths = [folder / f"g{i}.npy" for i in range(count)]
    for path in paths:
        np.save(path, np.ones(3, np.float32))
    return paths


def told(err):
    return [line.removeprefix("halfscope: ") for line in err.splitlines()]


def test_ten_notes_are_printed_and_the_rest_counted(tmp_path):
    logs = tensor_files(tmp_path, 30)
    out, err = run("analyze", *logs, "--json", "-")
    notes = json.loads(out)["notes"]
    assert len(notes) > 30 and all(any(str(log) in note for note in notes) for log in logs)
    *first, last = told(err)
    assert first == notes[:10]
    assert last.startswith(f"and {len(notes) - 10} more notes; ") and "--json" in last
    for command in ("recommend", "report"):
        options = ["--out", tmp_path / "page.html"] if command == "report" else []
        _, err = run(command, *logs, *options)
        assert len(told(err)) == 11, command
    assert json_of("recommend", *logs)["notes"] == notes


def test_few_notes_are_all_printed_and_none_is_no_field(tmp_path):
    log, = tensor_files(tmp_path, 1)
    out, err = run("analyze", log, "--json", "-")
    assert told(err) == json.loads(out)["notes"]
    a, b = tmp_path / "1/g.npy", tmp_path / "2/g.npy"
    for path in (a, b):
        path.parent.mkdir()
        np.save(path, np.ones(3, np.float32))
    out, err = run("compare", a, b, "--json", "-")
    assert told(err) == json.loads(out).get("notes", [])


def test_python_warns_of_ten(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "halfscope"):
        found = halfscope.analyze(tensor_files(tmp_path, 30))
    assert len(caplog.messages) == 11 and "more notes" in caplog.messages[-1]
    assert len(found.notes) > 30


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_a_broken_stderr_loses_its_lines_alone(stderr, tmp_path):
    """Closed, its number would go to the next file that is opened: the page."""
    log, = tensor_files(tmp_path, 1)
    page = tmp_path / "page.md"
    for command, code in ((f"analyze {log}", 0), (f"report {log} --out {page}", 0),
                          (f"analyze {tmp_path}/none", 1), ("analyse", 2)):
        whole = subprocess.run([PROGRAM, *command.split()], capture_output=True, text=True)
        broken = subprocess.run(["sh", "-c", f"exec {PROGRAM} {command} {stderr}"],
                                stdout=subprocess.PIPE, text=True)
        assert (whole.returncode, broken.returncode) == (code, code), command
        assert broken.stdout == whole.stdout
    assert whole.stderr and "halfscope:" not in page.read_text()


def test_a_closed_stdout_takes_no_file_s_place(tmp_path):
    log, = tensor_files(tmp_path, 1)
    page = tmp_path / "page.md"
    done = subprocess.run(["sh", "-c", f"exec {PROGRAM} report {log} --out {page} >&-"],
                          stderr=subprocess.PIPE, text=True)
    assert "free space" not in done.stderr
    written = page.read_text()
    run("report", log, "--out", page)
    assert page.read_text() == written
