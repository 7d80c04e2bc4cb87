# SPDX-License-Identifier: Apache-2.0
"""(g) The share of gradients that can be lost before the result of training changes."""

import math

from facts import GRADIENTS, facts, scalars_of, short, true_error_of
from rounding import predicted, seen

TITLE = "The loss of gradients that does harm"
ADAM = ("--optimizer", "adam")
# {setting: (network, options, steps, seeds, exponents of the loss scales)}
SIZES = {
    "full": {
        "mlp": ("mlp", (), 1000, 8, (10, 0, -8, -11, -12, -13, -14, -15, -16, -18)),
        "mlp-adam": ("mlp", ADAM, 1000, 8, (10, 0, -8, -11, -12, -13, -14, -15, -16, -18)),
        "lenet": ("lenet", (), 1000, 8, (10, 0, -8, -11, -12, -13, -14, -15, -16, -18)),
        "lenet-adam": ("lenet", ADAM, 600, 8, (10, 0, -8, -11, -12, -13, -14, -15, -16, -18)),
        "tinyssd": ("tinyssd", ("--batch", 8), 120, 4, (10, -8, -12, -14, -15, -16, -18)),
        "charlstm": ("charlstm", (), 100, 4, (10, -4, -6, -7, -8, -9, -10, -12)),
    },
    "short": {"lenet": ("lenet", (), 6, 2, (10, -16)), "mlp-adam": ("mlp", ADAM, 6, 2, (10, -16))},
}
TABLES = 20   # recorded steps of an FP32 run
COMPARED = 3  # steps of a mixed run that are compared with binary64
# {degrees of freedom: bound within which 99 % of Student's t lies}
T99 = {1: 63.657, 2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499}
# Measures that may predict harm. Larger is worse, except for ratios in dB.
MEASURES = ("flushed", "l1", "l2", *(f"{role}_l2" for role in GRADIENTS), "worst_l2", "snr_db",
            "worst_snr_db")


def options(size, setting, seed, tables):
    network, more, steps, _, _ = size[setting]
    return (network, *more, "--steps", steps, "--seed", seed, "--record-every",
            max(1, steps // tables))


def end_of(folder):
    found = scalars_of(folder)
    return {key: found[key] for key in ("end_loss", "accuracy", "nonfinite_losses")} | {
        "skipped": len(found["skipped"])}


def family(program, size, job):
    """Runs one setting and seed: FP32, mixed at each static scale, mixed bfloat16."""
    setting, seed = job
    exact = f"{setting}-fp32-{seed}"
    command = program.simulate(exact, *options(size, setting, seed, TABLES))
    tensors = program.ask("analyze", exact)["tensors"]
    runs = {"fp32": {"command": command, "facts": facts(program, exact, command),
                     **end_of(program.folder / exact)}}
    for exponent in (*size[setting][4], None):
        way = "bfloat16" if exponent is None else f"2^{exponent}"
        name = f"{setting}-{way}-{seed}"
        ways = (("--precision", "mixed-bf16") if exponent is None else
                ("--precision", "mixed", "--loss-scale", way))
        form = "bfloat16" if exponent is None else "binary16"
        command = program.simulate(name, *options(size, setting, seed, COMPARED), *ways,
                                   "--true-error")
        runs[way] = {"command": command, **end_of(program.folder / name),
                     "predicted": predicted(tensors, form, exponent or 0),
                     "seen": seen(true_error_of(program.folder / name))}
    return runs


def mean(numbers):
    return math.fsum(numbers) / len(numbers)


def deviation(numbers):
    """Returns the sample standard deviation (with n - 1)."""
    middle = mean(numbers)
    return math.sqrt(math.fsum((x - middle) ** 2 for x in numbers) / (len(numbers) - 1))


def difference(losses, exact):
    """Returns the verdict on a condition, from its final losses and those of FP32 with the same
    seeds.

    log_ratio: the mean of log(loss / FP32's loss). half_width: half of its 99 % interval, by
    Student's t. spread: the standard deviation over the seeds of the log of FP32's loss."""
    spread = deviation([math.log(loss) for loss in exact])
    if None in losses:
        return {"verdict": "differs", "spread": short(spread)}
    logs = [math.log(loss / beside) for loss, beside in zip(losses, exact)]
    middle = mean(logs)
    half = T99[len(logs) - 1] * deviation(logs) / math.sqrt(len(logs))
    verdict = {(False, False): "same", (True, False): "small", (False, True): "unclear",
               (True, True): "differs"}[abs(middle) > half, abs(middle) > spread]
    return {"verdict": verdict, "log_ratio": short(middle), "half_width": short(half),
            "spread": short(spread)}


def known_mean(numbers):
    known = [number for number in numbers if number is not None]
    return short(mean(known)) if known else None


def over_seeds(parts):
    """Combines the results of all seeds: adds counts, averages all else."""
    return {key: sum(part[key] for part in parts) if isinstance(parts[0][key], int)
            else known_mean([part[key] for part in parts]) for key in parts[0]}


def condition(setting, way, runs, exact):
    """Returns one setting at one scale, over all seeds, with the first seed's command line."""
    lists = {key: [run[key] for run in runs] for key in ("end_loss", "accuracy", "skipped")}
    broken = [None if run["nonfinite_losses"] else run["end_loss"] for run in runs]
    found = {"setting": setting, "way": way, "seeds": len(runs), "command": runs[0]["command"],
             **lists}
    if way == "fp32":
        return found
    return found | difference(broken, [run["end_loss"] for run in exact]) | {
        "predicted": over_seeds([run["predicted"] for run in runs]),
        "seen": {role: over_seeds([run["seen"][role] for run in runs]) for role in GRADIENTS}}


def limits(conditions):
    """Returns, for each measure, the least value with harm and the largest value without.

    with_harm: the condition with the smallest loss of gradients (largest ratio in dB) whose verdict
    is "differs". without: the condition with the largest loss whose verdict is "same" or "small".
    between: number of conditions between these two, for which the measure does not decide."""
    found = []
    for measure in MEASURES:
        sign = -1 if measure.endswith("_db") else 1
        values = {harm: [(sign * row["predicted"][measure], row["setting"], row["way"])
                         for row in conditions if row.get("verdict") in verdicts]
                  for harm, verdicts in ((True, ("differs",)), (False, ("same", "small")))}
        least = min(values[True], default=None)
        most = max(values[False], default=None)
        between = sum(least[0] <= value[0] <= most[0] for part in values.values()
                      for value in part) if least and most else 0
        found.append({"measure": measure, "between": between, **{
            key: end and [sign * end[0], end[1], end[2]]
            for key, end in (("with_harm", least), ("without", most))}})
    return found


def tell(program, size):
    jobs = [(setting, seed) for setting in size for seed in range(size[setting][3])]
    runs = dict(zip(jobs, program.each(lambda job: family(program, size, job), jobs)))
    conditions = []
    for setting in size:
        here = [runs[setting, seed] for seed in range(size[setting][3])]
        exact = [found["fp32"] for found in here]
        conditions += [condition(setting, way, [found[way] for found in here], exact)
                       for way in here[0]]
    return {"limits": limits(conditions), "conditions": conditions,
            "first_seeds": [{"setting": setting, **runs[setting, 0]["fp32"]["facts"]}
                            for setting in size]}
