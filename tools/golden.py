# SPDX-License-Identifier: Apache-2.0
"""The golden record: all outputs of the program for about 210 logs, to detect changes of outputs.

golden.py record   writes golden/hashes.txt, and the outputs themselves to build/golden/recorded
golden.py check    makes the outputs again and lists those that differ
"""

import argparse
import base64
import gzip
import hashlib
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
HASHES = HERE / "golden/hashes.txt"
OUTPUTS = ROOT / "build/golden"
PROGRAM = os.environ.get("HALFSCOPE_PROGRAM", str(ROOT / "build/halfscope"))

ONE_LOG = {
    "analyze.txt": ["analyze", "--what-if", "--formats"],
    "analyze.json": ["analyze", "--what-if", "--formats", "--json", "-"],
    "analyze-bfloat16.json": ["analyze", "--format", "bfloat16", "--json", "-"],
    "recommend.txt": ["recommend"],
    "recommend.json": ["recommend", "--json", "-"],
    "policies.txt": ["policies", "--assume-constant-between"],
    "policies.json": ["policies", "--assume-constant-between", "--json", "-"],
    "csv": ["analyze", "--csv", "-"],
}
SIMULATED = {
    "mlp-fp16": ["mlp", "--precision", "fp16", "--loss-scale", "1024"],
    "mlp-bf16": ["mlp", "--precision", "bf16", "--optimizer", "adam"],
    "lenet-fp32": ["lenet", "--optimizer", "momentum", "--clip", "0.1"],
    "lenet-mixed": ["lenet", "--precision", "mixed", "--loss-scale", "torch", "--true-error"],
    "charlstm-fp16": ["charlstm", "--precision", "fp16", "--accumulate", "fp16"],
    "tinyssd-mixed": ["tinyssd", "--precision", "mixed", "--loss-scale", "deepspeed"],
    "resnet20-mixed-bf16": ["resnet20", "--precision", "mixed-bf16", "--steps", "1"],
}
OTHER = [[command, "--help"] for command in ("analyze", "recommend", "report", "compare", "count",
                                             "merge", "policies", "simulate", "emulate", "info")]
OTHER += [["recommend", "digits", "--framework", framework] for framework in (
    "lightning", "accelerate", "transformers", "tensorflow", "keras", "fastai", "deepspeed", "apex",
    "mxnet", "nnabla")]
OTHER += [
    ["--help"], ["policies", "--list"], ["simulate", "--list"], ["emulate", "--list"],
    ["recommend", "digits", "--headroom", "3", "--target-underflow", "1%"],
    ["recommend", "gradient.npy", "--role", "*=weight_grad", "--recorded-scale", "2^10"],
    ["recommend", "bfloat16", "--format", "fp16"],
    ["analyze", "clean", "gaps", "--step", "2:11", "--tensor", "weight_grad/*"],
    ["analyze", "digits", "--loss-scale", "2^30", "--subnormals", "flush", "--format", "e4m3"],
    ["analyze", "digits", "--junit", "-", "--fail-if", "nan > 0", "--fail-if",
     "flushed_to_zero > 0.1% for weight_grad"],
    ["compare", "clean", "clipped", "--junit", "-", "--fail-if", "flushed_to_zero > 0"],
    ["policies", "digits", "--framework", "deepspeed,hysteresis=3", "--policy",
     "static,scale=2^40", "--json", "-"],
    ["analyze", "nothing-here"], ["analyse"], ["recommend", "digits", "--headroom", "-1"],
]
PAIRS = [("simulated/lenet-fp32", "simulated/lenet-mixed"),
         ("clean", "clipped"), ("clean", "half-precision"), ("half-precision", "scaled"),
         ("clean", "bfloat16"), ("nan-lasting", "infinity-once"), ("gaps", "clean"),
         ("updates", "clean"), ("folder-of-steps", "one.safetensors"), ("digits", "digits")]
PAGES = {"clean", "gaps", "large", "bfloat16", "half-precision", "nan-lasting", "infinity-once",
         "infinity-in-activation", "scaled", "scaled-far-too-much", "scaled-by-torch", "clipped",
         "ranks", "updates", "scalars-alone", "digits", "state.pt", "folder-of-steps",
         "simulated/lenet-mixed", "simulated/mlp-bf16", "simulated/charlstm-fp16",
         "weights.safetensors", "console/megatron.txt", "console/deepspeed-zero.txt",
         "tensorboard/tensorflow-2.tfevents", "wandb/history.jsonl", "seed-te_statistics-rank",
         "seed-te_statistics-fp8"}


