# SPDX-License-Identifier: Apache-2.0
"""Compares the frameworks' own loss scalers with ours: ./run originals [POLICY...].

Every scaler is that of its package, installed from the package index into an environment of its
own, and runs through the same random series as `halfscope policies --amax`. Compares at every step
the loss scale, the skip and the number of attempts. Exit code 1 if there is a difference."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))  # environments.py

import cases
import environments
import series

SHOWN = 3  # differences of one policy that are printed; all are counted


class DriverFailed(Exception):
    """Raised if a driver ended early. The framework is installed, so the error is in our code."""


def say(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def number(value):
    """Returns a scale from JSON as a float. JSON has no infinity, so None stands for it."""
    return math.inf if value is None else float(value)


def ours(program, path, texts):
    """Returns our traces of one series, one for each policy text."""
    command = [program, "policies", "--amax", str(path), "--json", "-"]
    for text in texts:
        command += ["--policy", text]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"originals: {' '.join(command)}: {done.stderr.strip()}")
    return [trace for trace in json.loads(done.stdout) if trace["policy"] != "recorded"]


def theirs(driver, python, variables, job, folder):
    """Runs a driver. Returns the framework's version, and the traces of every case."""
    question, answer = folder / "job.json", folder / "result.json"
    question.write_text(json.dumps(job), encoding="utf-8")
    answer.unlink(missing_ok=True)
    done = subprocess.run([python, str(HERE / driver), str(question), str(answer)],
                          capture_output=True, text=True, env=variables)
    if done.returncode or not answer.exists():
        raise DriverFailed(f"{driver}: {done.stderr.strip()[-2000:]}")
    return json.loads(answer.read_text(encoding="utf-8"))


def same_scale(case, a, b):
    a, b = number(a), number(b)
    return a == b or (case.tolerance and math.isclose(a, b, rel_tol=case.tolerance))


def compare(case, original, replayed):
    """Compares two traces. Returns the number of steps, and a line for each difference."""
    found = []
    lengths = len(original["scale"]), len(replayed["scale"])
    if lengths[0] != lengths[1]:
        found.append(f"{lengths[0]} steps ran, ours {lengths[1]}")
    ends = [trace["error"] and trace["error"]["step"] for trace in (original, replayed)]
    if ends[0] != ends[1]:
        found.append(f"ends with {original['error']}, ours with {replayed['error']}")
    skipped = [set(original["skipped"]), set(replayed["skipped"])]
    if not original["error"] and not same_scale(case, original["final"], replayed["final"]):
        found.append(f"final scale {original['final']}, ours {replayed['final']}")
    for step in range(min(lengths)):
        if ends[0] == step:
            continue  # the step that ends training is not comparable
        pairs = {
            "scale": (number(original["scale"][step]), number(replayed["scale"][step])),
            "skipped": (step in skipped[0], step in skipped[1]),
            "attempts": (original["attempts"][step], replayed["attempts"][step]),
        }
        same = {name: a == b for name, (a, b) in pairs.items()}
        same["scale"] = same_scale(case, *pairs["scale"])
        found += [f"step {step}: {name} {pairs[name][0]}, ours {pairs[name][1]}"
                  for name in pairs if not same[name]]
    return min(lengths), found


class Row:
    """A row of the table: one policy with all its settings."""

    def __init__(self, case, version, what):
        self.policy, self.version, self.what = case.policy, version, what
        self.settings = self.series = self.steps = self.skipped = self.ended = 0
        self.differences = []


def judge(row, case, names, originals, replays):
    row.settings += 1
    for name, original, replayed in zip(names, originals, replays):
        steps, found = compare(case, original, replayed)
        row.series += 1
        row.steps += steps
        row.skipped += len(original["skipped"])
        row.ended += original["error"] is not None
        row.differences += [f"{case.text()}, series {name}, {line}" for line in found]


