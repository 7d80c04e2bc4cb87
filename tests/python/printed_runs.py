# SPDX-License-Identifier: Apache-2.0
"""Runs of six kinds under a dynamic loss scale, as each framework prints them. The scaler here is
the textbook rule (arXiv 1710.03740, section 3.2): halve at an overflow, double after `window`
steps without one. It shares no code with what reads the lines."""
import dataclasses
import json
import math

NAN = math.nan


@dataclasses.dataclass
class Step:
    number: int      # attempts, from 1
    scale: float     # it was tried at
    after: float     # the scale that it left
    skipped: bool
    loss: float
    norm: float      # the gradients', unscaled; not finite where it was skipped
    applied: int     # updates, up to and with this one
    start: bool = False  # the first of a process


@dataclasses.dataclass
class Run:
    steps: list
    window: int
    state: str       # what is to be answered
    since: int = 0   # the step that the state is of, where it has one


def run_of(largest, state, *, scale=65536.0, window=100, least=1.0, since=0, restart=None,
           loss=lambda n: 2.0 + 1.0 / n):
    """largest(step): the largest unscaled gradient of a step; NaN: of the model."""
    steps, clean, applied, start = [], 0, 0, scale
    for n in range(1, len(largest) + 1):
        if n == restart:
            scale, clean = start, 0
        value = largest[n - 1]
        overflow = not value * scale < 65520
        before = scale
        if overflow:
            scale, clean = max(scale / 2, least), 0
        else:
            clean, applied = clean + 1, applied + 1
            if clean == window:
                scale, clean = scale * 2, 0
        steps.append(Step(n, before, scale, overflow, NAN if math.isnan(value) else loss(n),
                          NAN if overflow else value, applied, n in (1, restart)))
    return Run(steps, window, state, since)


