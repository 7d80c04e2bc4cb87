# SPDX-License-Identifier: Apache-2.0
"""(b) A detector whose gradients are mostly zero or tiny, with every kind of loss scaling."""

from facts import facts, tables_of, zeros_of

TITLE = "Small gradients: a detector"
PAGE = ("all-anchors-fp32-0",)
VARIANTS = {"matched": "tinyssd", "all-anchors": "tinyssd-all-anchors"}
NO_DRIVER = ("te-delayed",)  # scales FP8 tensors one by one, so it has no loss scale
SIZES = {
    "full": {"steps": 200, "batch": 8, "seeds": 3, "record": 100,
             "sweep": (0, -6, -8, -10, -12, -14), "policies": None, "policy_steps": 60,
             "policy_record": 20, "policy_seeds": 2},
    "short": {"steps": 4, "batch": 8, "seeds": 1, "record": 2, "sweep": (-8,),
              "policies": ("nnabla",), "policy_steps": 4,
              "policy_record": 2, "policy_seeds": 1},
}


def options(size, seed, *more, kind=""):
    return ("--batch", size["batch"], "--steps", size[f"{kind}steps"], "--seed", seed,
            "--record-every", size[f"{kind}record"], *more)


def main_runs(program, size, job):
    """Runs one seed: FP32, mixed without a scale, mixed with the recommended scale."""
    variant, seed = job
    network = VARIANTS[variant]
    name = f"{variant}-fp32-{seed}"
    command = program.simulate(name, network, *options(size, seed))
    advice = program.ask("recommend", name)
    runs = [facts(program, name, command, tables=tables_of)]
    for way, scale in (("none", "none"), ("recommended", f"{advice['static_scale']:.0f}")):
        name = f"{variant}-mixed-{way}-{seed}"
        command = program.simulate(name, network, *options(
            size, seed, "--precision", "mixed", "--loss-scale", scale, "--true-error"))
        runs.append(facts(program, name, command, tables=tables_of, true_error=True))
    keys = ("static_scale", "lowest", "highest", "limited_by", "flushed_at_1",
            "flushed_at_recommended")
    return {"variant": variant, "seed": seed, "advice": {key: advice[key] for key in keys},
            "runs": runs}


def sweep_run(program, size, job):
    """Runs one scale of the sweep. A scale below 1 multiplies the loss by a smaller weight, undone
    in binary32 before the update."""
    exponent, seed = job
    name = f"all-anchors-scale-2^{exponent}-{seed}"
    command = program.simulate(name, VARIANTS["all-anchors"], *options(
        size, seed, "--precision", "mixed", "--loss-scale", f"2^{exponent}"))
    return {"log2_scale": exponent, "seed": seed,
            **facts(program, name, command, tables=tables_of)}


def policy_run(program, size, job):
    variant, policy, seed = job
    name = f"{variant}-{policy}-{seed}"
    command = program.simulate(name, VARIANTS[variant], *options(
        size, seed, "--precision", "mixed", "--loss-scale", policy, kind="policy_"))
    return {"variant": variant, "policy": policy, "seed": seed,
            **facts(program, name, command, tables=zeros_of)}


def tell(program, size):
    known = [row["policy"] for row in program.ask("policies", "--list")]
    policies = size["policies"] or [policy for policy in known if policy not in NO_DRIVER]
    seeds, policy_seeds = range(size["seeds"]), range(size["policy_seeds"])
    return {
        "main": program.each(lambda job: main_runs(program, size, job),
                             [(variant, seed) for variant in VARIANTS for seed in seeds]),
        "sweep": program.each(lambda job: sweep_run(program, size, job),
                              [(exponent, seed) for exponent in size["sweep"] for seed in seeds]),
        "policies": program.each(lambda job: policy_run(program, size, job),
                                 [(variant, policy, seed) for variant in VARIANTS
                                  for policy in policies for seed in policy_seeds]),
        "no_driver": list(NO_DRIVER),
    }
