# SPDX-License-Identifier: Apache-2.0
"""The roles of tensors in a sample, and the size of samples."""

import logging
from collections import Counter

from halfscope._trees import ROLES


def test(chosen):
    """Returns a function that tests a role. chosen: a role, a collection of roles, or None for all.
    Raises ValueError for unknown roles."""
    if chosen is None:
        return lambda role: True
    chosen = frozenset([chosen] if isinstance(chosen, str) else chosen)
    if unknown := sorted(chosen.difference(ROLES)):
        raise ValueError(f"sample_roles: found {', '.join(map(repr, unknown))}, expected some of "
                         f"{', '.join(ROLES)}")
    return chosen.__contains__


def told(chosen):
    """Returns the chosen roles for run.json; None for all."""
    return None if chosen is None else [role for role in ROLES if test(chosen)(role)]


def tell_size(tensors, out):
    """Logs the size of a sample of 1 MiB or more. The logger writes to stderr by default."""
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
