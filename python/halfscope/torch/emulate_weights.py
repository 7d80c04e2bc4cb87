# SPDX-License-Identifier: Apache-2.0
"""Parameters under emulated precision: 16-bit copies, FP32 masters, gradients and optimizer state."""

import contextlib
import math

import torch

from halfscope.torch.emulate_checks import require_as_it_was
from halfscope.torch.emulate_rounding import Round, round_, rounded
from halfscope.torch.guard import Hook, call


class Weights:
    """A model's parameters. Between steps their memory holds the rounded values that operations
    read; during the optimizer's step, the values to update (FP32 masters if mixed)."""

    def __init__(self, model, optimizer, precision, wide):
        """wide: ids of the parameters that stay FP32."""
        self._optimizer = optimizer
        self._precision = precision
        self._format = precision.format
        self.parameters = [p for p in model.parameters() if id(p) not in wide]  # each once
        self.narrow = {id(p) for p in self.parameters} if self._format else set()
        self._names = {id(p): name for name, p in model.named_parameters()}
        self._masters = {}   # id -> FP32 values
        self._versions = {}  # id -> the parameter's version counter when it was last looked at
        self._handles = []
        self._watched = set()
        self._accumulators = []  # kept alive, since autograd would replace an unused node

    def start(self):
        for parameter in self._narrow():
            self._versions[id(parameter)] = parameter._version
            if self._precision.master:
                self._masters[id(parameter)] = parameter.detach().clone()
            round_(parameter.data, self._format)
        if not self._precision.master:
            self._round_state()
        self.watch()

    def stop(self):
        """Removes the hooks and copies FP32 masters back into the parameters."""
        while self._handles:
            self._handles.pop().remove()
        self._accumulators.clear()
        self._watched.clear()
        with contextlib.ExitStack() as stack:  # continues with the others if one fails
            stack.callback(self._masters.clear)
            for parameter in self._narrow():
                stack.callback(self._show_master, parameter)

    def before_forward(self):
        """Rounds values that the training loop wrote into parameters since the last call."""
        if self._precision.master:
            self._adopt_all()
        else:
            for parameter in self._narrow():
                round_(parameter.data, self._format)
        self.watch()

    def watch(self):
        """Adds missing hooks that round gradients, also to parameters unfrozen since."""
        for parameter in self._narrow():
            if not parameter.requires_grad or id(parameter) in self._watched:
                continue
            self._watched.add(id(parameter))
            self._handles.append(parameter.register_hook(Hook(call, self._rounded)))
            # The node that adds to .grad. The sum must be rounded to 16 bits too.
            with torch.enable_grad():
                accumulator = parameter.view_as(parameter).grad_fn.next_functions[0][0]
            self._accumulators.append(accumulator)
            self._handles.append(accumulator.register_hook(Hook(call, self._added, parameter)))

    def master(self, parameter):
        """Returns the tensor that the optimizer updates: the FP32 master or the parameter."""
        return self._masters.get(id(parameter), parameter.detach())

    def masters(self, named):
        """Returns {name: copy of the values to update}. named: (name, parameter)."""
        self._adopt_all()
        return {name: self.master(parameter).clone() for name, parameter in named}

    @contextlib.contextmanager
    def updated(self):
        """A context in which parameters hold the values to update; then rounded copies."""
        self._show_masters()
        try:
            yield
        finally:
            for parameter in self._narrow():
                if self._precision.master:
                    self._masters[id(parameter)].copy_(parameter.data)
                round_(parameter.data, self._format)
                self._versions[id(parameter)] = parameter._version
            if not self._precision.master:
                self._round_state()

    def _narrow(self):
        return self.parameters if self._format else []

    def _show_masters(self):
        for parameter in self._narrow():
            self._show_master(parameter)

    def _show_master(self, parameter):
        self._adopt(parameter)
        parameter.data.copy_(self.master(parameter))

    def _adopt_all(self):
        for parameter in self._narrow():
            self._adopt(parameter)

    def _adopt(self, parameter):
        """Copies values that the loop wrote into a parameter to its master."""
        key = id(parameter)
        if key not in self._masters:
            return
        master = self._masters[key]
        require_as_it_was(self._names[key], parameter, master)
        changed = rounded(master, self._format) != parameter.data
        # Writes through .data do not change the version.
        if parameter._version != self._versions[key] or changed.any():
            master.copy_(torch.where(changed, parameter.data, _within(master, parameter.data)))
            round_(parameter.data, self._format)
            self._versions[key] = parameter._version

    def _round_state(self):
        for parameter in self._narrow():
            state = self._optimizer.state.get(parameter, {})  # [] would add an entry
            for key, value in state.items():
                if (key != "step" and isinstance(value, torch.Tensor)
                        and value.dtype == torch.float32 and value.shape == parameter.shape):
                    round_(value, self._format)

    def _rounded(self, gradient):
        return None if gradient is None else Round.apply(gradient, self._format)

    def _added(self, parameter, *_):
        gradient = parameter.grad
        if gradient is not None and gradient.layout == torch.sparse_coo:
            parameter.grad = rounded(gradient, self._format)
        elif gradient is not None:
            round_(gradient, self._format)


def _within(master, written):
    """Returns masters for elements whose 16-bit value a write did not change. They keep their extra
    bits, but are clamped to the range of the written values, and zero if the written value is zero,
    because the loop may have clipped or zeroed weights."""
    if written.numel() == 0:
        return master
    low, high = (float(bound) for bound in torch.aminmax(written))
    if math.isnan(low) or math.isnan(high):
        low, high = -math.inf, math.inf
    return torch.where(written == 0, written, master.clamp(low, high))
