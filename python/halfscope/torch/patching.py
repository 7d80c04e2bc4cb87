# SPDX-License-Identifier: Apache-2.0
"""Methods of one object, wrapped for a while.

PyTorch 1.13 has no hooks around optimizer.step and no PyTorch has any around GradScaler's methods,
so both are wrapped the same way on every version.
"""

import functools
import types


class Patch:
    """Calls `around(original, *args, **kwargs)` in place of `target.name(*args, **kwargs)`.

    The wrapper is a bound method with the original's signature and attributes: learning rate
    schedulers look at both, GradScaler at the signature. When somebody else wrapped it again in the
    meantime, remove() leaves their wrapper where it is, and ours calls straight through. A deep copy
    of the object has the wrapper too: there it is the original method of the copy.
    """

    def __init__(self, target, name, around):
        self._target = target
        self._name = name
        self._was_own = name in vars(target)  # an attribute of the object, not of its class
        self._original = original = getattr(target, name)
        self._active = True

        function = getattr(original, "__func__", None)

        @functools.wraps(original)
        def wrapper(owner, *args, **kwargs):
            if owner is not target and function is not None:
                return function(owner, *args, **kwargs)
            if not self._active:
                return original(*args, **kwargs)
            return around(original, *args, **kwargs)

        wrapper.__wrapped__ = function or original  # with self, as binding drops it
        self._wrapper = types.MethodType(wrapper, target)
        setattr(target, name, self._wrapper)

    def remove(self):
        self._active = False
        if vars(self._target).get(self._name) is self._wrapper:
            if self._was_own:
                setattr(self._target, self._name, self._original)
            else:
                delattr(self._target, self._name)
