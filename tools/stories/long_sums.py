# SPDX-License-Identifier: Apache-2.0
"""(d) A long sum stalls in binary16, but not (yet) in binary32."""

import struct

from facts import facts
from program import Operation

TITLE = "Long sums"
PAGE = ("batch-32-fp16-0",)
TERMS = {"1": 1.0, "0.1": 0.1, "0.001": 0.001}
FORMATS = {"fp16": ("f16_add", ">e"), "fp32": ("f32_add", ">f")}
SIZES = {
    "full": {"terms": 8192, "seeds": 3, "steps": 200, "record": 40, "batches": (32, 512)},
    "short": {"terms": 2300, "seeds": 1, "steps": 4, "record": 2, "batches": (32,)},
}


def plain_sum(program, job, terms):
    """Adds the same term, rounded to the format, many times. Returns the sum at powers of two."""
    text, name = job
    operation, layout = FORMATS[name]
    term = struct.pack(layout, TERMS[text]).hex().upper()
    total, stalled_after, track = "0" * len(term), None, []
    with Operation(program, operation) as add:
        for n in range(1, terms + 1):
            last, total = total, add(total, term)
            if total == last and stalled_after is None:
                stalled_after = n - 1
            if n & (n - 1) == 0:
                track.append([n, struct.unpack(layout, bytes.fromhex(total))[0]])
    return {"term": text, "format": name, "command": f"halfscope emulate {operation}",
            "terms": terms, "stalled_after": stalled_after, "track": track}


def network_run(program, size, job):
    batch, accumulate, seed = job
    name = f"batch-{batch}-{accumulate}-{seed}"
    command = program.simulate(name, "lenet", "--precision", "mixed", "--accumulate", accumulate,
                               "--loss-scale", "2^10", "--batch", batch, "--steps", size["steps"],
                               "--seed", seed, "--record-every", size["record"], "--true-error")
    return {"batch": batch, "accumulate": accumulate, "seed": seed,
            **facts(program, name, command, true_error=True)}


def tell(program, size):
    jobs = [(batch, accumulate, seed) for batch in size["batches"]
            for accumulate in ("fp32", "fp16") for seed in range(size["seeds"])]
    return {
        "sums": program.each(lambda job: plain_sum(program, job, size["terms"]),
                             [(term, name) for term in TERMS for name in FORMATS]),
        "runs": program.each(lambda job: network_run(program, size, job), jobs),
    }
