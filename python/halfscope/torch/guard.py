# SPDX-License-Identifier: Apache-2.0
"""Protects the training loop from the recorder: hooks that are safe to copy, and handling of
errors."""

import contextlib
import os
import warnings

import torch

# Hooks do nothing while torch.compile or torch.jit.trace traces: they would break the graph of the
# first and become part of the graph of the second.
_compiles = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
_traces = torch._C._is_tracing
_compiling_callback = getattr(getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None),
                              "get_eval_frame_callback", lambda: None)  # PyTorch 2.5 and later


def traced():
    """Returns True while torch.compile or torch.jit.trace traces the caller."""
    return _compiles() or _traces()


def compiled():
    """Returns True if traced(), and in what a function of torch.compile calls without compiling it,
    which torch.compile may still try to compile."""
    return traced() or _compiling_callback() is not None


def _captures():
    """Returns True while a CUDA graph is captured: work queued now would be in it, and waiting
    would break it."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def call(function, *args):
    return function(*args)


class Hook:
    """A hook that calls a method. In a copied or pickled model, a function of the standard library
    replaces it, so that the file needs no Halfscope: one that takes anything and returns None."""

    def __init__(self, guard, method, *first):
        self._guard = guard
        self._method = method
        self._first = first

    def __call__(self, *args):
        if traced():
            return None
        return self._guard(self._method, *self._first, *args)

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), "__exit__")


@contextlib.contextmanager
def lifted(model):
    """A context without the hooks of recorders on a module and its submodules, and those in copies."""
    kept = [(hooks, dict(hooks)) for module in model.modules()
            for hooks in (module._forward_hooks, module._forward_pre_hooks)]
    for hooks, all_of_them in kept:
        for key, hook in all_of_them.items():
            if isinstance(hook, Hook) or isinstance(getattr(hook, "__self__", None), contextlib.nullcontext):
                del hooks[key]
    try:
        yield
    finally:
        for hooks, all_of_them in kept:
            hooks.clear()
            hooks.update(all_of_them)


class Guard:
    """Calls the recorder's own functions. The first error causes one warning and ends the
    recording, but not the training run; if raises=True, it is raised. Only one process may write a
    log, so a call in a fork is such an error."""

    def __init__(self, on_error, stop):
        self._on_error = on_error
        self._stop = stop
        self.error = None
        self._process = None

    def begin(self):
        """Allows calls from now on, in this process only."""
        self._process = os.getpid()

    def here(self):
        """Returns True in the process that called begin()."""
        return self._process == os.getpid()

    def __call__(self, function, *args):
        if self.error is not None or _captures():
            return None
        try:
            if not self.here():
                raise RuntimeError("this process is a fork of the one that records, which alone "
                                   "writes the log; call start() in the process that trains")
            return function(*args)
        except Exception as error:
            if self._on_error == "raise":
                raise
            self.fail(error)
            return None

    def fail(self, error):
        self.error = error
        text = " ".join(str(error).split()) or "no message"
        try:
            self._stop()
        except Exception as second:  # stop() may find a state that start() did not complete
            text += f"; and when it stopped: {second}"
        self.warn(f"recording stops, training goes on: {type(error).__name__}: {text}. "
                  "What the log's folder holds can be read. With on_error=\"raise\" the error is raised")

    def warn(self, text):
        """Warns, or calls on_error if that is a function."""
        if callable(self._on_error):
            self._on_error(text)
        else:
            warnings.warn(f"Recorder: {text}", RuntimeWarning, stacklevel=4)
