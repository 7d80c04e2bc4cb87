# SPDX-License-Identifier: Apache-2.0
"""(e) Distinguishes infinities caused by the loss scale from infinities and NaN of the model."""

from facts import facts

TITLE = "NaN in the model, or overflow by scale"
PAGE = ("both-0", "--step", "0:30")
PAGE_TITLE = f"{TITLE}: the first 30 steps of the run"
# A scale that is too large; a learning rate at which activations exceed binary16; one at which the
# model diverges in bfloat16, which has the range of binary32; and the first two together.
RUNS = {
    "scale": ("mixed", "--loss-scale", "torch,init_scale=2^24"),
    "range": ("mixed", "--loss-scale", "torch,init_scale=2^6", "--lr", 1000),
    "model": ("mixed-bf16", "--loss-scale", "torch,init_scale=2^12", "--lr", 1e30),
    "both": ("mixed", "--loss-scale", "torch,init_scale=2^24", "--lr", 1000),
}
SIZES = {"full": {"steps": 120, "seeds": 3, "record": 1},
         "short": {"steps": 12, "seeds": 1, "record": 1}}
EVENT = ("step", "last_step", "tensor", "cause", "why", "loss_scale", "safe_scale")


def run(program, size, job):
    kind, seed = job
    name = f"{kind}-{seed}"
    command = program.simulate(name, "lenet", "--precision", *RUNS[kind], "--steps",
                               size["steps"], "--seed", seed, "--record-every", size["record"])
    advice = program.ask("recommend", name)
    replay = program.ask("policies", name)
    recorded = next(trace for trace in replay if trace["policy"] == "recorded")
    events = [{key: event[key] for key in EVENT if key in event}
              for event in advice["overflow_events"] if event["kind"] == "recorded"]
    return {
        "kind": kind, "seed": seed, **facts(program, name, command),
        "static_scale": advice["static_scale"], "nan_in_model": advice.get("nan_in_model"),
        "causes": {cause: sum(event["cause"] == cause for event in events)
                   for cause in sorted({event["cause"] for event in events})},
        "events": events[:6],
        "recorded_skipped": len(recorded["skipped"]),
        "skipped_in_model": recorded["skipped_in_model"],
    }


def tell(program, size):
    jobs = [(kind, seed) for kind in RUNS for seed in range(size["seeds"])]
    return {"runs": program.each(lambda job: run(program, size, job), jobs)}
