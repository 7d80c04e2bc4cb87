# SPDX-License-Identifier: Apache-2.0
"""Loss scaling in an emulated run: the policies of the C++ library, with the methods of a
GradScaler."""

import contextlib
import math
import re

from halfscope import _halfscope
from halfscope._run_log import unscaled
from halfscope.torch.scaler import WatchedScaler
from halfscope.torch.tensors import LargestGradient, largest_of


# The least and the largest positive normal number of binary32.
_LEAST, _MOST = 2.0 ** -126, 2.0 ** 128 - 2.0 ** 104
_NUMBER = re.compile(r"[+-]?(\.?\d|inf(inity)?$|nan$)", re.IGNORECASE)


def policy_of(loss_scale):
    """Returns the policy for the argument loss_scale: None, a number, or a text as for
    `--loss-scale`. None if there is no loss scaling."""
    if loss_scale is None or (isinstance(loss_scale, str) and loss_scale == "none"):
        return None
    is_number = isinstance(loss_scale, (int, float)) and not isinstance(loss_scale, bool)
    if is_number or (isinstance(loss_scale, str) and _NUMBER.match(loss_scale)):
        loss_scale = f"static,scale={_number_of(loss_scale)!r}"
    if not isinstance(loss_scale, str):
        raise TypeError(f"loss_scale: found {type(loss_scale).__name__}, expected None, a number or a "
                        "policy such as 'torch' or 'torch,init_scale=1024,growth_interval=200'")
    policy = _halfscope.Policy(loss_scale)
    name = policy.about["policy"]
    if policy.scales != "loss":
        ways = {"layers": f"run a network of ours with it: halfscope simulate lenet --loss-scale {name}",
                "tensors": f"replay it over a log: halfscope policies RUN --policy {name}"}
        raise ValueError(
            f"loss_scale: policy {name} scales {policy.scales} one by one and is not a loss scale, which "
            "emulate() needs; choose another one (halfscope policies --list), or "
            f"{ways[policy.scales]}")
    return policy


def _number_of(loss_scale):
    """Returns a loss scale such as 1024, "1024" or "2^10" as a float. Raises ValueError."""
    number = math.nan
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(loss_scale, str) and loss_scale.startswith("2^"):
            number = math.ldexp(1.0, int(loss_scale[2:]))
        else:
            number = float(loss_scale)
    if not _LEAST <= number <= _MOST:
        found = str(loss_scale)
        found = found if len(found) <= 40 else f"{found[:40]}..."
        raise ValueError(f"loss_scale: found {found}, expected a positive finite number such as 1024 "
                         "or '2^10', normal in binary32; training cannot use any other scale")
    return number


class EmulatedScaler:
    """Applies a policy in a training loop. Without one the scale is 1 and no step is skipped."""

    def __init__(self, policy, modules, bounds_scale):
        self.policy = policy
        self.action = "apply"  # action for the last step: "apply", "skip" or "retry"
        self._modules = modules
        self._bounds_scale = bounds_scale
        self._facts = None  # (nonfinite, largest magnitude) once gradients are unscaled, else None

    @property
    def unscaled(self):
        """True if the gradients were divided by the scale since the last step."""
        return self._facts is not None

    def get_scale(self):
        return 1.0 if self.policy is None else self.policy.scale

    def scale(self, loss):
        return loss if self.policy is None else loss * self.get_scale()

    def unscale_(self, optimizer):
        """Notes the largest magnitude of the gradients, then divides them by the scale."""
        if self.unscaled:
            raise RuntimeError("unscale_() was called already since the last optimizer.step()")
        self._facts = ()
        if self.policy is None:
            return
        scale = self.get_scale()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        # Overflow in any gradient counts; policies use the magnitudes of weight gradients only.
        weights = LargestGradient(*_halfscope.gradients_of(parameters), self._bounds_scale).value() or 0.0
        outputs = largest_of(self._modules.take()) or 0.0
        nonfinite = not (math.isfinite(weights) and math.isfinite(outputs))
        self._facts = nonfinite, 0.0 if weights == 0 else unscaled(weights, scale)
        inverse = 1.0 / scale if scale else math.inf
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(inverse)

    def step(self, optimizer, take_step):
        """Calls take_step(), unless the policy skips the step or tries it again."""
        if not self.unscaled:
            self.unscale_(optimizer)
        self.action, error = "apply", ""
        if self.policy is not None:
            self.action, error = self.policy.advance(*self._facts)
        if error:
            raise RuntimeError(f"loss scaling by {self.policy.about['policy']} ends training here: "
                               f"{error}")
        return take_step() if self.action == "apply" else None

    def update(self):
        self._facts = None
        self._modules.take()


class EmulatedScale(WatchedScaler):
    """The recorder's view of an EmulatedScaler."""

    @property
    def scaled(self):
        return self.scaler.policy is not None

    @property
    def weight_grads_scaled(self):
        return self.scaled and super().weight_grads_scaled

    def about(self):
        return {"policy": "none"} if not self.scaled else self.scaler.policy.about

    def tries_again(self):
        return self.scaler.action == "retry"
