# SPDX-License-Identifier: Apache-2.0
"""Reads activations and gradients while a step runs: hooks on modules, outputs and parameters."""

import functools
import threading
import weakref
from collections import defaultdict

import torch

from halfscope._halfscope import Arrival, Arrivals, Passes, PassHook, gradients_of, hook_on_device
from halfscope.torch import gpu, names
from halfscope.torch.gradients import EndOfBackward, adds_up, pass_number
from halfscope.torch.guard import Hook
from halfscope.torch.hooks import OutputHook, hook_tensor
from halfscope.torch.provenance import autocast_dtype
from halfscope.torch.seen import LeftInPlace, Seen
from halfscope.torch.sharding import is_distributed
from halfscope.torch.storage import Storage
from halfscope.torch.tensors import gather, gather_each, largest_of_each

# Bytes of gradients on GPUs that are collected before they are read together: a kernel for many tensors
# costs less than one for each. A CPU reads each at once, while it is in the cache.
_WAITING_BYTES = 64 << 20


class ModuleWatch:
    """Hooks on a model. They collect the largest magnitudes of the gradients that each backward
    pass adds to the weight gradients; if `magnitudes` is True, those of activation gradients; if
    `record` is True, histograms of activations and their gradients; if keep(role) is True, the
    values of that role. Histograms and values of local gradients are collected for the parameters
    in `local`, {id: name}. Modules have hooks only if `magnitudes` or `record` is True."""

    def __init__(self, model, parameters, guard, select=None, called=lambda: None,
                 ended=lambda: None, taken_away=lambda: None):
        """model: the model that the loop calls. parameters: a live view of the parameters to watch.
        guard(function, *arguments): runs each hook. select(path, module): True for modules to
        watch. Callbacks: called() when the model is called; ended() at the end of a backward pass
        that reached one of the optimizer's parameters; taken_away() when a backward pass begins and
        the loop has cleared earlier gradients without a step."""
        self._model = names.unwrapped(model)
        self._compiled = names.is_compiled_whole(model)
        self._called_model = names.called(model)
        self._guard = guard
        self._hook = functools.partial(Hook, guard)
        self._parameters = parameters
        self._select = select or (lambda path, module: True)
        self._handles = []
        self._started = False
        self._hooked = {}          # {id of a parameter: handles}
        self._unhooked = []        # frozen parameters
        self._hooked_modules = {}  # {path: (module, handle)}
        self._hooked_leaves = {}   # {(id of a leaf tensor that a module returned, name): handle}
        self._end_of_backward = EndOfBackward(lambda: guard(self._pass_ended))
        self._tell_called, self._tell_ended, self._tell_taken_away = called, ended, taken_away
        self.trained, self.trained_ids = [], set()  # the parameters that the optimizer has now
        self._lock = threading.Lock()  # backward runs on a thread per device
        me = weakref.ref(self)  # Python's collector does not see what Arrivals refers to
        self.arrivals = Arrivals(_WAITING_BYTES, lambda: me()._guard(me()._read_arrivals))  # on GPUs
        self._rounds = [Seen()]
        self._passes = Passes(pass_number)
        self.round = 0   # number of the last round
        self.passes = 0  # number of backward passes that have ended
        self._pass = None  # number of the running backward pass; None if none runs
        self._adds = True  # True if this pass adds to .grad
        self._parts = False  # True if magnitudes are read as the gradients of this pass arrive
        self.all_parts = False  # True to do so in every pass, because ranks reduce gradients later
        self.record = self.magnitudes = False
        self.keep = lambda role: False
        self.local = {}
        self._called = False  # True once a hook on a module ran
        self.unseen_is_told = False
        self._unseen = 0      # steps with a backward pass before the first hook ran
        self._in_step = True
        self._calls = 0      # calls of the model in this step
        self.microbatch = 0  # number of the running one
        self.quick = False  # True if an output on a GPU needs a hook and nothing else
        self.storage = Storage()

    @property
    def in_step(self):
        """False while backward passes do not belong to the step."""
        return self._in_step

    @in_step.setter
    def in_step(self, holds):
        self._in_step = self._passes.open = holds
        self._open_arrivals()

    def _open_arrivals(self):
        self.arrivals.open = self._started and self._in_step and (self.record or self.magnitudes)

    def start(self):
        self.take()
        self._started = True
        self._open_arrivals()
        if self._called_model is not None:
            hook = self._hook(self._model_called)
            self._handles.append(self._called_model.register_forward_pre_hook(hook))
        self._hook_modules()
        self._unhooked = list(self._parameters)
        self.hook_parameters()

    def stop(self):
        self._started = False
        while self._handles:
            self._handles.pop().remove()
        for _, handle in self._hooked_modules.values():
            handle.remove()
        self._hooked_modules.clear()
        self._unhook_parameters()
        self.take()
        gpu.finish_counts()
        self._open_arrivals()

    def look_again(self):
        """Updates the hooks after parameters or modules were added or replaced."""
        if not self._started:
            return
        self._hook_modules()
        self._unhook_parameters({id(parameter) for parameter in self._parameters})
        self._unhooked = [p for p in self._parameters if id(p) not in self._hooked]
        self.hook_parameters()

    @property
    def _seen(self):
        return self._rounds[-1]

    @property
    def provenance(self):
        """The Provenance of the last round."""
        return self._seen.provenance

    def take(self):
        """Returns the data since the last call, all rounds joined, and starts anew."""
        self._read_arrivals()
        self.quick = False
        with self._lock:
            seen, *later = self._rounds
            self._begin([Seen()])
            self._calls = self.microbatch = 0
            while self._hooked_leaves:
                self._hooked_leaves.popitem()[1].remove()
        for round_ in later:
            seen.join(round_)
        return seen

    def give_up(self):
        """Drops rounds whose backward passes have ended, because their gradients were cleared.
        Returns the number of the first round that still counts."""
        gpu.finish_counts()  # no step may come that does so
        with self._lock:
            if self._seen.passed:
                self._calls = self.microbatch = 0
                self._begin([Seen()])
            elif len(self._rounds) > 1:  # the next round has already begun with a forward call
                self._rounds = self._rounds[-1:]
                self._passes.begin()
                self._left = LeftInPlace()
            return self.round - len(self._rounds) + 1

    def _begin(self, rounds):
        self._rounds = rounds
        self.round += 1
        self._passes.begin()
        self._left = LeftInPlace()

    def tell_unseen(self, seen):
        """Warns once if two steps had backward passes, but no hook on a module ran: code that
        torch.compile compiled before the hooks were added calls none. One such step is not enough:
        its forward pass may have run before the recording."""
        if self._called or self.unseen_is_told or not (seen.arrived and self._hooked_modules):
            return
        self._unseen += 1
        if self._unseen == 2:
            self._guard.warn("two steps had backward passes, but no call of a module was seen; activations "
                             f"and their gradients are not recorded. Perhaps {names.COMPILED}")

    def look_at_modules(self):
        """Adds or removes the hooks on modules after `record` or `magnitudes` changed."""
        self._open_arrivals()
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
                handle = module.register_forward_hook(OutputHook(self, self._guard, path))
                self._hooked_modules[path] = (module, handle)

    def hook_parameters(self):
        """Adds missing hooks to parameters, also to those unfrozen since the last call."""
        if not self._unhooked:
            return
        frozen = [p for p in self._unhooked if not p.requires_grad]
        for parameter in self._unhooked:
            if parameter.requires_grad:
                handles = self._hooked[id(parameter)] = [
                    parameter.register_hook(self._parameter_hook(parameter))]
                if is_distributed(parameter):  # FSDP2 calls only this kind of hook
                    handles.append(parameter.register_post_accumulate_grad_hook(
                        lambda parameter: self._guard(self._accumulated, id(parameter))))
        self._unhooked = frozen

    def _parameter_hook(self, parameter):
        """Returns a hook for the parameter's gradient. It runs at every step for every parameter,
        so it returns early if nothing is needed."""
        key = id(parameter)

        def arrived(number, gradient):
            if self._pass != number:
                self._guard(self._pass_begins, number, parameter)
            if self._adds and (number == -1 or self._end_of_backward.queued_in != number):
                self._guard(self._accumulated, key)
            microbatch = hook.count()
            if self._parts or self.local:
                self._guard(self._weight_grad_arrived, parameter, microbatch, gradient)
            elif number == self._pass != -1 and (not self._adds or self._end_of_backward.queued_in == number):
                self._passes.known = number  # its other gradients are only counted

        hook = PassHook(self._passes, arrived)
        return hook

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
            self.microbatch = self._calls
            self._calls += 1
            self.quick = self.magnitudes and not self.record
            self.hook_parameters()

    def _forward_begins(self):
        """Begins a new round if a backward pass has ended since the last forward call."""
        if self._pass is None and not self._seen.passed:
            return
        with self._lock:
            self._pass = None
            self._passes.end()
            if self._seen.passed:
                self._rounds.append(Seen(self._seen.provenance))
                self.round += 1

    def returned(self, path, module, inputs, output):
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
        if not tensor.requires_grad:
            return
        if tensor.is_cuda and not tensor.is_leaf:
            hook = Arrival(self.arrivals, name, self.microbatch, computed)
        else:
            hook = self._hook(self._activation_grad_arrived, name, self.microbatch, computed)
        if not hook_on_device(tensor, hook):
            handle = hook_tensor(tensor, hook)
            if tensor.is_leaf:
                self._keep_one_hook(tensor, name, handle)

    def _keep_one_hook(self, leaf, name, handle):
        """Removes the earlier hook of a leaf: a parameter or input that a module returns unchanged
        keeps its hook beyond the call."""
        earlier = self._hooked_leaves.pop((id(leaf), name), None)
        if earlier is not None:
            earlier.remove()
        self._hooked_leaves[id(leaf), name] = handle

    def _activation_grad_arrived(self, name, microbatch, computed, gradient):
        # If not started, the recording has ended, but a graph still exists. A gradient of None
        # means that none reached this output.
        if not self._started or not self.in_step or gradient is None:
            return
        if self.record:
            magnitude = self._gather("activation_grad", name, gradient, computed)
            with self._lock:
                self._seen.activation_grads[microbatch].append(magnitude)
        elif self.magnitudes:
            magnitudes = largest_of_each([gradient.detach()])
            with self._lock:
                self._seen.activation_grads[microbatch] += magnitudes

    def _read_arrivals(self):
        """Reads the gradients that arrived on GPUs: of activations, and of weights (name: None). Called when
        a backward pass ends, at the latest, since the loop may then write to them."""
        arrived = self.arrivals.take()
        with self._lock:
            seen, groups = self._seen, defaultdict(list)
            if self.record:
                self._gather_arrived([each for each in arrived if each[0] is not None])
                arrived = [each for each in arrived if each[0] is None]
            for name, microbatch, _, gradient in arrived:
                groups[name is None, microbatch].append(gradient)
            for (of_weights, microbatch), gradients in groups.items():
                batches = seen.weight_grads if of_weights else seen.activation_grads
                batches[microbatch] += largest_of_each(gradients)

    def _gather_arrived(self, arrived):
        seen = self._seen
        magnitudes = gather_each([(seen.tensors[f"activation_grad/{name}"],
                                   *self.storage.stored("activation_grad", gradient, computed))
                                  for name, _, computed, gradient in arrived], self.keep("activation_grad"))
        for (_, microbatch, _, _), magnitude in zip(arrived, magnitudes):
            seen.activation_grads[microbatch].append(magnitude)

    def _weight_grad_arrived(self, parameter, microbatch, gradient):
        if id(parameter) in self.local and id(parameter) in self.trained_ids:
            self._gather_local(parameter, gradient)
        if not self._parts or not self.storage.bounds_scale(parameter):
            return
        if gradient.is_cuda and parameter.grad is not None:  # else it may become .grad without a copy
            self.arrivals.add(None, microbatch, gradient)
            return
        magnitudes = largest_of_each([gradient])
        with self._lock:
            self._seen.weight_grads[microbatch] += magnitudes

    def _pass_begins(self, number, parameter):
        self._pass = number
        self.quick = False  # a forward call during the pass, or after it, is looked at
        self._adds = not is_distributed(parameter) and adds_up(parameter)
        if self._left.taken_away():
            self._tell_taken_away()
        self._seen.arrived = True
        # After the first pass on a single rank, .grad holds the gradients of that pass, so they are
        # read there and not as they arrive.
        self._parts = self.all_parts or bool(gradients_of(self.trained)[0])

    def _accumulated(self, key):
        if self.in_step and key in self.trained_ids:
            with self._lock:
                self._end_of_backward.arrived()

    def _pass_ended(self):
        self.passes += 1
        self._read_arrivals()
        with self._lock:
            self._seen.passed = True
            self._pass = None
            self._passes.end()
            self._left = LeftInPlace(*gradients_of(self.trained))
        self._tell_ended()

    def first_part(self, magnitudes):
        """Adds magnitudes of the gradients in .grad. Called when the first pass ends."""
        if not self._parts and self._seen.arrived:
            with self._lock:
                self._seen.weight_grads[self._passes.most - 1] += magnitudes

    def _gather(self, role, name, tensor, computed):
        """Adds a tensor to the histogram of its name. Returns its largest magnitude."""
        tensor, computed = self.storage.stored(role, tensor, computed)
        with self._lock:
            return gather(self._seen.tensors[f"{role}/{name}"], tensor, computed, self.keep(role))

    def _gather_local(self, parameter, gradient):
        computed = self._seen.provenance.weight_grad(parameter)
        stored = self.storage.stored("local_weight_grad", gradient, computed, parameter)
        with self._lock:
            gather(self._seen.local[self.local[id(parameter)]], *stored,
                   self.keep("local_weight_grad"))