def runs(least=1.0):
    """By kind. least: below which the scaler does not go; Apex has no such limit."""
    quiet = [0.3 + 0.1 * math.sin(n) for n in range(1000)]
    # Gradients double every second step from 600 on, until they need a scale of 1.
    growing = [0.3 * 2.0 ** min(17, max(0, n - 600) // 2) for n in range(1000)]
    return {
        # The scale settles at 2^17 and tries 2^18 once in a window.
        "healthy": run_of(quiet, "normal", scale=2.0 ** 17),
        "slow start": run_of(quiet, "slow_start", scale=2.0 ** 32, window=1000),
        "collapsed": run_of(growing, "collapsed", since=600, least=least),
        "NaN": run_of(quiet[:600] + [NAN] * 100, "broken", since=601, least=least),
        "restarted": run_of(quiet, "normal", scale=2.0 ** 24, restart=501),
        # BF16, or a static scale of 1.
        "without a scale": run_of(quiet, "not_needed", scale=1.0, window=10 ** 9),
    }


def deepspeed_counter(s, skipped):
    return (f"[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={s.number}, "
            f"skipped={skipped}, lr=[0.0001], mom=[(0.9, 0.999)]")


def deepspeed(run, every=10):
    """ZeRO's optimizer."""
    skipped = 0
    for s in run.steps:
        if s.skipped:
            skipped += 1
            yield ("[2026-01-01 00:00:00,000] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] "
                   "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
                   f"{s.scale:.0f}, reducing to {s.after:.0f}")
        if s.number % every == 0:
            yield deepspeed_counter(s, skipped)
            yield f"steps: {s.number} loss: {s.loss:.4f} iter time (s): 0.1 samples/sec: 80.0"


def deepspeed_fused(run, every=10):
    skipped = 0
    for s in run.steps:
        if s.skipped:
            skipped += 1
            yield (f"[2026-01-01 00:00:00,000] [INFO] [fused_optimizer.py:370:_update_scale] \n"
                   f"Grad overflow on iteration {s.number - 1}")
            yield (f"[2026-01-01 00:00:00,000] [INFO] [fused_optimizer.py:372:_update_scale] "
                   f"Reducing dynamic loss scale from {s.scale:.0f} to {s.after:.0f}")
            yield ("[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow "
                   f"detected. Skipping step. Attempted loss scale: {s.scale:.0f}, reducing to "
                   f"{s.after:.0f}")
        if s.number % every == 0:
            yield deepspeed_counter(s, skipped)


def megatron(run, every=10):
    skipped = nans = 0
    for s in run.steps:
        skipped += s.skipped
        nans += math.isnan(s.loss)
        if s.number % every == 0:
            yield (f" iteration {s.number:8d}/ {len(run.steps):8d} | consumed samples: "
                   f"{s.number * 8:12d} | elapsed time per iteration (ms): 100.0 | learning rate: "
                   f"1.000E-04 | global batch size:     8 | lm loss: {s.loss:.6E} | loss scale: "
                   f"{s.after:.1f} | grad norm: {s.norm:.3f} | number of skipped iterations: "
                   f"{skipped:3d} | number of nan iterations: {nans:3d} |")
            skipped = nans = 0


def apex(run, every=10):
    for s in run.steps:
        if s.skipped:
            yield ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
                   f"{s.after}")
        if s.number % every == 0:
            yield f"epoch 0 iteration {s.number} loss {s.loss:.4f}"


def apex_fp16_optimizer(run, every=10):
    for s in run.steps:
        if s.skipped:
            yield f"Grad overflow on iteration {s.number - 1}"
            yield f"Using dynamic loss scale of {s.scale}"
        if s.number % every == 0:
            yield f"epoch 0 loss {s.loss:.4f}"


def fairseq_overflow(s):
    return ("2026-01-01 00:00:00 | INFO | fairseq.trainer | NOTE: gradient overflow detected, "
            f"ignoring gradient, setting loss scale to: {s.after}")


def fairseq(run, every=10):
    for s in run.steps:
        if s.skipped:
            yield fairseq_overflow(s)
        elif s.applied % every == 0:
            yield (f"2026-01-01 00:00:00 | INFO | train_inner | epoch 001: {s.number:6d} / 9999 "
                   f"loss={s.loss:.3f}, ppl=4.0, wps=100, num_updates={s.applied}, lr=0.0001, "
                   f"gnorm={s.norm:.3f}, loss_scale={s.after:.0f}, train_wall=1, wall=1")


def fairseq_json(run, every=10):
    for s in run.steps:
        if s.skipped:
            yield fairseq_overflow(s)
        elif s.applied % every == 0:
            yield ("[2026-01-01 00:00:00,000][train_inner][INFO] - " + json.dumps(
                {"epoch": 1, "update": 0.1, "loss": f"{s.loss:.3f}", "num_updates": str(s.applied),
                 "lr": "0.0001", "gnorm": f"{s.norm:.3f}", "loss_scale": f"{s.after:.0f}"}))


def paddlenlp(run, every=10):
    for s in run.steps:
        if s.skipped:
            yield (f"[2026-01-01 00:00:00,000] [ WARNING] - optimizer not run, scale_before: "
                   f"{s.scale}, scale_after: {s.after}")
        if s.number % every == 0:
            yield (f"[2026-01-01 00:00:00,000] [    INFO] - loss: {s.loss:.8f}, learning_rate: "
                   f"1e-04, global_step: {s.number}, loss_scale: {s.after}, interval_runtime: 1.0")


def mindspore(run, every=1):
    for s in run.steps:
        if s.number % every == 0 or s.skipped:
            yield (f"2026-01-01 00:00:00,000 - mindformers - INFO - {{ Epoch:[  1/  1], step:["
                   f"{s.number:5d}/{len(run.steps):5d}], loss: {s.loss:.3f}, per_step_time: 100ms, "
                   f"lr: 1e-04, overflow cond: {s.skipped}, loss_scale: {s.after}")


def nemo(run, every=10):
    for s in run.steps:
        if s.number % every == 0:
            yield (f"Epoch 0: :   {100 * s.number // len(run.steps)}%|#         | {s.number}/"
                   f"{len(run.steps)} [00:40<2:40:10, 2.50it/s, v_num=0, reduced_train_loss="
                   f"{s.loss:.3f}, global_step={s.number - 1}.0, grad_norm={s.norm:.3f}, "
                   f"loss_scale={s.scale}]")  # logged before the update


def fairseq2(run, every=10):
    for s in run.steps:
        if s.skipped:
            yield ("[2026-01-01 00:00:00,000] INFO     fairseq2.optim.dynamic_loss_scaler - Overflow "
                   f"detected at step {s.applied}, ignoring gradient, decreasing loss scale from "
                   f"{s.scale:.0f} to {s.after:.0f}.")
        elif s.applied % every == 0:
            yield (f"[2026-01-01 00:00:00,000] INFO fairseq2.recipes.trainer - Train Metrics (step "
                   f"{s.applied}) - Loss: {s.loss:.3f} | Gradient Norm: {s.norm:.3f} | Learning "
                   f"Rate: 0.0001 | Loss Scale: {s.after:.0f}")


def icefall(run, every=10):
    for s in run.steps:
        if s.number % every == 0:
            yield (f"2026-01-01 00:00:00,000 INFO [train.py:1067] (0/1) Epoch 1, batch {s.number}, "
                   f"loss[loss={s.loss:.4f}, over 19153.00 frames. ], tot_loss[loss={s.loss:.4f}, "
                   f"over 375.30 frames. ], batch size: 70, lr: 1.5e-02, grad_scale: {s.after}")


def colossalai(run, every=1):
    for s in run.steps:
        if s.skipped:
            yield "[01/01/26 00:00:00] INFO colossalai - colossalai - INFO: Found overflow. Skip step"
        yield (f"  {100 * s.number // len(run.steps)}%|#  | {s.number}/{len(run.steps)} "
               "[00:40<2:40:10,  2.50it/s]")


def hugging_face(run, every=10):
    for s in run.steps:
        if s.number % every == 0:
            yield str({"loss": round(s.loss, 4), "grad_norm": s.norm, "learning_rate": 1e-4,
                       "epoch": round(s.number / 1000, 2)})


def trainer_state(run, every=10):
    history = [{"epoch": s.number / 1000, "grad_norm": s.norm, "learning_rate": 1e-4,
                "loss": s.loss, "step": s.number} for s in run.steps if s.number % every == 0]
    yield json.dumps({"best_metric": None, "epoch": 1.0, "global_step": len(run.steps),
                      "log_history": history}, indent=2)


def lightning_csv(run, every=10):
    yield "epoch,grad_norm,loss_scale,step,train_loss"
    for s in run.steps:
        if s.number % every == 0:
            yield f"0,{s.norm},{s.after},{s.number},{s.loss}"


FORMS = {
    "DeepSpeed ZeRO": deepspeed,
    "DeepSpeed fused": deepspeed_fused,
    "Megatron-LM": megatron,
    "Apex amp": apex,
    "Apex FP16_Optimizer": apex_fp16_optimizer,
    "fairseq": fairseq,
    "fairseq, JSON": fairseq_json,
    "PaddleNLP": paddlenlp,
    "MindSpore": mindspore,
    "NeMo": nemo,
    "icefall": icefall,
    "fairseq2": fairseq2,
    "Colossal-AI": colossalai,
    "Lightning's CSV": lightning_csv,
    "Hugging Face's Trainer": hugging_face,
    "trainer_state.json": trainer_state,
}
