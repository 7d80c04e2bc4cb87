# SPDX-License-Identifier: Apache-2.0
"""`halfscope simulate`: the command line, what it refuses, and its log in the other commands."""
import functools
import json
import os
import re
import signal
import subprocess
import time

import pytest

from program import PROGRAM, run, schema

simulate = functools.partial(run, "simulate")


def mlp(out, *arguments, expect=0):
    return simulate("mlp", "--out", out, "--threads", 1, "--steps", 30, *arguments, expect=expect)


def test_a_run_ends_with_the_answer_and_the_next_command(tmp_path):
    out = tmp_path / "run"
    text = mlp(out).stdout
    assert text.startswith("mlp in fp32: 30 steps, loss ")
    assert "would be flushed to zero by FP16, unscaled" in text
    assert "of the weight updates would be lost in FP16 weights" in " ".join(text.split())
    last = text.splitlines()[-1]
    assert last == f"Next:  halfscope recommend {out}"
    assert "loss scale" in run("recommend", out).stdout.lower()


def test_the_manifest_says_what_was_run(tmp_path):
    mlp(tmp_path / "run", "--precision", "mixed", "--optimizer", "adam", "--weight-decay", 0.01,
        "--loss-scale", "2^10", "--seed", 5)
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["gradients"] == "scaled"
    assert run["loss_scaling"]["policy"] == "static"
    assert run["loss_scaling"]["scale"] == 1024
    assert run["precision"] == "mixed" and run["seed"] == 5
    assert run["optimizer"]["class"] == "torch.optim.Adam"
    group, = run["optimizer"]["param_groups"]
    assert group["lr"] == 0.001 and group["weight_decay"] == 0.01
    assert group["params"][:2] == ["fc1.weight", "fc1.bias"]


@pytest.mark.parametrize("scaling", ["torch,init_scale=2^24,growth_interval=3", "nnabla,scale=2^22",
                                     "static,scale=2^22", "chainer", "os2s-logmax"])
def test_the_replay_of_the_runs_own_policy_is_the_run(tmp_path, scaling):
    text = mlp(tmp_path / "run", "--precision", "mixed", "--loss-scale", scaling).stdout
    assert f"Loss scaling by {scaling.partition(',')[0]}" in text
    study = run("policies", tmp_path / "run").stdout
    assert agrees(study), study


