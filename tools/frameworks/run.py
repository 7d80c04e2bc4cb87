# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of frameworks, each on its current release: ./run frameworks [NAME...].

Every framework is installed from the package index into an environment of its own, once; --new
installs it again. Its tests are those of `./run test` that need it: the recorder, emulate() and
distributed checkpoints on PyTorch, the recorder's callbacks, and the lines to paste, for which a
warning is a failure; for Ray and Spark (which needs Java) the examples of counting. Exit code 1 if
a test fails, 3 if a framework could not be installed."""

import argparse
import dataclasses
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import count_tests
import environments
from environments import Environment

LINES = ("test_snippets.py", "test_policy_lines.py", "test_recording_lines.py")
RECORDER = ("test_recorder*.py", "test_record.py", "test_run.py", "test_run_sharded.py",
            "test_emulate_torch*.py", "test_optimizer.py")
ENGINES = ("test_count_engines.py",)
TESTING = ("pytest", "numpy")


@dataclasses.dataclass(frozen=True)
class Framework:
    """A framework and its tests. `modules` must be importable in its environment. `gigabytes` of
    disk space must be free to install it."""

    environment: Environment
    modules: tuple
    tests: tuple = LINES
    gigabytes: int = 3


def newest_python():
    """Returns the newest Python's version. New releases of some frameworks need a newer Python than
    Debian 12's, for which our extension module is built; they are tested without it."""
    for version in ("3.13", "3.12"):
        try:
            environments.find_python(version)
            return version
        except environments.NotInstalled:
            continue
    return "3.11"


def on_torch(name, packages, modules, tests=LINES, **more):
    """Returns a framework that uses the environment of PyTorch, which has several gigabytes."""
    return Framework(Environment(name, "3.11", packages, stands_on="torch", **more), modules, tests)


# Current releases. Versions are fixed only for frameworks that are no longer developed.
_FASTAI = ("matplotlib", "pandas", "pillow", "scipy", "pyyaml", "requests", "packaging",
           "fastdownload", "fastcore", "fastprogress", "fasttransform", "plum-dispatch",
           "scikit-learn", "cloudpickle")
FRAMEWORKS = (
    Framework(Environment("torch", "3.11", (*TESTING, "torch", "safetensors", "scikit-learn")),
              ("torch",), (*RECORDER, *LINES, "test_dcp.py"), 12),
    on_torch("lightning", ("lightning",), ("lightning",),
             (*LINES, "test_recorder_lightning.py", "test_run_lightning.py")),
    on_torch("transformers", ("transformers", "accelerate"), ("accelerate", "transformers"),
             (*LINES, "test_recorder_transformers.py", "test_run_transformers.py")),
    on_torch("fastai", _FASTAI, ("fastai",), alone=("fastai",)),
    on_torch("deepspeed", ("deepspeed",), ("deepspeed",), first=("setuptools", "wheel"),
             flags=("--no-build-isolation",), settings=(("DS_BUILD_OPS", "0"),)),
    on_torch("keras", ("keras",), ("keras",), (*LINES, "test_keras.py"),
             settings=(("KERAS_BACKEND", "torch"),)),
    on_torch("colossalai", ("psutil", "rich", "packaging"), ("colossalai",), alone=("colossalai",)),
    Framework(Environment("tensorflow", "3.11", (*TESTING, "tensorflow-cpu", "tf_keras")),
              ("tensorflow", "tf_keras"), (*LINES, "test_keras.py")),
    Framework(Environment("tensorflow1", "3.7", ("pytest", "tensorflow==1.15.5", "protobuf<3.21")),
              ("tensorflow",)),
    Framework(Environment("jax", newest_python(), (*TESTING, "jax", "flax", "jmp")),
              ("flax", "jmp")),
    # The environment "jax" may have a newer Python, without our extension module.
    Framework(Environment("jax-recorded", "3.11", (*TESTING, "jax", "optax", "flax", "keras"),
                          settings=(("KERAS_BACKEND", "jax"),)),
              ("jax", "optax", "flax", "keras"), ("test_jax*.py", "test_keras*.py"), 2),
    Framework(Environment("megatron", newest_python(), TESTING, ("megatron-core",)),
              ("megatron",)),
    Framework(Environment("paddle", "3.11", (*TESTING, "paddlepaddle")), ("paddle",)),
    Framework(Environment("mindspore", "3.11", (*TESTING, "mindspore")), ("mindspore",)),
    Framework(Environment("ray", "3.11", (*TESTING, "ray")), ("ray",), ENGINES),
    Framework(Environment("spark", "3.11", (*TESTING, "pyspark")), ("pyspark",), ENGINES),
    Framework(Environment("nnabla", "3.10", (*TESTING, "nnabla")), ("nnabla",)),
    Framework(Environment("mxnet", "3.8", ("pytest", "numpy==1.23.5", "mxnet")), ("mxnet",)),
    Framework(Environment("fairseq", "3.8", ("pytest", "numpy==1.23.5"), ("fairseq",)),
              ("fairseq",)),
)
TABLE = {framework.environment.name: framework.environment for framework in FRAMEWORKS}


