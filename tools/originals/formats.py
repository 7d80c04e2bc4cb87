# SPDX-License-Identifier: Apache-2.0
"""Compares released quantisers with ours: ./run originals formats.

Installs them from the package index into an environment of its own; drive_formats.py compares."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))  # environments.py

import environments

FORMATS = environments.Environment(
    "formats", "3.11",
    ("numpy", "torch==2.15.0", "ml_dtypes==0.6.0", "gfloat==0.5.2", "array-api-compat",
     "en-dtypes==0.0.4", "compressed-tensors==0.20.0"),
    alone=("torchao==0.18.0", "transformer-engine==2.20.2"))


def main():
    def say(text):
        print(f"== {text}", file=sys.stderr, flush=True)

    try:
        python = environments.ensure("formats", {"formats": FORMATS}, ROOT / "build/originals", say)
    except environments.NotInstalled as problem:
        sys.exit(f"originals: formats: {problem}")
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/halfscope")
    sys.exit(subprocess.run([python, str(HERE / "drive_formats.py"), program],
                            env=FORMATS.variables()).returncode)


if __name__ == "__main__":
    main()
