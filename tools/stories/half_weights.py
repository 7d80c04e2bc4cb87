# SPDX-License-Identifier: Apache-2.0
"""(f) Digits with 16-bit weights, with and without a master copy, at falling learning rates."""

from facts import facts, tables_of

TITLE = "Weights of 16 bits"
PAGE = ("sgd-0.001-fp16-0",)
PRECISIONS = ("fp32", "mixed", "bf16", "fp16")
FORMATS = ("binary16", "bfloat16")
COMPARED = 2500  # longest run, in steps, whose gradients are compared with binary64
# {learning rate: (steps, steps between histograms)}. Smaller rates need more steps.
SIZES = {
    "full": {"seeds": 5, "sgd": {0.1: (1000, 50), 0.01: (2500, 125), 0.001: (20000, 600)},
             "adam": {0.001: (500, 25)}},
    "short": {"seeds": 1, "sgd": {0.001: (6, 3)}, "adam": {0.001: (4, 2)}},
}


def run(program, size, job):
    optimizer, rate, precision, seed = job
    steps, record = size[optimizer][rate]
    name = f"{optimizer}-{rate}-{precision}-{seed}"
    scale = "2^10" if precision in ("mixed", "fp16") else "none"
    more = ("--true-error",) if steps <= COMPARED else ()
    command = program.simulate(
        name, "lenet", "--precision", precision, "--loss-scale", scale, "--optimizer", optimizer,
        "--lr", rate, "--steps", steps, "--seed", seed, "--record-every", record, *more)
    return {"optimizer": optimizer, "rate": rate, "precision": precision, "seed": seed,
            **facts(program, name, command, tables=tables_of, weights=FORMATS,
                    true_error=bool(more))}


def tell(program, size):
    jobs = [(optimizer, rate, precision, seed)
            for optimizer in ("sgd", "adam") for rate in size[optimizer] for precision in PRECISIONS
            for seed in range(size["seeds"])]
    return {"runs": program.each(lambda job: run(program, size, job), jobs)}
