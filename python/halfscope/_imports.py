# SPDX-License-Identifier: Apache-2.0
"""Calls functions when a program imports a module."""

import functools
import sys
import warnings


class _Finder:
    """A finder in front of all others. It calls each function in `waiting` ({name of a module:
    functions}) once, after the module was imported."""

    def __init__(self):
        self.waiting = {}

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        for finder in [finder for finder in sys.meta_path if finder is not self]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                self._wrap(spec.loader)
                return spec
        return None

    def _wrap(self, loader):
        if not hasattr(loader, "exec_module"):  # a folder without __init__.py
            return
        original = loader.exec_module

        @functools.wraps(original)
        def exec_module(module):
            loader.exec_module = original  # inspect and pickle see the loader as it was
            original(module)
            for function in self.waiting.pop(module.__name__, ()):
                try:
                    function(module)
                except Exception as error:  # must not end the program's import
                    warnings.warn(f"halfscope does not record {module.__name__}: {error!r}", RuntimeWarning)

        loader.exec_module = exec_module


_finder = _Finder()


def after_import(name, function):
    """Calls function(module): now if the module is imported already, else right after its import,
    where an exception of the function is a warning."""
    if name in sys.modules:
        function(sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting.setdefault(name, []).append(function)