class Page(html.parser.HTMLParser):
    """Extracts a page's text and embedded data, without markup and libraries."""

    def __init__(self):
        super().__init__()
        self.lines, self._keep, self._packed = [], True, None

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "style"):
            self._keep = dict(attributes).get("type") == "application/json"
            self._packed = "" if self._keep and "data-encoding" in dict(attributes) else None

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            if self._packed is not None:
                self.lines.append(gzip.decompress(base64.b64decode(self._packed)).decode())
            self._keep, self._packed = True, None

    def handle_data(self, data):
        if self._packed is not None:
            self._packed += data
        elif self._keep:
            self.lines += [line.strip() for line in data.splitlines() if line.strip()]


def text_of_page(path):
    page = Page()
    page.feed(path.read_text())
    return "\n".join(page.lines) + "\n"


def run(arguments, folder):
    """Returns a command's output, messages and exit code as text, without the program's version."""
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, text=True,
                          capture_output=True, encoding="utf-8", errors="backslashreplace")
    text = f"{done.stdout}\n-- messages\n{done.stderr}\n-- exit code {done.returncode}\n"
    return re.sub(r"(halfscope[ \"_version:]+)\d+\.\d+[-.+\w]*", r"\1VERSION", text)


def of_one_log(log, folder):
    for name, (command, *options) in ONE_LOG.items():
        yield f"{log}: {name}", run([command, str(log), *options], folder)
    if str(log) in PAGES:
        yield from page(f"{log}: report", ["report", str(log)], folder)


def page(name, arguments, folder):
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "page.html"
        yield f"{name}.txt", run([*arguments, "--out", str(out)], folder).replace(place, "")
        if out.exists():
            yield f"{name}.page", text_of_page(out)


def of_simulation(name, arguments, folder):
    out = f"simulated/{name}"
    steps = [] if "--steps" in arguments else ["--steps", "12"]
    told = run(["simulate", *arguments, "--batch", "4", "--record-every", "3", *steps, "--out", out],
               folder)
    yield f"{out}: simulate.txt", told
    yield from of_one_log(out, folder)


def of_command(arguments, folder):
    yield f"{' '.join(arguments)}: txt", run(arguments, folder)


def of_two_logs(pair, folder):
    name = " ".join(pair)
    yield f"{name}: compare.txt", run(["compare", *pair], folder)
    yield f"{name}: compare.json", run(["compare", *pair, "--json", "-"], folder)
    yield from page(f"{name}: compare", ["compare", *pair], folder)


def outputs():
    """Runs all commands. Returns {name: output}."""
    sys.path[:0] = [str(HERE / "golden"), str(ROOT / "build/python")]
    import logs
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(place) / "logs"
        folder.mkdir()
        logs.write_all(folder)

        def made(make, tasks):
            return [pool.submit(lambda task: list(make(*task, folder)), task) for task in tasks]

        found = made(of_simulation, SIMULATED.items())
        found += made(of_one_log, ((log,) for log in logs.single_logs(folder)))
        found += made(of_command, ((arguments,) for arguments in OTHER))
        wait(found)  # some pairs need the simulated runs
        found += made(of_two_logs, ((pair,) for pair in PAIRS))
        return dict(output for task in found for output in task.result())


def keep(folder, texts):
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in texts.items():
        path = folder / name.replace("/", "_").replace(": ", "/").replace(" ", "_")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record(texts):
    HASHES.write_text("".join(f"{hash_of(text)} {name}\n" for name, text in sorted(texts.items())))
    keep(OUTPUTS / "recorded", texts)
    print(f"golden: {len(texts)} outputs recorded")


def check(texts):
    recorded = {name: code for code, name in
                (line.split(" ", 1) for line in HASHES.read_text().splitlines())}
    found = {name: hash_of(text) for name, text in texts.items()}
    keep(OUTPUTS / "found", texts)
    differing = sorted(name for name in recorded.keys() | found.keys()
                       if recorded.get(name) != found.get(name))
    for name in differing:
        print(f"golden: {name} differs")
    print(f"golden: {len(differing)} of {len(recorded)} outputs differ")
    if differing:
        print(f"golden: compare them: diff -r {OUTPUTS / 'recorded'} {OUTPUTS / 'found'}")
    return 1 if differing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["record", "check"])
    task = parser.parse_args().task
    return check(outputs()) if task == "check" else record(outputs())


if __name__ == "__main__":
    sys.exit(main())
