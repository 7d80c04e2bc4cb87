# SPDX-License-Identifier: Apache-2.0
"""Runs a framework's own scaler over series of magnitudes; imported by drive_*.py, which run in the
environment of their framework. Knows no policy: what a step does is the framework's.

A driver gives ORIGINALS, a function a policy name: called with the options it returns an object
with `scale()`, the loss scale the next step starts with, and `step(gradients)`, which runs one step
and tells whether the weights were updated. `gradients(scale)` is one backward pass: it returns the
gradients of this step at that scale as they are in binary16."""

import importlib
import importlib.util
import json
import math
import pathlib
import sys
import types

import numpy


def module_of(package, name):
    """One module of an installed package, without what the packages on the way would import."""
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
    """A package whose __init__ does not run."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def binary16_gradients(magnitude, scale):
    """Three gradients as a backward pass in binary16 at this scale gives them."""
    with numpy.errstate(all="ignore"):
        largest = numpy.float64(magnitude) * numpy.float64(scale)
        return numpy.array([largest, -0.5 * largest, 0.0 * largest]).astype(numpy.float16)


def number(value):
    value = float(value)
    return value if math.isfinite(value) else str(value)


def trace(original, series):
    """One scaler over one series: what it did at every step."""
    scales, skipped, attempts, error = [], [], [], None
    for step, magnitude in enumerate(series):
        passes = []

        def gradients(scale):
            passes.append(scale)
            return binary16_gradients(magnitude, scale)

        scales.append(number(original.scale()))
        try:
            updated = original.step(gradients)
        except Exception as problem:  # the framework's own way to end training, or a difference
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
    """drive_X.py JOB RESULT: the job has the series and the cases, the result their traces."""
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