def test_true_errors_follow_their_schema_and_are_summed_up(tmp_path):
    out = tmp_path / "run"
    text = mlp(out, "--precision", "fp16", "--loss-scale", "2^-12", "--true-error").stdout
    steps = [json.loads(line) for line in (out / "true_error.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [0, 10, 20]
    for step in steps:
        schema("true_error").validate(step)
    weights = [t for step in steps for t in step["tensors"] if t["role"] == "weight_grad"]
    lost, of = (sum(t[key] for t in weights) for key in ("lost", "true_nonzero"))
    assert 0 < lost < of
    assert "at the same weights and batches, in 3 recorded steps." in text
    row = re.search(r"^  weight gradients +\S+ +\S+ +([0-9.]+) % +([0-9.]+) % ", text, re.M)
    assert float(row[1]) == pytest.approx(100 * lost / of, rel=0.05), text
    small = sum(t["underflowed"] for t in weights)
    assert 0 < small < lost  # others underflowed upstream
    assert float(row[2]) == pytest.approx(100 * small / lost, rel=0.05), text
    run("analyze", out)  # the file is no part of the log
    mlp(out, "--force")
    assert not (out / "true_error.jsonl").exists()


def agrees(study):
    return " gives the same scales and skips at all " in " ".join(study.split())  # lines may break


def test_batch_normalization_does_not_part_replay_and_run(tmp_path):
    simulate("resnet20", "--out", tmp_path / "run", "--precision", "mixed", "--batch", 4, "--steps",
             6, "--record-every", 2, "--loss-scale", "torch,init_scale=2^20,growth_interval=1")
    study = run("policies", tmp_path / "run").stdout
    assert agrees(study), study


@pytest.mark.parametrize("network, precision, core", [
    ("lenet", "mixed", "hopper"), ("mlp", "fp16", "volta"), ("charlstm", "mixed-bf16", "ampere")])
def test_a_run_with_a_tensor_cores_sums(tmp_path, network, precision, core):
    """The same bytes on any number of threads and instructions, and others than with FP32 sums."""
    accumulate = f"tensor-core:{core}"
    arguments = ("--precision", precision, "--batch", 20, "--steps")
    simulate(network, "--out", tmp_path / "fp32", *arguments, 3, "--accumulate", "fp32")
    last = {}
    for threads, target in ((1, ""), (2, ""), (2, "SCALAR")):
        out = tmp_path / f"{threads} {target}"
        environment = {**os.environ, **({"HALFSCOPE_TARGET": target} if target else {})}
        run("simulate", network, "--out", out, *arguments, 3, "--accumulate", accumulate,
            "--threads", threads, env=environment)
        last[out] = (out / "checkpoint/step-000003.safetensors").read_bytes()
        assert json.loads((out / "run.json").read_text())["simulation"]["accumulate"] == accumulate
    assert len(set(last.values())) == 1
    assert json.loads((tmp_path / "fp32/run.json").read_text())["simulation"]["accumulate"] == "fp32"
    assert (tmp_path / "fp32/checkpoint/step-000003.safetensors").read_bytes() not in last.values()

    text = simulate("--out", out, "--resume", "--steps", 4).stdout  # with its own accumulator
    assert text.startswith(f"{network} in {precision}, sums of {accumulate}: 4 steps")
    simulate(network, "--out", tmp_path / "straight", *arguments, 4, "--accumulate", accumulate)
    ends = [(folder / "checkpoint/step-000004.safetensors").read_bytes()
            for folder in (out, tmp_path / "straight")]
    assert ends[0] == ends[1]
    _, found = simulate("--out", out, "--resume", "--steps", 5, "--accumulate", "fp16", expect=1)
    assert f'this run has accumulate "{accumulate}", and "fp16" was asked for' in found


def test_resume_needs_no_settings_and_refuses_others(tmp_path):
    out = tmp_path / "run"
    arguments = ("--precision", "mixed", "--loss-scale", "torch", "--optimizer", "momentum")
    mlp(out, *arguments)
    assert "has done its 30 steps" in simulate("--out", out, "--resume", expect=1).stderr
    text = simulate("--out", out, "--resume", "--steps", 40).stdout
    assert text.startswith("mlp in mixed: 40 steps")
    found = simulate("--out", out, "--resume", "--steps", 50, "--batch", 3, expect=1).stderr
    assert "this run has batch 32, and 3 was asked for" in found
    straight = tmp_path / "straight"
    simulate("mlp", "--out", straight, "--steps", 40, *arguments)
    ends = [(folder / "checkpoint/step-000040.safetensors").read_bytes()
            for folder in (out, straight)]
    assert ends[0] == ends[1]


def test_resume_tells_of_checkpoints_that_it_passes_over(tmp_path):
    out, other = tmp_path / "run", tmp_path / "other"
    mlp(out, "--checkpoint-every", 10)
    mlp(other, "--checkpoint-every", 10, "--seed", 2)
    last, before = (out / f"checkpoint/step-0000{step}.safetensors" for step in (30, 20))
    whole = last.read_bytes()
    last.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    said = simulate("--out", out, "--resume").stderr
    assert said == (f"halfscope: {last}: its checksum does not fit what it holds; continues from "
                    "step 20 instead\n")
    assert last.read_bytes() == whole and before.exists()
    assert simulate("--out", out, "--resume", "--steps", 31).stderr == ""
    for step in (20, 30):
        mine = out / f"checkpoint/step-0000{step}.safetensors"
        mine.write_bytes((other / "checkpoint" / mine.name).read_bytes())
    (out / "checkpoint/step-000031.safetensors").unlink()
    said = simulate("--out", out, "--resume", expect=1).stderr
    assert f"{last}: it is of a run with seed 2, and this one has seed 0" in said
    assert "no checkpoint here is whole and of this run" in said


def test_fewer_steps_than_are_done_are_refused_with_what_was_asked_for(tmp_path):
    out = tmp_path / "run"
    mlp(out, "--checkpoint-every", 10)
    (out / "checkpoint/step-000030.safetensors").unlink()  # as one that was stopped leaves it
    found = simulate("--out", out, "--resume", "--steps", 15, expect=1).stderr
    assert "was asked for 30 steps before and has done 20 of them; 15 are fewer" in found
    assert simulate("--out", out, "--resume").stdout.startswith("mlp in fp32: 30 steps, ")


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "a run"
    process = subprocess.Popen([PROGRAM, "simulate", "mlp", "--out", out, "--steps", "1000000",
                                "--record-every", "100000"], stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not list(out.glob("checkpoint/step-000[1-9]*")) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130  # what comes after && is skipped
    assert "stopped after step" in text
    assert text.splitlines()[-1] == f"To continue:  halfscope simulate mlp --out '{out}' --resume"
    steps = int(text.split("stopped after step ")[1].split(".")[0]) + 1
    assert (out / f"checkpoint/step-{steps:06}.safetensors").exists()


def test_a_killed_run_is_read_and_goes_on(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen([PROGRAM, "simulate", "mlp", "--out", out, "--steps", "1000000"])
    end = time.monotonic() + 60
    while not list(out.glob("checkpoint/step-000[1-9]*")) and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.wait()
    run("recommend", out)
    done = max(int(path.stem[5:]) for path in out.glob("checkpoint/step-*"))
    simulate("--out", out, "--resume", "--steps", done + 5)
    run("policies", out)


def test_a_diverged_run_ends_with_a_message_and_a_log(tmp_path):
    text = simulate("mlp", "--out", tmp_path / "run", "--lr", "1e30", "--steps", 100000).stdout
    assert "diverged: the loss has not been finite for 100 steps" in text
    assert ", NaN at last" in text
    run("analyze", tmp_path / "run")


@pytest.mark.parametrize("arguments, code, words", [
    (["nonesuch", "--out", "X"], 2, "use one of mlp, lenet, resnet20, tinyssd"),
    (["mlp", "--out", "X", "--loss-scale", "nonesuch"], 2, "torch, apex"),
    (["mlp", "--out", "X", "--loss-scale", "torch,nonesuch=1"], 2, "it has init_scale"),
    (["mlp", "--out", "X", "--loss-scale", "0"], 2, "--loss-scale"),
    (["mlp", "--out", "X", "--loss-scale", "te-delayed"], 1, "is not a loss scale"),
    (["mlp", "--out", "X", "--backend", "cudnn"], 3, "--backend cpu emulates the same network"),
    (["mlp", "--out", "X", "--check-operations"], 2, "add --backend cudnn"),
    (["mlp", "--out", "X", "--precision", "fp8"], 2, "fp32"),
    (["mlp", "--out", "X", "--accumulate", "tensor-core:pascal"], 2, "tensor-core:hopper"),
    (["mlp", "--out", "X", "--accumulate", "tensor-core:hopper"], 2,
     "--accumulate tensor-core:hopper: hopper has no Tensor Core for the tensors of --precision fp32; "
     "use one of fp16, mixed, bf16, mixed-bf16"),
    (["mlp", "--out", "X", "--accumulate", "tensor-core:volta", "--precision", "mixed-bf16"], 2,
     "volta has no Tensor Core for the tensors of --precision mixed-bf16; use one of fp16, mixed\n"),
    (["mlp", "--out", "X", "--accumulate", "tensor-core:ada", "--precision", "fp16", "--backend", "cudnn"],
     2, "tensor-core:ada is emulated on the CPU, and --backend cudnn adds on the GPU; use --backend cpu"),
    (["mlp", "--out", "X", "--loss-scale", "-4"], 2, "--loss-scale: found '-4', expected a positive"),
    (["mlp", "--out", "X", "--loss-scale", "inf"], 2, "--loss-scale: found 'inf', expected a positive"),
    (["mlp", "--out", "X", "--steps", "0"], 2, "--steps: found '0', expected a whole number, 1 or more"),
    (["mlp", "--out", "X", "--steps", "1e3"], 2, "--steps: found '1e3', expected a whole number, 1 or"),
    (["mlp", "--out", "X", "--lr", "-1"], 2, "--lr: found '-1', expected a finite number, 0 or more"),
    (["mlp", "--out", "X", "--lr", "nan"], 2, "--lr: found 'nan', expected a finite number, 0 or more"),
    (["mlp", "--out", "X", "--threads", "-1"], 2, "found '-1', expected a whole number, 0 or more"),
    (["mlp", "--out", "X", "--seed", "-1"], 2, "--seed: found '-1', expected a whole number, 0 or more"),
    (["mlp"], 2, "--out is missing"),
    (["--out", "X"], 2, "NETWORK is missing"),
    (["mlp", "--out", "X", "--data", "nonesuch"], 1, "nonesuch"),
    (["mlp", "--out", "X", "--data", "text"], 1, "mlp"),
    (["--out", "X", "--resume"], 1, "is not a run log"),
    (["mlp", "--out", "X", "--resume", "--force"], 2, "give one of them"),
])
def test_what_cannot_be_is_refused_in_one_line(tmp_path, arguments, code, words):
    out = tmp_path / "x"
    found = simulate(*[out if word == "X" else word for word in arguments], expect=code)
    assert words in found.stderr
    assert found.stderr.count("\n") == 1
    assert found.stdout == ""
    assert not out.exists()


def test_data_of_another_kind_is_described_once(tmp_path):
    found = simulate("lenet", "--out", tmp_path / "x", "--data", "text", expect=1).stderr
    assert found.count("generated sentences") == 1
    assert "lenet cannot be trained on generated sentences, " in found
    assert "this network needs images with one label each" in found


def test_a_text_has_as_many_bytes_as_the_message_says(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("ab " * 219 + "ab")
    found = simulate("charlstm", "--out", tmp_path / "x", "--data", text, expect=1).stderr
    assert "it has 659 bytes: a text to train on has 660 or more" in found
    text.write_text("ab " * 220)
    simulate("charlstm", "--out", tmp_path / "x", "--data", text, "--steps", 1, "--batch", 2)


def test_an_existing_folder_is_not_written_over(tmp_path):
    out = tmp_path / "run"
    mlp(out)
    before = sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    assert "--resume" in mlp(out, expect=1).stderr
    assert sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*")) == before
    mlp(out, "--force", "--data", tmp_path / "nonesuch", expect=1)
    assert sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*")) == before
    (out / "notes.txt").write_text("mine")
    mlp(out, "--force", "--seed", 3)
    assert (out / "notes.txt").read_text() == "mine"
    assert json.loads((out / "run.json").read_text())["seed"] == 3
    assert len(list(out.glob("*tfevents*"))) == 1
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    assert "not a run" in mlp(other, "--force", expect=1).stderr
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


def test_the_list_names_every_network_and_set():
    text = simulate("--list").stdout
    for name in ("mlp", "lenet", "resnet20", "tinyssd", "charlstm", "resnet50", "digits", "blobs",
                 "boxes", "large-images"):
        assert f"  {name} " in text


def test_times_tell_how_long_steps_took(tmp_path):
    mlp(tmp_path / "run", "--times", tmp_path / "times.json")
    times = json.loads((tmp_path / "times.json").read_text())
    assert times["steps"] == 19 and times["left_out"] == 10  # 29 intervals
    assert 0 < times["least_seconds"] <= times["median_seconds"] <= times["most_seconds"]
    assert times["least_seconds"] <= times["mean_seconds"] <= times["most_seconds"]
    text = simulate("mlp", "--out", tmp_path / "one", "--steps", 1, "--times", "-").stdout
    assert json.loads(text.splitlines()[0]) == {"steps": 0, "left_out": 0}
