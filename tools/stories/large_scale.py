# SPDX-License-Identifier: Apache-2.0
"""(c) A loss scale far too large: the effect if it is fixed, and how dynamic policies lower it."""

import math

from facts import facts

TITLE = "An overlarge scale"
PAGE = ("torch-0",)
START = 24  # log2 of the initial scale of every run
# Frameworks whose scale changes by factors and whose settings have an initial scale and an
# interval.
GROWING = ("torch", "apex", "apex-legacy", "apex-hysteresis", "megatron", "colossalai", "deepspeed",
           "deepspeed-fused", "fairseq", "metaseq", "tf1", "keras2", "keras3", "tf-contrib",
           "nnabla", "nnabla-tutorial", "mxnet", "jmp", "flax", "paddle", "mindspore",
           "mindspore-cell", "fastai1", "fastai2")
SIZES = {
    "full": {"steps": 1000, "seeds": 2, "growth": 200, "record": 100, "policies": GROWING,
             "intervals": (25, 50, 100, 400)},
    "short": {"steps": 16, "seeds": 1, "growth": 4, "record": 8, "policies": ("torch", "nnabla"),
              "intervals": (2,)},
}


def options(size, seed, *more):
    return ("--steps", size["steps"], "--seed", seed, "--record-every", size["record"], *more)


def reference_run(program, size, seed):
    name = f"fp32-{seed}"
    command = program.simulate(name, "lenet", *options(size, seed))
    advice = program.ask("recommend", name)
    return {"seed": seed, "static_scale": advice["static_scale"],
            "headroom_bits": advice["headroom_bits"], "limited_by": advice["limited_by"],
            **facts(program, name, command)}


def steps_above(run, recommended, first):
    """Returns [binades above the recommended scale, rounded down; steps] from `first` on."""
    counts = {}
    ends = [step for step, _ in run["scales"][1:]] + [run["steps"]]
    for (begin, scale), end in zip(run["scales"], ends):
        above = math.floor(math.log2(scale / recommended))
        counts[above] = counts.get(above, 0) + max(0, end - max(begin, first))
    return sorted([above, steps] for above, steps in counts.items() if steps)


def policy_run(program, size, recommended, job):
    policy, growth, seed = job
    text = f"static,scale=2^{START}" if policy == "static" else (
        f"{policy},initial_scale=2^{START},growth_interval={growth}")
    name = f"{policy}-{seed}" if growth == size["growth"] else f"{policy}-every-{growth}-{seed}"
    command = program.simulate(name, "lenet", *options(
        size, seed, "--precision", "mixed", "--loss-scale", text))
    found = facts(program, name, command)
    return {"policy": policy, "growth_interval": growth, "seed": seed, **found,
            "second_half": steps_above(found, recommended[seed], size["steps"] // 2)}


def tell(program, size):
    seeds = range(size["seeds"])
    references = program.each(lambda seed: reference_run(program, size, seed), seeds)
    recommended = {run["seed"]: run["static_scale"] for run in references}
    ways = [(policy, size["growth"]) for policy in ("static", *size["policies"])]
    ways += [("torch", growth) for growth in size["intervals"]]
    jobs = [(*way, seed) for way in ways for seed in seeds]
    return {"start_log2": START, "references": references,
            "runs": program.each(lambda job: policy_run(program, size, recommended, job), jobs)}
