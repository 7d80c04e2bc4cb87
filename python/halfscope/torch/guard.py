# SPDX-License-Identifier: Apache-2.0
"""Between the recorder and the loop that it watches: hooks, and what becomes of errors."""

import os
import warnings

import torch

# Hooks that torch.compile traces would break its graph, and those that torch.jit.trace traces would
# be in it: there they are nothing.
_compiles = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
_traces = torch._C._is_tracing


def _captures():
    """Whether a CUDA graph is captured: what is queued would be in it, and waiting would break it."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def call(function, *args):
    return function(*args)


def _nothing(*_):
    """What a hook becomes in a copy of its module."""


def _make_nothing():
    return _nothing


class Hook:
    """A method as a hook that does not travel: a copied or pickled model has one that does nothing."""

    def __init__(self, guard, method, *first):
        self._guard = guard
        self._method = method
        self._first = first

    def __call__(self, *args):
        if _compiles() or _traces():
            return None
        return self._guard(self._method, *self._first, *args)

    def __reduce__(self):
        return _make_nothing, ()


class Guard:
    """Calls the recorder's own functions. The first error is one warning and ends the recording, not
    the training run; with raises=True it is raised. One process writes a log: a call in a fork of it
    is an error, which ends the recording there."""

    def __init__(self, raises, stop):
        self._raises = raises
        self._stop = stop
        self.error = None
        self._process = None

    def begin(self):
        """From now on in this process alone."""
        self._process = os.getpid()

    def __call__(self, function, *args):
        if self.error is not None or _captures():
            return None
        try:
            if self._process != os.getpid():
                raise RuntimeError("this process is a fork of the one that records, which alone "
                                   "writes the log; call start() in the process that trains")
            return function(*args)
        except Exception as error:
            if self._raises:
                raise
            self.fail(error)
            return None

    def fail(self, error):
        self.error = error
        text = " ".join(str(error).split()) or "no message"
        try:
            self._stop()
        except Exception as second:  # what was begun may be half there
            text += f"; and when it stopped: {second}"
        warnings.warn(f"Recorder: recording stops, training goes on: {type(error).__name__}: {text}. "
                      "What the log's folder holds can be read. With on_error=\"raise\" the error is "
                      "raised", RuntimeWarning, stacklevel=3)
