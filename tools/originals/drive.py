# SPDX-License-Identifier: Apache-2.0
"""Runs a framework's own scaler over series of magnitudes. Imported by drive_*.py, which run in the
environment of their framework. Contains no policy: the framework's code decides each step.

A driver passes {policy name: function} to main(). The function receives the options and returns an
object with `scale()`, the loss scale at the start of the next step, and `step(gradients)`, which
runs one step and returns True if the weights were updated. `gradients(scale)` simulates a backward
pass: it returns the step's gradients at that scale as they are in binary16."""

import importlib
import importlib.util
import json
import math
import pathlib
import sys
import types

import numpy


def module_of(package, name):
    """Returns a module of an installed package without running the __init__ of its packages."""
    if package not in sys.modules:
        (folder,) = importlib.util.find_spec(package).submodule_search_locations
        _bare(package, folder)
    path = pathlib.Path(sys.modules[package].__path__[0])
    parts = name.split(".")
    for depth in range(1, len(parts)):
        inner = ".".join([package, *parts[:depth]])
        if inner not in sys.modules:
            _bare(inner, path.joinpath(*parts[:depth]))
    return importlib.import_module(f"{package}.{name}")


def _bare(name, folder):
    """Adds a package to sys.modules without running its __init__."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def binary16_gradients(magnitude, scale):
    """Returns three gradients as a backward pass in binary16 would compute them at this scale."""
    with numpy.errstate(all="ignore"):
        largest = numpy.float64(magnitude) * numpy.float64(scale)
        return numpy.array([largest, -0.5 * largest, 0.0 * largest]).astype(numpy.float16)


def number(value):
    value = float(value)
    return value if math.isfinite(value) else str(value)


def trace(original, series):
    """Runs one scaler over one series. Returns its scale, skips and attempts at every step."""
    scales, skipped, attempts, error = [], [], [], None
    for step, magnitude in enumerate(series):
        passes = []

        def gradients(scale):
            passes.append(scale)
            return binary16_gradients(magnitude, scale)

        scales.append(number(original.scale()))
        try:
            updated = original.step(gradients)
        except Exception as problem:  # the framework ends training, or behaves differently
            error = {"step": step, "message": f"{type(problem).__name__}: {problem}"}
            attempts.append(len(passes))
            break
        attempts.append(len(passes))
        if not updated:
            skipped.append(step)
    return {
        "scale": scales,
        "skipped": skipped,
        "attempts": attempts,
        "final": number(original.scale()),
        "error": error,
    }


def main(originals, version):
    """Runs drive_X.py JOB RESULT: JOB has series and cases, RESULT receives the traces."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    series = [[float(value) for value in values] for values in job["series"]]
    results = []
    for case in job["cases"]:
        make = originals[case["policy"]]
        example = make(**case["options"])
        results.append(
            {"what": example.WHAT, "traces": [trace(make(**case["options"]), s) for s in series]}
        )
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump({"version": version, "cases": results}, file)