def say(text):
    print(f"== {text}", flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(prog="./run frameworks", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help=f"to run (default: all): {', '.join(TABLE)}")
    parser.add_argument("--new", action="store_true", help="install the newest releases again")
    parser.add_argument("--environments", default=str(ROOT / "build" / "frameworks"))
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.name) - set(TABLE)):
        parser.error(f"unknown framework {', '.join(unknown)}; use some of: {', '.join(TABLE)}")
    return arguments


def prepare(framework, folder, new):
    """Returns the Python of a framework's environment; installs it first if it is missing."""
    name = framework.environment.name
    if new:
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 1e9
    if not (folder / name / "installed").exists() and free < framework.gigabytes:
        raise environments.NotInstalled(
            f"{folder} has {free:.0f} GB free, its installation needs {framework.gigabytes}")
    return environments.ensure(name, TABLE, folder, say)


def versions(framework, python):
    """Returns the installed versions: 'pytest 9.2.0, numpy 2.4.6, torch 2.15.0'."""
    environment = framework.environment
    done = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], capture_output=True,
                          text=True, env=environment.variables())
    there = dict(line.split("==", 1) for line in done.stdout.splitlines() if "==" in line)
    there = {name.lower().replace("_", "-"): version for name, version in there.items()}
    names = [package.partition("==")[0].partition("<")[0]
             for package in (*environment.packages, *environment.alone)]
    return ", ".join(f"{name} {there.get(name.replace('_', '-'), '?')}" for name in names)


def run_tests(framework, python, folder):
    """Runs the tests of a framework. Returns (passed, failed, skipped)."""
    environment = framework.environment
    variables = {**environment.variables(), "HALFSCOPE_FRAMEWORKS": ",".join(framework.modules),
                 "HALFSCOPE_PROGRAM": str(ROOT / "build" / "halfscope"),
                 "HALFSCOPE_BUILD_DIR": str(ROOT / "build"), "PYTHONDONTWRITEBYTECODE": "1"}
    if environment.python == "3.11":  # the extension module was built for this version
        variables["PYTHONPATH"] = str(ROOT / "build" / "python")
    tests = [str(path) for pattern in framework.tests
             for path in sorted((ROOT / "tests" / "python").glob(pattern))]
    results = folder / f"{environment.name}.xml"
    results.unlink(missing_ok=True)
    subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", "--quiet", "--tb=short",
                    "--no-header", "--disable-warnings", "-rf", f"--junitxml={results}", *tests],
                   stdin=subprocess.DEVNULL, env=variables, cwd=ROOT)
    return count_tests.count(results) if results.exists() else (0, 1, 0)


def main():
    arguments = read_arguments()
    folder = pathlib.Path(arguments.environments)
    lines, failed, absent = [], 0, 0
    for framework in FRAMEWORKS:
        environment = framework.environment
        if arguments.name and environment.name not in arguments.name:
            continue
        try:
            python = prepare(framework, folder, arguments.new)
        except environments.NotInstalled as problem:
            lines.append(f"{environment.name}: not installed: {problem}")
            absent += 1
            continue
        say(f"{environment.name}: {versions(framework, python)}")
        counts = run_tests(framework, python, folder)
        failed += counts[1] or not counts[0]
        lines.append("{}: {} passed, {} failed, {} skipped".format(environment.name, *counts))
    print("\n".join(lines))
    sys.exit(1 if failed else 3 if absent else 0)


if __name__ == "__main__":
    main()
