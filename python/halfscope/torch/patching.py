# SPDX-License-Identifier: Apache-2.0
"""Wraps methods of one object for a while.

PyTorch 1.13 has no hooks around optimizer.step, and no version has hooks around GradScaler's
methods, so both are wrapped in the same way in every version.
"""

import functools
import types


class Patch:
    """Calls `around(original, *args, **kwargs)` in place of `target.name(*args, **kwargs)`.

    The wrapper is a bound method with the original's signature and attributes: learning rate
    schedulers read both, GradScaler the signature. If other code has wrapped it again, remove()
    keeps that wrapper, and this one only calls the original. In a deep copy of the object, the
    wrapper calls the copy's original method.
    """

    def __init__(self, target, name, around):
        self._target = target
        self._name = name
        self._was_own = name in vars(target)  # an attribute of the object, not of its class
        self._original = original = getattr(target, name)
        self.active = True

        function = getattr(original, "__func__", None)

        @functools.wraps(original)
        def wrapper(owner, *args, **kwargs):
            if owner is not target and function is not None:
                return function(owner, *args, **kwargs)
            if not self.active:
                return original(*args, **kwargs)
            return around(original, *args, **kwargs)

        wrapper.__wrapped__ = function or original  # has a parameter self, which binding removes
        self._wrapper = types.MethodType(wrapper, target)
        setattr(target, name, self._wrapper)

    def remove(self):
        self.active = False
        if vars(self._target).get(self._name) is self._wrapper:
            if self._was_own:
                setattr(self._target, self._name, self._original)
            else:
                delattr(self._target, self._name)


class ClassPatch:
    """Calls `around(original, *args, **kwargs)` in place of a function of a class or module, such as
    Optimizer.__init__, until remove()."""

    def __init__(self, owner, name, around):
        self._owner = owner
        self._name = name
        self._original = original = getattr(owner, name)
        self._active = True

        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            if not self._active:  # other code wrapped it again, and keeps it
                return original(*args, **kwargs)
            return around(original, *args, **kwargs)

        self._wrapper = wrapper
        setattr(owner, name, wrapper)

    def remove(self):
        self._active = False
        if vars(self._owner).get(self._name) is self._wrapper:
            setattr(self._owner, self._name, self._original)
