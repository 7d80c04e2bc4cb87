# SPDX-License-Identifier: Apache-2.0
"""Imports optional packages when a function needs them."""

import importlib


def part(module, what, package):
    """Returns the module. Raises ImportError that says what needs it and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs {package}: pip install {package}") from error
