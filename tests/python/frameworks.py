# SPDX-License-Identifier: Apache-2.0
"""Frameworks whose lines to paste the tests run: which must be there, and what counts as a warning."""

import contextlib
import functools
import importlib
import logging
import os
import subprocess
import sys
import warnings

import pytest

from program import BUILD, ROOT


def need(name):
    """A framework's module. It is skipped where it is not installed, but not in its own environment
    of ./run frameworks."""
    if name in os.environ.get("HALFSCOPE_FRAMEWORKS", "").split(","):
        return importlib.import_module(name)
    return pytest.importorskip(name)


@functools.cache
def _python_with_torch():
    for python in (sys.executable, BUILD / "frameworks/torch/bin/python"):
        if os.path.exists(python):
            said = subprocess.run([python, "-B", ROOT / "tools/gpu/modules.py", "cpu"], capture_output=True,
                                  text=True).stdout
            if said.count("\n") == 2 and "missing" not in said:
                return str(python)
    return None


def python_with_torch():
    """A Python whose PyTorch is recent enough for tools/gpu; else the test is skipped."""
    if _python_with_torch() is None:
        pytest.skip("needs PyTorch 2.3 or later: ./run frameworks torch installs one")
    return _python_with_torch()


class _Heard(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@contextlib.contextmanager
def no_warning():
    """Warnings are errors, those that a framework gives to its log too."""
    heard = _Heard()
    silent = [logger for logger in logging.root.manager.loggerDict.values()
              if isinstance(logger, logging.Logger) and not logger.propagate]
    for logger in (logging.root, *silent):
        logger.addHandler(heard)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        for logger in (logging.root, *silent):
            logger.removeHandler(heard)
    assert not heard.texts, heard.texts


def run(lines, **names):
    """What the names are after the lines ran."""
    with no_warning():
        exec(lines, names)
    return names


def torch_with_a_gpu(monkeypatch):
    """PyTorch; without a GPU a GradScaler switches itself off, here it must believe there is one."""
    torch = need("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    if hasattr(torch.cuda.amp, "common"):
        monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False,
                            raising=False)
    for part in (torch.cuda.amp.grad_scaler, getattr(torch.amp, "grad_scaler", None)):
        if part is not None and hasattr(part, "amp_definitely_not_available"):
            monkeypatch.setattr(part, "amp_definitely_not_available", lambda: False)
    if not hasattr(torch.amp, "GradScaler"):  # before 2.3: the older name, as the note says
        monkeypatch.setattr(torch.amp, "GradScaler",
                            lambda device, **settings: torch.cuda.amp.GradScaler(**settings),
                            raising=False)
    return torch


def mxnet_amp(monkeypatch):
    """amp after its init(), which must not rewrite every operator for the tests that follow."""
    need("mxnet")
    amp = importlib.import_module("mxnet.contrib.amp")
    for name in ("_wrap_symbol_functions", "_wrap_loss_output_functions"):
        monkeypatch.setattr(amp.amp, name, lambda *_: None)
    amp.init()
    return amp
