# SPDX-License-Identifier: Apache-2.0
"""The loss scale of a run: that of a GradScaler, or one that the training loop applies itself."""

import contextlib

import torch

from halfscope.torch.gpu import number_later
from halfscope.torch.patching import Patch


# PyTorch's own methods, which read the result of _get_scale_async().
_GET_SCALE = {module.GradScaler.get_scale for module in (torch.cuda.amp, torch.amp)
              if hasattr(module, "GradScaler")}


class FixedScale:
    """A loss scale that the training loop applies itself; 1 if there is none."""

    def __init__(self, scale=None, unscaled_before_step=False):
        self._scale = scale
        self._unscaled_before_step = unscaled_before_step
        self.scaled = scale is not None  # True if recorded values may carry a scale

    def current(self):
        return 1.0 if self._scale is None else float(self._scale)

    later = current

    @property
    def weight_grads_scaled(self):
        """True if .grad carries the scale when the optimizer's step is attempted."""
        return self.scaled and not self._unscaled_before_step

    scaler = None
    unscaled_by_the_loop = False  # unknown before the step, so False

    def about(self):
        if not self.scaled:
            return {"policy": "none"}
        return {"policy": "static", "scale": self.current()}

    def tries_again(self):
        return False

    def start(self, attempt, loss_seen):
        pass

    def stop(self):
        pass


class WatchedScaler:
    """A GradScaler, or anything with its methods: scale, unscale_, step, update, get_scale.

    Its methods are wrapped while recording. `attempt()` returns a context for one attempted step;
    it is entered before the scaler decides to skip the step or not. `loss_seen` receives each loss
    that the loop passes to scale(), before scaling.
    """

    scaled = True

    def __init__(self, scaler, optimizer):
        self.scaler = scaler
        self._optimizer = optimizer
        self._patches = []
        self.unscaled_by_the_loop = False  # True after unscale_(), until update()

    def current(self):
        return float(self.scaler.get_scale())

    def later(self):
        """Returns the scale for number_of(), without waiting for a GPU that holds it."""
        own = getattr(type(self.scaler), "get_scale", None) in _GET_SCALE
        scale = self.scaler._get_scale_async() if own else None
        on_gpu = isinstance(scale, torch.Tensor) and scale.is_cuda
        return number_later(scale) if on_gpu else self.current()

    @property
    def weight_grads_scaled(self):
        return not self.unscaled_by_the_loop

    def about(self):
        settings = {"policy": "torch", "class": type(self.scaler).__name__, "scale": self.current()}
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            with contextlib.suppress(Exception):  # other scalers need not have these methods
                settings[name] = getattr(self.scaler, f"get_{name}")()
        return settings

    def tries_again(self):
        """Returns True if the step that was just skipped will be tried again."""
        return False

    def start(self, attempt, loss_seen):
        self._attempt, self._loss_seen = attempt, loss_seen
        for name in ("scale", "unscale_", "step", "update"):
            self._patches.append(Patch(self.scaler, name, getattr(self, "_around_" + name.strip("_"))))

    def watch(self, scaler):
        """Watches another scaler. Called between start() and the first step."""
        self.stop()
        self.scaler = scaler
        self.start(self._attempt, self._loss_seen)

    def stop(self):
        while self._patches:
            self._patches.pop().remove()

    def _around_scale(self, original, outputs):
        if isinstance(outputs, torch.Tensor) and outputs.numel() == 1:
            self._loss_seen(outputs.detach())
        return original(outputs)

    def _around_unscale(self, original, optimizer):
        result = original(optimizer)
        if optimizer is self._optimizer:
            self.unscaled_by_the_loop = True
        return result

    def _around_step(self, original, optimizer, *args, **kwargs):
        if optimizer is not self._optimizer:
            return original(optimizer, *args, **kwargs)
        with self._attempt():  # reads the gradients first: step() unscales them
            return original(optimizer, *args, **kwargs)

    def _around_update(self, original, *args, **kwargs):
        result = original(*args, **kwargs)
        self.unscaled_by_the_loop = False
        return result


def of_accelerate(optimizer):
    """Returns (optimizer, scaler) inside Accelerate's wrapper; (optimizer, None) without one."""
    scaler = None
    while type(optimizer).__name__ == "AcceleratedOptimizer":
        scaler, optimizer = optimizer.scaler, optimizer.optimizer
    return optimizer, scaler


def step_method(optimizer):
    """Returns (object, name) of the method that runs in a step unless it is skipped. Accelerate
    keeps a method from before and replaces the optimizer's step() by it while its scaler steps."""
    kept = "_optimizer_patched_step_method"
    return (optimizer, kept) if hasattr(optimizer, kept) else (of_accelerate(optimizer)[0], "step")


def loss_scale_of(optimizer, scaler, loss_scale, unscaled_before_step):
    """Returns the FixedScale or WatchedScaler for the recorder's arguments. Raises ValueError."""
    if scaler is not None and loss_scale is not None:
        raise ValueError("both scaler and loss_scale are given, expected one: a scaler knows its scale")
    optimizer, accelerated = of_accelerate(optimizer)
    if loss_scale is None and scaler is None:
        scaler = accelerated
    if scaler is not None and getattr(scaler, "is_enabled", lambda: True)():
        return WatchedScaler(scaler, optimizer)
    return FixedScale(loss_scale, unscaled_before_step)


def found_inf_inside(optimizer, kwargs):
    """Returns the found_inf that an optimizer which unscales inside received, for number_of(), or None.
    Called when its step() begins, which also happens for a step to be skipped."""
    found = getattr(optimizer, "found_inf", None)
    if found is None and kwargs.get("grad_scaler") is not None:  # before PyTorch 2.0
        per_device = kwargs["grad_scaler"]._check_inf_per_device(optimizer)
        found = sum(value.item() for value in per_device.values())
    return None if found is None else number_later(found)


def unscales_inside(optimizer):
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False))
