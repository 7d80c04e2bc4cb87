# SPDX-License-Identifier: Apache-2.0
"""What hooks saw of a step, in rounds: a round is forward calls and the backward passes behind
them. Gradients that are taken away before a step take their rounds with them."""

from collections import defaultdict

import torch

from halfscope._halfscope import Gathered
from halfscope.torch.provenance import Provenance
from halfscope.torch.tensors import copied_to_host, largest, largest_of, largest_of_each

# So many bytes of gradients wait to be looked at together. On a GPU a few kernels for many tensors
# cost less than one for each; a CPU reads each at once, while it is in the cache.
_WAITING_BYTES = {"cuda": 64 << 20}


class Seen:
    """What the hooks saw in one round, or, joined, since the last attempted step."""

    def __init__(self, provenance=None):
        self.tensors = defaultdict(Gathered)  # by full name
        self.provenance = provenance or Provenance()
        # By microbatch: magnitudes, as largest_of() takes them.
        self.weight_grads = defaultdict(list)
        self.activation_grads = defaultdict(list)
        self._waiting = defaultdict(list)  # (device, microbatch) -> activation gradients
        self._waiting_bytes = defaultdict(int)  # by device
        self.local = defaultdict(Gathered)  # weight gradients as they arrived, by parameter's name
        self.arrived = False  # whether any weight gradient did
        self.passed = False   # whether a backward pass ended

    def join(self, later):
        """Adds what a later round saw."""
        for mine, theirs in ((self.tensors, later.tensors), (self.local, later.local)):
            for name, gathered in theirs.items():
                mine[name].join(gathered)
        for mine, theirs in ((self.weight_grads, later.weight_grads),
                             (self.activation_grads, later.activation_grads)):
            for microbatch, magnitudes in theirs.items():
                mine[microbatch] += magnitudes
        self.arrived |= later.arrived
        self.passed |= later.passed

    def look_at_activation_grad(self, microbatch, gradient):
        """Takes the largest magnitude, now or with those that follow on the same device."""
        device = gradient.device
        self._waiting[device, microbatch].append(gradient.detach())
        self._waiting_bytes[device] += gradient.numel() * gradient.element_size()
        if self._waiting_bytes[device] >= _WAITING_BYTES.get(device.type, 0):
            self._look_at_waiting(device)

    def _look_at_waiting(self, device):
        self._waiting_bytes[device] = 0
        for key in [key for key in self._waiting if key[0] == device]:
            self.activation_grads[key[1]] += largest_of_each(self._waiting.pop(key))

    def look_at_all_waiting(self):
        """When a backward pass has ended: later the loop may write to the gradients."""
        for device in list(self._waiting_bytes):
            self._look_at_waiting(device)

    def copy_to_host(self):
        """Magnitudes of a GPU are on their way from now on."""
        for batches in (self.weight_grads, self.activation_grads):
            for microbatch, magnitudes in batches.items():
                batches[microbatch] = copied_to_host(magnitudes)

    def largest_activation_grad(self):
        return largest_of(m for batch in self.activation_grads.values() for m in batch)

    def per_microbatch(self, ranks):
        """{tag: largest recorded magnitude}, when there was more than one microbatch; of weight
        gradients also where ranks reduce them later: both are larger than what they add up to."""
        found = {}
        for role, batches in (("weight_grad", self.weight_grads),
                              ("activation_grad", self.activation_grads)):
            if len(batches) > 1 or (ranks > 1 and role == "weight_grad"):
                # Numbers of rounds that were given up are not used: counted anew.
                for index, microbatch in enumerate(sorted(batches)):
                    found[f"max_abs/{role}/microbatch-{index}"] = largest_of(batches[microbatch])
        return {tag: value for tag, value in found.items() if value is not None}

    def local_weight_grads(self, ranks):
        """{name of a parameter: Gathered}, where they are not the same as the weight gradients."""
        apart = ranks > 1 or any(gathered.pieces > 1 for gathered in self.local.values())
        return self.local if apart else {}


class LeftInPlace:
    """Gradients as a backward pass left them, to see whether the loop took them away since."""

    def __init__(self, parameters=()):
        self._left = [p for p in parameters if p.grad is not None]
        self._version = _version(self._left[0].grad) if self._left else None

    def taken_away(self):
        """Whether all are None or zero now. The first tells whether the loop wrote to them: where it
        did not, what is zero came from backward."""
        if not self._left:
            return False
        first = self._left[0].grad
        written = first is None or _version(first) != self._version
        return written and all(p.grad is None or _is_zero(p.grad) for p in self._left)


def _version(gradient):
    """Another one where the values were written to, or are other memory. NaN is like nothing."""
    if gradient.layout is not torch.strided:
        return float("nan")
    return gradient.data_ptr(), gradient._version


def _is_zero(gradient):
    magnitude = largest(gradient)
    return magnitude is None or magnitude.item() == 0
