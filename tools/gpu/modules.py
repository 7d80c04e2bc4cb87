# SPDX-License-Identifier: Apache-2.0
"""Modules that the programs of this folder need: modules.py [cpu|cuda] prints a line for each, with
its version or with the reason why it is missing."""

import argparse
import importlib
import sys

OLDEST = (2, 3)  # PyTorch: torch.amp.GradScaler, FP8


def _without(module, device):
    """The reason why PyTorch cannot be used; None if it can."""
    if tuple(map(int, module.__version__.split(".")[:2])) < OLDEST:
        return f"{module.__version__} is older than {'.'.join(map(str, OLDEST))}"
    if device == "cuda" and not module.cuda.is_available():
        return f"{module.__version__} finds no GPU"
    return None


def found(name, device):
    """Returns (module, None), or (None, reason)."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # also OSError, of a library that cannot be loaded
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"
    reason = _without(module, device) if name == "torch" else None
    return (None, reason) if reason else (module, None)


def arguments(text, *outputs, needs=("torch",)):
    """Returns the command line's values (device, and one for each of `outputs`) and the modules. Ends
    with exit code 3 and one line if a module is missing."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu: what there is of it on a CPU, to try the program")
    for output in outputs:
        parser.add_argument(output)
    given = parser.parse_args()
    modules = []
    for name in needs:
        module, reason = found(name, given.device)
        if reason:
            print(f"{parser.prog}: {name}: {reason}", file=sys.stderr)
            sys.exit(3)
        modules.append(module)
    return given, *modules


def device_name(torch, device):
    return torch.cuda.get_device_name() if device == "cuda" else device


def main(device="cuda"):
    for name in ("torch", "halfscope"):
        module, reason = found(name, device)
        print(f"{name}: {f'missing: {reason}' if reason else module.__version__}")


if __name__ == "__main__":
    main(*sys.argv[1:])
