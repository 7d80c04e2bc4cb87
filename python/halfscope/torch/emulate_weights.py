# SPDX-License-Identifier: Apache-2.0
"""Parameters under emulated precision: 16-bit copies, FP32 masters, gradients and optimizer state."""

import contextlib

import torch

from halfscope.torch.emulate_rounding import round_, rounded
from halfscope.torch.modules import Hook


class Weights:
    """A model's parameters. Between steps their memory holds what operations read: values of the
    tensors' type. During the optimizer's step it holds what is updated."""

    def __init__(self, model, optimizer, precision, wide):
        """wide: ids of the parameters that stay FP32."""
        self._optimizer = optimizer
        self._precision = precision
        self._format = precision.format
        self.parameters = [p for p in model.parameters() if id(p) not in wide]  # each once
        self.narrow = {id(p) for p in self.parameters} if self._format else set()
        self._masters = {}  # id -> FP32 values
        self._handles = []
        self._watched = set()
        self._accumulators = []  # kept: autograd makes another one where nobody holds it

    def start(self):
        for parameter in self._narrow():
            if self._precision.master:
                self._masters[id(parameter)] = parameter.detach().clone()
            round_(parameter.data, self._format)
        if not self._precision.master:
            self._round_state()
        self._watch()

    def stop(self):
        """Takes the hooks off; FP32 masters go back into the parameters."""
        while self._handles:
            self._handles.pop().remove()
        self._accumulators.clear()
        self._show_masters()
        self._masters.clear()

    def before_forward(self):
        """What the training loop wrote into parameters since is rounded; those that it unfroze have
        hooks from now on."""
        if self._precision.master:
            self._adopt()
        else:
            for parameter in self._narrow():
                round_(parameter.data, self._format)
        self._watch()

    def _watch(self):
        for parameter in self._narrow():
            if not parameter.requires_grad or id(parameter) in self._watched:
                continue
            self._watched.add(id(parameter))
            self._handles.append(parameter.register_hook(Hook(self._rounded)))
            # The node that adds to .grad: its sum is a 16-bit tensor too.
            with torch.enable_grad():
                accumulator = parameter.view_as(parameter).grad_fn.next_functions[0][0]
            self._accumulators.append(accumulator)
            self._handles.append(accumulator.register_hook(Hook(self._added, parameter)))

    def master(self, parameter):
        """What the optimizer updates: FP32 values, or the parameter itself."""
        return self._masters.get(id(parameter), parameter.detach())

    def masters(self, named):
        """{name: copy of the FP32 values}. named: (name, parameter)"""
        self._adopt()
        return {name: self.master(parameter).clone() for name, parameter in named}

    @contextlib.contextmanager
    def updated(self):
        """Inside, the parameters hold what is updated; afterwards the 16-bit copies of that."""
        self._show_masters()
        try:
            yield
        finally:
            for parameter in self._narrow():
                if self._precision.master:
                    self._masters[id(parameter)].copy_(parameter.data)
                round_(parameter.data, self._format)
            if not self._precision.master:
                self._round_state()

    def _narrow(self):
        return self.parameters if self._format else []

    def _show_masters(self):
        self._adopt()
        for parameter in self._narrow():
            parameter.data.copy_(self.master(parameter))

    def _adopt(self):
        """A value that is no longer what the master was rounded to was written by the training loop
        (load_state_dict, weight clipping): it is a master's new value."""
        for parameter in self._narrow():
            if id(parameter) not in self._masters:
                continue
            master = self._masters[id(parameter)]
            written = rounded(master, self._format) != parameter.data
            if written.any():
                master.copy_(torch.where(written, parameter.data, master))
                round_(parameter.data, self._format)

    def _round_state(self):
        for parameter in self._narrow():
            state = self._optimizer.state.get(parameter, {})  # [] would add an entry
            for key, value in state.items():
                if (key != "step" and isinstance(value, torch.Tensor)
                        and value.dtype == torch.float32 and value.shape == parameter.shape):
                    round_(value, self._format)

    def _rounded(self, gradient):
        return rounded(gradient, self._format)

    def _added(self, parameter, *_):
        gradient = parameter.grad
        if gradient is not None and gradient.layout == torch.sparse_coo:
            parameter.grad = rounded(gradient, self._format)
        elif gradient is not None:
            round_(gradient, self._format)
