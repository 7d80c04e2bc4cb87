# SPDX-License-Identifier: Apache-2.0
"""Weight gradients as the backward pass computed them: read when it ends, before the training loop
unscales or clips them."""

import torch

from halfscope._halfscope import Gathered, gradients_of
from halfscope.torch.tensors import LargestGradient, gather_each


class Gradients:
    """The present weight gradients. scaled: they carry the loss scale. record: make histograms."""

    def __init__(self, run, provenance, record, scaled):
        self.scaled = scaled
        parameters, gradients = gradients_of(run.trained_parameters)
        self.read = set(map(id, parameters))
        self.tensors = {}  # {name of a parameter: Gathered}; empty unless `record`
        bounds_scale = run.storage.bounds_scale
        if not record:
            self.largest = LargestGradient(parameters, gradients, bounds_scale)
            return
        pieces = []
        for parameter, gradient in zip(parameters, gradients):
            gathered = self.tensors[run.name_of(parameter)] = Gathered()
            pieces.append((gathered, *run.storage.stored(
                "weight_grad", gradient, provenance.weight_grad(parameter), parameter)))
        magnitudes = gather_each(pieces, run.keeps("weight_grad"))
        self.largest = LargestGradient(parameters, magnitudes, bounds_scale, list)


class EndOfBackward:
    """Calls ended() when a backward pass that reached a parameter has set all its gradients."""

    def __init__(self, ended):
        self._ended = ended
        self._ending = False  # True once only callbacks that others queued run before ended()
        self.queued_in = None  # number of the pass in which a callback was queued last

    def arrived(self):
        """Queues the callback. Called by a hook on a parameter while a pass runs. Queues once per
        pass if passes have numbers, else every time: a pass that raised drops its queue
        silently."""
        number = pass_number()
        if number == self.queued_in and number != -1:
            return
        self.queued_in = number
        self._ending = False
        _at_end(self._behind_others)

    def _behind_others(self):
        """Queues the end once more, behind callbacks that were queued during the pass.
        DistributedDataParallel writes the reduced gradients in such a callback."""
        if not self._ending:
            self._ending = True
            _at_end(self._end)

    def _end(self):
        self._ending = False
        self._ended()


# Returns the number of the running backward pass; -1 outside of a pass, and before PyTorch 2.1.
pass_number = getattr(torch._C, "_current_graph_task_id", lambda: -1)


_will_execute = getattr(torch._C, "_will_engine_execute_node", lambda node: True)


def adds_up(parameter):
    """Returns True if the running backward pass, which reached this parameter, adds to its .grad.
    False for autograd.grad(), which PyTorch reports since 2.0."""
    with torch.enable_grad():
        accumulation = parameter.view_as(parameter).grad_fn.next_functions[0][0]
    try:
        _will_execute(accumulation)
    except RuntimeError as error:
        return "autograd.grad" not in str(error)
    return True


def backward_runs():
    """Returns True if called from a hook or an operation of a running backward pass."""
    try:
        _at_end(lambda: None)  # refused outside of a pass
    except RuntimeError:
        return False
    return True


def _at_end(call):
    torch.autograd.Variable._execution_engine.queue_callback(call)
