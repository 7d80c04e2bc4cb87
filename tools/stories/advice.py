# SPDX-License-Identifier: Apache-2.0
"""(h) Following the recommended loss scale: the prediction from an FP32 run, and the result."""

import math

from facts import facts
from rounding import predicted, seen

TITLE = "The advice, followed"
# {network: batch size}
NETWORKS = {"lenet": 32, "tinyssd": 8, "tinyssd-all-anchors": 8}
ABOVE = 2  # binades: four times the recommended scale, one binade above its headroom
SIZES = {"full": {"seeds": 3, "networks": {"lenet": (400, 50), "tinyssd": (100, 20),
                                           "tinyssd-all-anchors": (100, 20)}},
         "short": {"seeds": 1, "networks": {"lenet": (6, 2)}}}


def options(size, network, seed):
    steps, record = size["networks"][network]
    return (network, "--batch", NETWORKS[network], "--steps", steps, "--seed", seed,
            "--record-every", record)


def promise(advice, tensors, exponent):
    """Returns the prediction for a static scale: flushed values, overflowing steps."""
    at = next((scale for scale in advice["scales"] if scale["log2_scale"] == exponent), None)
    found = predicted(tensors, "binary16", exponent)
    return {"flushed": found["flushed"], "l2": found["l2"],
            "overflow_steps": at and at["overflow_steps"]}


def family(program, size, job):
    """Runs one network and seed: FP32, then mixed with and without the advised scale."""
    network, seed = job
    exact = f"{network}-fp32-{seed}"
    command = program.simulate(exact, *options(size, network, seed))
    advice = program.ask("recommend", exact)
    tensors = program.ask("analyze", exact)["tensors"]
    best = round(math.log2(advice["static_scale"]))
    dynamic = advice["dynamic"]
    ways = {"no scale": ("none", 0), "advised": (f"2^{best}", best),
            "four times": (f"2^{best + ABOVE}", best + ABOVE),
            "dynamic": (f"{dynamic['policy']},init_scale={dynamic['init']:g},"
                        f"growth_interval={dynamic['growth_interval']}", None)}
    runs = [{"way": "fp32", **facts(program, exact, command)}]
    for way, (scale, exponent) in ways.items():
        name = f"{network}-{way.replace(' ', '-')}-{seed}"
        command = program.simulate(name, *options(size, network, seed), "--precision", "mixed",
                                   "--loss-scale", scale, "--true-error")
        run = {"way": way, **facts(program, name, command, true_error=True)}
        run["seen"] = seen(run.pop("true_error"))
        if exponent is not None:
            run["promised"] = promise(advice, tensors, exponent)
        runs.append(run)
    keys = ("static_scale", "headroom_bits", "flushed_at_1", "flushed_at_recommended", "dynamic")
    return {"network": network, "seed": seed, "advice": {key: advice[key] for key in keys},
            "runs": runs}


def tell(program, size):
    jobs = [(network, seed) for network in size["networks"] for seed in range(size["seeds"])]
    return {"advised": program.each(lambda job: family(program, size, job), jobs)}
