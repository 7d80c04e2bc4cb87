# SPDX-License-Identifier: Apache-2.0
"""Collects what hooks see during a step, in rounds. A round is some forward calls and the backward
passes after them. If gradients are cleared before a step, their rounds are dropped."""

from collections import defaultdict

import torch

from halfscope._halfscope import Gathered, gradients_of
from halfscope.torch.provenance import Provenance
from halfscope.torch.tensors import copied_to_host, largest_of, largest_of_each


class Seen:
    """The data that hooks collected in a round or, after join(), since the last attempted step."""

    def __init__(self, provenance=None):
        self.tensors = defaultdict(Gathered)  # by "role/name"
        self.provenance = provenance or Provenance()
        # By microbatch: lists of magnitudes for largest_of().
        self.weight_grads = defaultdict(list)
        self.activation_grads = defaultdict(list)
        self.local = defaultdict(Gathered)  # weight gradients of each pass, by parameter's name
        self.arrived = False  # True once a weight gradient arrived
        self.passed = False   # True once a backward pass ended

    def join(self, later):
        """Adds the data of a later round."""
        for mine, theirs in ((self.tensors, later.tensors), (self.local, later.local)):
            for name, gathered in theirs.items():
                mine[name].join(gathered)
        for mine, theirs in ((self.weight_grads, later.weight_grads),
                             (self.activation_grads, later.activation_grads)):
            for microbatch, magnitudes in theirs.items():
                mine[microbatch] += magnitudes
        self.arrived |= later.arrived
        self.passed |= later.passed

    def copy_to_host(self):
        """Starts to copy the magnitudes from GPUs to the CPU."""
        for batches in (self.weight_grads, self.activation_grads):
            for microbatch, magnitudes in batches.items():
                batches[microbatch] = copied_to_host(magnitudes)

    def largest_activation_grad(self):
        return largest_of(m for batch in self.activation_grads.values() for m in batch)

    def per_microbatch(self, ranks):
        """Returns {tag: largest recorded magnitude} if there were several microbatches; for weight
        gradients also if there are several ranks. The sums that are recorded can be smaller."""
        found = {}
        for role, batches in (("weight_grad", self.weight_grads),
                              ("activation_grad", self.activation_grads)):
            if len(batches) > 1 or (ranks > 1 and role == "weight_grad"):
                # Numbered from 0, without gaps for rounds that were dropped.
                for index, microbatch in enumerate(sorted(batches)):
                    found[f"max_abs/{role}/microbatch-{index}"] = largest_of(batches[microbatch])
        return {tag: value for tag, value in found.items() if value is not None}

    def local_weight_grads(self, ranks):
        """Returns {name of a parameter: Gathered}. Empty if they equal the weight gradients."""
        apart = ranks > 1 or any(gathered.pieces > 1 for gathered in self.local.values())
        return self.local if apart else {}


class LeftInPlace:
    """The gradients after a backward pass, to detect whether the loop cleared them since."""

    def __init__(self, parameters=(), gradients=()):
        """parameters: those that have gradients."""
        self._left = parameters
        self._version = _version(gradients[0]) if self._left else None

    def taken_away(self):
        """Returns True if the loop wrote to the first gradient and all are None or zero now.
        Without such a write, zeros come from the backward pass."""
        if not self._left:
            return False
        first = self._left[0].grad
        if first is not None and _version(first) == self._version:
            return False
        _, left = gradients_of(self._left)
        return not left or (largest_of(largest_of_each(left)) or 0) == 0


def _version(gradient):
    """Returns a value that changes if the gradient is written or replaced. For sparse gradients
    NaN, which differs from any value."""
    if gradient.layout is not torch.strided:
        return float("nan")
    return gradient.data_ptr(), gradient._version
