# SPDX-License-Identifier: Apache-2.0
"""Weight gradients as backward made them: read when a backward pass has ended, before the training
loop unscales or clips them."""

import torch

from halfscope._halfscope import Gathered
from halfscope.torch.tensors import LargestGradient, gather_each


class Gradients:
    """Weight gradients as they are now. scaled: whether they carry the loss scale."""

    def __init__(self, run, provenance, record, scaled):
        self.scaled = scaled
        there = [(p, p.grad) for p in run.trained_parameters if p.grad is not None]
        self.read = {id(parameter) for parameter, _ in there}
        self.tensors = {}  # name of a parameter -> Gathered, where tables are recorded
        bounds_scale = run.storage.bounds_scale
        if not record:
            self.largest = LargestGradient(there, bounds_scale)
            return
        pieces = []
        for parameter, gradient in there:
            gathered = self.tensors[run.name_of(parameter)] = Gathered()
            pieces.append((gathered, *run.storage.stored(
                "weight_grad", gradient, provenance.weight_grad(parameter), parameter)))
        magnitudes = gather_each(pieces, run.keeps("weight_grad"))
        parameters = (parameter for parameter, _ in there)
        self.largest = LargestGradient(zip(parameters, magnitudes), bounds_scale, list)


class EndOfBackward:
    """Calls a function when a backward pass that reached a parameter has ended and all its gradients
    are in place."""

    def __init__(self, ended):
        self._ended = ended
        self._ending = False  # whether only callbacks that others queued come first
        self.queued_in = None  # number of the pass

    def arrived(self):
        """To be called by a hook on a parameter, while a pass runs. Queued once a pass, where passes
        have numbers, else every time: a pass that raised takes what was queued with it, and nothing
        says so."""
        number = pass_number()
        if number == self.queued_in and number != -1:
            return
        self.queued_in = number
        self._ending = False
        _at_end(self._behind_others)

    def _behind_others(self):
        """DistributedDataParallel puts the reduced gradients in place in such a callback, which was
        queued while the pass ran."""
        if not self._ending:
            self._ending = True
            _at_end(self._end)

    def _end(self):
        self._ending = False
        self._ended()


# Of the backward pass that runs the hook that asks; -1 outside of one, and before 2.1.
pass_number = getattr(torch._C, "_current_graph_task_id", lambda: -1)


_will_execute = getattr(torch._C, "_will_engine_execute_node", lambda node: True)


def adds_up(parameter):
    """Whether the backward pass that runs adds to the .grad of this parameter, which it reached:
    autograd.grad() does not, as far as PyTorch tells (from 2.0 on)."""
    with torch.enable_grad():
        accumulation = parameter.view_as(parameter).grad_fn.next_functions[0][0]
    try:
        _will_execute(accumulation)
    except RuntimeError as error:
        return "autograd.grad" not in str(error)
    return True


def backward_runs():
    """Whether it is a hook of a backward pass that asks. Before 2.1, which has no hook behind the
    accumulation, no optimizer can step there."""
    return pass_number() != -1


def _at_end(call):
    torch.autograd.Variable._execution_engine.queue_callback(call)
