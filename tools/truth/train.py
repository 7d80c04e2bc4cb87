# SPDX-License-Identifier: Apache-2.0
"""train.py TASK OUT [--program P] [--dry]: trains a network in FP32 and in mixed precision, recorded
by halfscope, and measures the true results for comparison: OUT/TASK/truth.json.

docs/gpu.md has more. --dry: a tiny run on the CPU, all in FP32, to test the program itself.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import time
import warnings

import torch

import swamped
import tasks
import truth
from halfscope.torch import Recorder

DATA, FRESH_DATA = 1, 2  # seeds of the recorded runs, and of a run that halfscope did not record


class Training:
    """One network that can be trained repeatedly from the same weights."""

    def __init__(self, name, out, program, dry):
        self.name, self.out, self.program, self.dry = name, out, program, dry
        self.task = tasks.tasks(dry)[name]
        self.device = "cpu" if dry else "cuda"
        self.every = max(self.task.steps // 10, 1)

    def model(self):
        torch.manual_seed(7)
        return self.task.model().to(self.device)

    def recorded_steps(self):
        return range(0, self.task.steps, self.every)

    def sampled_step(self):
        return self.every * (self.task.steps // self.every // 2)

    def autocast(self, half):
        return torch.autocast("cuda", torch.float16, enabled=half and self.device == "cuda")


def _grad_scaler(enabled):
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=enabled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.cuda.amp.GradScaler(enabled=enabled)


class RecordedRun:
    """A run recorded as by a user of halfscope, with the true results of its recorded steps."""

    def __init__(self, training, mode):
        self.training, self.mode = training, mode
        self.half = mode == "amp"
        self.model = training.model()
        self.twin = copy.deepcopy(self.model)
        self.optimizer = training.task.optimizer(self.model.parameters())
        self.scaler = _grad_scaler(self.half and training.device == "cuda")
        self.same, self.real = truth.SamePass(), truth.RealPasses(training.task, self.twin)
        self.swamped, self.losses, self.scales = {}, [], []

    def run(self):
        training, begun = self.training, time.monotonic()
        batches = training.task.batches(DATA, training.device)
        steps = list(training.recorded_steps())
        sample = [training.sampled_step()] if self.mode == "fp32" else None
        scaler = self.scaler if self.half else None
        with Recorder(self.model, self.optimizer, training.out / self.mode, every=steps,
                      sample_every=sample, scaler=scaler,
                      clipping=training.task.clip and {"norm": training.task.clip}) as recorder:
            for step in range(training.task.steps):
                self._step(recorder, step, batches(step), step in steps)
        return {"same": self.same.tensors, "real": self.real.result(), "swamped": self.swamped,
                "losses": [float(loss) for loss in self.losses], "scales": self.scales,
                "seconds": time.monotonic() - begun}

    def _step(self, recorder, step, batch, looked_at):
        if looked_at:
            self.real.add(step, self.model, batch)
        self.optimizer.zero_grad()
        with truth.activation_gradients(self.model) if looked_at else _nothing() as found:
            with self.training.autocast(self.half):
                loss = recorder.loss(self.training.task.loss(self.model, batch))
            self.scaler.scale(loss).backward()
        self.scales.append(self.scaler.get_scale())
        self.losses.append(loss.detach())
        if self.training.task.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training.task.clip)
        elif looked_at:
            self.same.add({**found, **truth.weight_gradients(self.model)}, self.scales[-1])
        before = self._weights() if self._is_sampled(step) else None
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if before is not None:
            names = {id(p): name for name, p in self.model.named_parameters()}
            self.swamped = swamped.count(self.optimizer, names, before)

    def _is_sampled(self, step):
        return self.mode == "fp32" and step == self.training.sampled_step()

    def _weights(self):
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}


class _nothing:
    def __enter__(self):
        return {}

    def __exit__(self, *_):
        pass


def fixed(training, scale, seed, steps=None):
    """Trains at one loss scale. Skips and lists steps with weight gradients that are not finite."""
    model = training.model()
    optimizer = training.task.optimizer(model.parameters())
    batches = training.task.batches(seed, training.device)
    overflowing, losses = [], []
    for step in range(steps or training.task.steps):
        optimizer.zero_grad()
        with training.autocast(True):
            loss = training.task.loss(model, batches(step))
        (loss * scale).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        losses.append(float(loss.detach()))
        if not bool(torch.stack([torch.isfinite(grad).all() for grad in grads]).all()):
            overflowing.append(step)
            continue
        for grad in grads:
            grad.div_(scale)
        if training.task.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), training.task.clip)
        optimizer.step()
    return {"steps": len(losses), "overflowing": overflowing, "first_loss": losses[0],
            "last_loss": sum(losses[-10:]) / len(losses[-10:])}


def ask(training, mode):
    """Runs recommend and analyze on the log. Writes their answers to files, for the judge."""
    answers = {}
    for command in ("recommend", "analyze"):
        file = training.out / f"{command}-{mode}.json"
        subprocess.run([training.program, command, str(training.out / mode), "--json", str(file)],
                       check=True, stdout=subprocess.DEVNULL)
        answers[command] = json.loads(file.read_text())
    return answers["recommend"]


def scales_to_try(advice):
    """Returns [(reason, scale, seed of the data)]."""
    if not advice.get("static_scale"):
        return [("1", 1.0, DATA)]
    advised = float(advice["static_scale"])
    found = [("advised", advised, DATA), ("advised, other data", advised, FRESH_DATA)]
    found += [(f"advised x {2**k}", advised * 2**k, DATA) for k in (1, 2, 5)]
    if advice.get("lowest"):
        found.append(("lowest", float(advice["lowest"]), DATA))
    return found + [("1", 1.0, DATA)]


def fixed_runs(training, mode, advice, done):
    rows = []
    for why, scale, seed in scales_to_try(advice):
        if (scale, seed) not in done:
            done[scale, seed] = fixed(training, scale, seed)
        rows.append({"log": mode, "why": why, "scale": scale, **done[scale, seed]})
        print(f"{training.name} {mode}: {why} ({scale:g}): "
              f"{len(rows[-1]['overflowing'])} of {rows[-1]['steps']} steps overflow", flush=True)
    return rows


def about(training):
    return {"task": training.name, "dry": training.dry, "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if training.device == "cuda" else "cpu",
            "cudnn": torch.backends.cudnn.version(), "clip": training.task.clip,
            "optimizer": type(training.task.optimizer([torch.nn.Parameter()])).__name__,
            "parameters": sum(p.numel() for p in training.model().parameters())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=tasks.tasks(True))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--program", default="halfscope")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    out = options.out / options.task
    out.mkdir(parents=True, exist_ok=True)
    training = Training(options.task, out, options.program, options.dry)
    result = {**about(training), "runs": {}, "fixed": []}
    done = {}
    for mode in ("fp32", "amp"):
        result["runs"][mode] = RecordedRun(training, mode).run()
        result["fixed"] += fixed_runs(training, mode, ask(training, mode), done)
        (out / "truth.json").write_text(json.dumps(result, allow_nan=True))  # the results so far
        print(f"{training.name} {mode}: {result['runs'][mode]['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
