# SPDX-License-Identifier: Apache-2.0
"""Looks at activations and gradients while a step runs: hooks on modules, outputs and parameters."""

import functools
import threading
import warnings
from collections import defaultdict

import torch

from halfscope.torch import names
from halfscope.torch.gradients import EndOfBackward, adds_up, pass_number
from halfscope.torch.guard import Hook
from halfscope.torch.provenance import autocast_dtype
from halfscope.torch.seen import LeftInPlace, Seen
from halfscope.torch.sharding import is_distributed
from halfscope.torch.storage import Storage
from halfscope.torch.tensors import gather, largest_of_each

# Before 2.0 all hooks of a tensor sit on the operation that made the tensor when the first one was
# added. After an in-place operation (ReLU(inplace=True)) that is the wrong one for a second hook.
_HOOKS_STAY_BEHIND = not hasattr(torch.autograd.graph, "Node")


class ModuleWatch:
    """Hooks on a model. The largest magnitudes of what each backward pass adds to the weight
    gradients; where `magnitudes` is set, those of activation gradients; where `record` is set, tables of activations and their
    gradients; where `keep` says so of a role, their values. The same of local gradients of the
    parameters in `local`, {id: name}. Where none of it is wanted no module has a hook."""

    def __init__(self, model, parameters, guard, select=None, called=lambda: None,
                 ended=lambda: None, taken_away=lambda: None):
        """model: as the loop calls it; parameters: those to watch, as they are when asked; guard: calls a function with arguments, for every hook; called: called when the
        model is; ended: at the end of a backward pass that reached one of the optimizer's
        parameters; taken_away: when one begins and what earlier ones left in place is gone, though
        no step followed."""
        self._model = names.unwrapped(model)
        self._compiled = names.is_compiled_whole(model)
        self._called_model = names.called(model)
        self._guard = guard
        self._hook = functools.partial(Hook, guard)
        self._parameters = parameters
        self._select = select or (lambda path, module: True)
        self._handles = []
        self._started = False
        self._hooked = {}          # id of a parameter -> handles
        self._hooked_modules = {}  # path -> (module, handle)
        self._hooked_leaves = {}   # (id of a leaf that a module returned, name) -> handle
        self._end_of_backward = EndOfBackward(lambda: guard(self._pass_ended))
        self._tell_called, self._tell_ended, self._tell_taken_away = called, ended, taken_away
        self.trained = {}  # id -> parameter, of those that the optimizer has now
        self._lock = threading.Lock()  # backward runs on a thread a device
        self._rounds = [Seen()]
        self._times = {}
        self.round = 0   # number of the last one
        self._pass = None  # number of the backward pass that was seen last
        self._adds = True  # whether this pass adds to .grad
        self._parts = False  # whether the magnitudes of this pass are taken as its gradients arrive
        self.all_parts = False  # so in every pass: ranks reduce them later
        self.record = self.magnitudes = False
        self.keep = lambda role: False
        self.local = {}
        self._called = False  # whether a hook on a module ever ran
        self.unseen_is_told = False
        self._unseen = 0      # steps with a backward pass before one did
        self.in_step = True  # whether backward passes are the step's: others are not looked at
        self.storage = Storage()

    def start(self):
        self.take()
        self._started = True
        if self._called_model is not None:
            hook = self._hook(self._model_called)
            self._handles.append(self._called_model.register_forward_pre_hook(hook))
        self._hook_modules()
        self._hook_parameters()

    def stop(self):
        self._started = False
        while self._handles:
            self._handles.pop().remove()
        for _, handle in self._hooked_modules.values():
            handle.remove()
        self._hooked_modules.clear()
        self._unhook_parameters()
        self.take()

    def look_again(self):
        """After others joined, or took the places of those that were there."""
        if not self._started:
            return
        self._hook_modules()
        self._unhook_parameters({id(parameter) for parameter in self._parameters})
        self._hook_parameters()

    @property
    def _seen(self):
        return self._rounds[-1]

    @property
    def provenance(self):
        """Of what was seen since take()."""
        return self._seen.provenance

    def take(self):
        """What was seen, and starts afresh."""
        with self._lock:
            seen, *later = self._rounds
            self._begin([Seen()])
            self._calls = 0
            while self._hooked_leaves:
                self._hooked_leaves.popitem()[1].remove()
        for round_ in later:
            round_.look_at_all_waiting()
            seen.join(round_)
        seen.look_at_all_waiting()
        return seen

    def give_up(self):
        """Rounds whose backward passes have ended are of no step: their gradients were taken away.
        Returns the number of the first round that still counts."""
        with self._lock:
            if self._seen.passed:
                self._calls = 0
                self._begin([Seen()])
            elif len(self._rounds) > 1:  # the forward call of the next pass came before
                self._rounds = self._rounds[-1:]
                self._times.clear()
                self._left = LeftInPlace()
            return self.round - len(self._rounds) + 1

    def _begin(self, rounds):
        self._rounds = rounds
        self.round += 1
        self._times = defaultdict(int)  # how often a parameter's gradient arrived
        self._left = LeftInPlace()

    def tell_unseen(self, seen):
        """Once, where backward passes come from no module that was seen. What torch.compile made
        before the hooks were there calls none of them. The first step may be of an earlier call."""
        if self._called or self.unseen_is_told or not (seen.arrived and self._hooked_modules):
            return
        self._unseen += 1
        if self._unseen == 2:
            warnings.warn("Recorder: two steps had backward passes, but no call of a module was seen; "
                          f"activations and their gradients are not recorded. Perhaps {names.COMPILED}",
                          RuntimeWarning, stacklevel=2)

    def look_at_modules(self):
        """As `record` and `magnitudes` say now."""
        if self._started and bool(self._hooked_modules) != (self.record or self.magnitudes):
            self._hook_modules()

    def _hook_modules(self):
        wanted = {}
        if (self.record or self.magnitudes) and not self._compiled:
            wanted = {path: module for path, module in names.leaf_modules(self._model)
                      if self._select(path, module)}
        for path, (module, handle) in list(self._hooked_modules.items()):
            if wanted.get(path) is not module:
                handle.remove()
                del self._hooked_modules[path]
        for path, module in wanted.items():
            if path not in self._hooked_modules:
                handle = module.register_forward_hook(self._hook(self._returned, path))
                self._hooked_modules[path] = (module, handle)

    def _hook_parameters(self):
        """Also those that were unfrozen since."""
        for parameter in self._parameters:
            if parameter.requires_grad and id(parameter) not in self._hooked:
                handles = self._hooked[id(parameter)] = [
                    parameter.register_hook(self._parameter_hook(parameter))]
                if is_distributed(parameter):  # FSDP2 calls these alone
                    handles.append(parameter.register_post_accumulate_grad_hook(
                        lambda parameter: self._guard(self._accumulated, id(parameter))))

    def _parameter_hook(self, parameter):
        """For its gradient as it arrives. Called at every step for every parameter: what is not
        wanted then ends here."""
        key = id(parameter)

        def arrived(gradient):
            if not self.in_step or gradient is None:
                return
            number = pass_number()
            if self._pass != number:
                self._guard(self._pass_begins, number, parameter)
            if self._adds and (number == -1 or self._end_of_backward.queued_in != number):
                self._guard(self._accumulated, key)
            microbatch = self._times[key]
            self._times[key] = microbatch + 1
            if self._parts or self.local:
                self._guard(self._weight_grad_arrived, parameter, microbatch, gradient)

        return arrived

    def _unhook_parameters(self, but=()):
        for one in [one for one in self._hooked if one not in but]:
            for handle in self._hooked.pop(one):
                handle.remove()

    def _model_called(self, module, inputs):
        if torch.is_grad_enabled():
            self._called = True
            self._tell_called()
            self._forward_begins()
            self._seen.provenance.called |= not self._compiled
            self._calls += 1
            self._hook_parameters()

    def _forward_begins(self):
        """What comes behind a backward pass is another round."""
        if self._pass is None and not self._seen.passed:
            return
        with self._lock:
            self._pass = None
            if self._seen.passed:
                self._rounds.append(Seen(self._seen.provenance))
                self.round += 1

    def _returned(self, path, module, inputs, output):
        if not torch.is_grad_enabled():  # evaluation between steps
            return
        self._forward_begins()
        self._called = True
        for name, tensor in names.outputs(path, output):
            self._see_output(module, name, tensor)

    def _see_output(self, module, name, tensor):
        computed = None
        if self.record:
            provenance = self._rounds[-1].provenance
            cast = autocast_dtype(tensor.device.type)
            provenance.see(module, tensor, cast)
            self._gather("activation", name, tensor, tensor.dtype)
            computed = provenance.activation_grad(tensor, cast)
        if tensor.requires_grad:
            handle = hook_tensor(tensor, self._hook(self._activation_grad_arrived, name,
                                                    max(self._calls - 1, 0), computed))
            if tensor.is_leaf:
                self._keep_one_hook(tensor, name, handle)

    def _keep_one_hook(self, leaf, name, handle):
        """A parameter or input that a module returns as it is outlives the call: in the next one it
        has the hook still."""
        earlier = self._hooked_leaves.pop((id(leaf), name), None)
        if earlier is not None:
            earlier.remove()
        self._hooked_leaves[id(leaf), name] = handle

    def _activation_grad_arrived(self, name, microbatch, computed, gradient):
        # Not started: a graph that outlived the recording. None: no gradient reached this output.
        if not self._started or not self.in_step or gradient is None:
            return
        if self.record:
            magnitude = self._gather("activation_grad", name, gradient, computed)
            with self._lock:
                self._seen.activation_grads[microbatch].append(magnitude)
        elif self.magnitudes:
            with self._lock:
                self._seen.look_at_activation_grad(microbatch, gradient)

    def _weight_grad_arrived(self, parameter, microbatch, gradient):
        if id(parameter) in self.local and id(parameter) in self.trained:
            self._gather_local(parameter, gradient)
        if self._parts and self.storage.bounds_scale(parameter):
            (magnitude,) = largest_of_each([gradient]) or [None]
            with self._lock:
                self._seen.weight_grads[microbatch].append(magnitude)

    def _pass_begins(self, number, parameter):
        self._pass = number
        self._adds = not is_distributed(parameter) and adds_up(parameter)
        if self._left.taken_away():
            self._tell_taken_away()
        self._seen.arrived = True
        # The first pass of one rank leaves its gradients as they came: they are read once, there.
        self._parts = self.all_parts or any(p.grad is not None for p in self.trained.values())

    def _accumulated(self, key):
        if self.in_step and key in self.trained:
            with self._lock:
                self._end_of_backward.arrived()

    def _pass_ended(self):
        with self._lock:
            self._seen.look_at_all_waiting()
            self._seen.passed = True
            self._pass = None
            self._left = LeftInPlace(self.trained.values())
        self._tell_ended()

    def first_part(self, magnitudes):
        """Of the gradients that a pass left in place, when it has just ended."""
        if not self._parts and self._seen.arrived:
            with self._lock:
                self._seen.weight_grads[max(self._times.values()) - 1] += magnitudes

    def _gather(self, role, name, tensor, computed):
        """Returns the largest magnitude."""
        tensor, computed = self.storage.stored(role, tensor, computed)
        with self._lock:
            return gather(self._seen.tensors[f"{role}/{name}"], tensor, computed, self.keep(role))

    def _gather_local(self, parameter, gradient):
        computed = self._seen.provenance.weight_grad(parameter)
        stored = self.storage.stored("local_weight_grad", gradient, computed, parameter)
        with self._lock:
            gather(self._seen.local[self.local[id(parameter)]], *stored,
                   self.keep("local_weight_grad"))


def hook_tensor(tensor, hook):
    """Adds a hook on a tensor's gradient, behind those it has; returns its handle."""
    if _HOOKS_STAY_BEHIND and not tensor.is_leaf and tensor._backward_hooks:
        tensor._backward_hooks = None  # those it has stay on the operation that made it then
    return tensor.register_hook(hook)
