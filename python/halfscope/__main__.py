# SPDX-License-Identifier: Apache-2.0
"""`halfscope` and `python -m halfscope`: runs the program that is installed with the package. `run` and
`watch` are commands of the package itself."""

import importlib
import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "bin" / "halfscope"


def main():
    if sys.argv[1:] and sys.argv[1] in ("run", "watch"):
        sys.exit(importlib.import_module(f"halfscope.{sys.argv[1]}").main(sys.argv[2:]))
    try:
        os.execv(PROGRAM, ["halfscope", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"halfscope: {PROGRAM}: cannot be run ({error.strerror}); install the package again: "
                 "pip install --force-reinstall .")


if __name__ == "__main__":
    main()