def table(rows):
    """Prints the rows as a Markdown table with aligned columns."""
    head = ("policy", "original", "what ran", "settings", "series", "steps", "skipped",
            "ended by error", "differences")
    lines = [head]
    for row in rows:
        counts = (row.settings, row.series, row.steps, row.skipped, row.ended, len(row.differences))
        lines.append((f"`{row.policy}`", row.version, row.what, *(f"{n:,}" for n in counts)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    rule = tuple("-" * (w - 1) + ":" if i > 2 else "-" * w for i, w in enumerate(widths))
    for line in [lines[0], rule, *lines[1:]]:
        cells = (c.rjust(w) if i > 2 else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths)))
        print(f"| {' | '.join(cells)} |")


def read_arguments():
    parser = argparse.ArgumentParser(prog="./run originals", description=__doc__.splitlines()[0])
    known = sorted({case.policy for driver in cases.DRIVERS for case in driver.cases})
    parser.add_argument("policy", nargs="*", help=f"to run (default: all): {', '.join(known)}")
    parser.add_argument("--steps", type=int, default=3000, help="of each series")
    parser.add_argument("--seeds", type=int, default=2, help="series of each kind")
    parser.add_argument("--program", default=str(ROOT / "build" / "halfscope"))
    parser.add_argument("--environments", default=str(ROOT / "build" / "originals"))
    arguments = parser.parse_args()
    if unknown := set(arguments.policy) - set(known):
        parser.error(f"no original of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return arguments


def make_series(arguments, folder):
    """Returns names, magnitudes and files of the series."""
    names, magnitudes, paths = [], [], []
    for kind in series.KINDS:
        for seed in range(arguments.seeds):
            names.append(f"{kind} {seed}")
            magnitudes.append(series.make(kind, seed, arguments.steps))
            paths.append(folder / f"{kind}-{seed}.txt")
            paths[-1].write_text("".join(f"{v!r}\n" for v in magnitudes[-1]), encoding="utf-8")
    return names, magnitudes, paths


def run_driver(driver, chosen, arguments, made, folder):
    """Runs one driver and compares its cases. Returns its rows of the table."""
    names, magnitudes, paths = made
    known = cases.ENVIRONMENTS
    python = environments.ensure(driver.environment, known, arguments.environments, say)
    variables = known[driver.environment].variables()
    say(f"{driver.file}: {', '.join(dict.fromkeys(case.policy for case in chosen))}")
    job = {
        "series": [[repr(value) for value in values] for values in magnitudes],
        "cases": [{"policy": case.original_name(), "options": case.original()} for case in chosen],
    }
    result = theirs(driver.file, python, variables, job, folder)
    replays = [ours(arguments.program, path, [case.text() for case in chosen]) for path in paths]
    rows = {}
    for index, (case, original) in enumerate(zip(chosen, result["cases"])):
        new = Row(case, result["version"], original["what"])
        row = rows.setdefault(case.original_name(), new)
        judge(row, case, names, original["traces"], [replay[index] for replay in replays])
    return list(rows.values())


def main():
    arguments = read_arguments()
    rows, absent, failed = [], [], []
    with tempfile.TemporaryDirectory(prefix="halfscope-originals-") as name:
        folder = pathlib.Path(name)
        made = make_series(arguments, folder)
        for driver in cases.DRIVERS:
            chosen = [case for case in driver.cases
                      if not arguments.policy or case.policy in arguments.policy]
            if not chosen:
                continue
            try:
                rows += run_driver(driver, chosen, arguments, made, folder)
            except environments.NotInstalled as problem:
                policies = ", ".join(dict.fromkeys(case.policy for case in chosen))
                absent.append(f"{policies}: {problem}")
            except DriverFailed as problem:
                failed.append(problem)
    table(rows)
    for line in [*absent, *(() if arguments.policy else cases.NOT_IN_THE_INDEX)]:
        print(f"not run: {line}")
    for problem in failed:
        print(f"failed: {problem}")
    for row in rows:
        for line in row.differences[:SHOWN]:
            print(f"difference: {line}")
    differences = sum(len(row.differences) for row in rows)
    print(f"{len(rows)} originals, {sum(row.steps for row in rows):,} steps, "
          f"{differences} differences")
    sys.exit(1 if differences or failed else 0)


if __name__ == "__main__":
    main()
