# SPDX-License-Identifier: Apache-2.0
"""Packages that are needed only where somebody asks for what they do."""

import importlib


def part(module, what, package):
    """The module; else an ImportError that says what needs it and what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs {package}: pip install {package}") from error
