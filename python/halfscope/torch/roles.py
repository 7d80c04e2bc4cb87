# SPDX-License-Identifier: Apache-2.0
"""Which tensors a sample holds, and how large that makes it."""

import logging
from collections import Counter

ROLES = ("weight", "master_weight", "weight_grad", "local_weight_grad", "activation",
         "activation_grad", "update", "weight_after", "optimizer_state")


def test(chosen):
    """A function of the role from a collection of roles, or None: all."""
    if chosen is None:
        return lambda role: True
    chosen = frozenset([chosen] if isinstance(chosen, str) else chosen)
    if unknown := sorted(chosen.difference(ROLES)):
        raise ValueError(f"sample_roles: found {', '.join(map(repr, unknown))}, expected some of "
                         f"{', '.join(ROLES)}")
    return chosen.__contains__


def told(chosen):
    """How run.json says it."""
    return None if chosen is None else [role for role in ROLES if test(chosen)(role)]


def tell_size(tensors, out):
    """To the log of the program, which goes to stderr where nothing is set up. Below 1 MiB nobody
    asks."""
    sizes = Counter()
    for name, tensor in tensors.items():
        sizes[name.partition("/")[0]] += tensor.numel() * tensor.element_size()
    if sum(sizes.values()) < 2**20:
        return
    parts = ", ".join(f"{role} {_mib(size)}" for role, size in sizes.most_common())
    logging.getLogger("halfscope").warning(
        "%s: each sample needs %s (%s); sample_roles chooses what it holds", out,
        _mib(sum(sizes.values())), parts)


def _mib(size):
    return f"{size / 2**20:.1f} MiB"
