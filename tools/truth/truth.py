# SPDX-License-Identifier: Apache-2.0
"""Counts the true effects on gradients with plain PyTorch. Shares no code with halfscope.

Names are those of a run log: weight_grad/PARAMETER and activation_grad/MODULE[.INDEX].
"""

import collections
import contextlib

import torch

SCALES = list(range(0, 31))  # exponents of the loss scales tried


def _outputs(path, output):
    if isinstance(output, torch.Tensor):
        yield path, output
    elif isinstance(output, (tuple, list)):
        for index, item in enumerate(output):
            yield from _outputs(f"{path}.{index}", item)


@contextlib.contextmanager
def activation_gradients(model):
    """A context that collects {name: [gradient of each call]} from the backward passes inside."""
    found = collections.defaultdict(list)

    def forward_hook(path):
        def look(module, inputs, output):
            for name, tensor in _outputs(path, output):
                if tensor.requires_grad:
                    tensor.register_hook(keep_in(found[f"activation_grad/{name}"]))
        return look

    def keep_in(pieces):
        def keep(gradient):
            if gradient is not None:  # None: the loss does not depend on this output
                pieces.append(gradient.detach().clone())
        return keep

    handles = [module.register_forward_hook(forward_hook(path)) for path, module in
               model.named_modules() if not list(module.children())]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def weight_gradients(model):
    return {f"weight_grad/{name}": [p.grad.detach()] for name, p in model.named_parameters()
            if p.grad is not None}


def _flat(pieces):
    return torch.cat([piece.reshape(-1) for piece in pieces])


def gradients(task, model, batch, scale, half):
    """Returns all gradients of one pass as flat tensors, with the loss scale. A CPU has no FP16
    autocast, so in a dry run only the gradients are rounded."""
    model.zero_grad(set_to_none=True)
    device = next(model.parameters()).device.type
    with activation_gradients(model) as found:
        with torch.autocast("cuda", torch.float16, enabled=half and device == "cuda"):
            loss = task.loss(model, batch)
        (loss * scale).backward()
    seen = {name: _flat(pieces) for name, pieces in {**found, **weight_gradients(model)}.items()
            if pieces}
    return {name: values.half() for name, values in seen.items()} if half and device == "cpu" else seen


def _classes(values, factor):
    """Returns how many float32 values times a factor become zero in FP16, and how many infinite."""
    half = (values * factor).half()
    finite = torch.isfinite(values)
    return [((half == 0) & (values != 0)).sum(), (torch.isinf(half) & finite).sum()]


class SamePass:
    """Counts the same gradients that a recorder reads."""

    def __init__(self):
        self.tensors = {}

    def add(self, found, scale):
        for name, pieces in found.items():
            if not pieces:  # the loss does not depend on this output
                continue
            values = _flat(pieces).float()
            counts = [(values == 0).sum(), torch.isnan(values).sum(), torch.isinf(values).sum()]
            for k in SCALES:
                counts += _classes(values, 2.0**k / scale)
            self._add(name, values.numel(), torch.stack(counts).tolist())

    def _add(self, name, total, counts):
        sums = self.tensors.setdefault(name, {
            "total": 0, "zero": 0, "nan": 0, "inf": 0,
            "flushed": [0] * len(SCALES), "overflow": [0] * len(SCALES)})
        sums["total"] += total
        for field, count in zip(("zero", "nan", "inf"), counts):
            sums[field] += count
        for i in range(len(SCALES)):
            sums["flushed"][i] += counts[3 + 2 * i]
            sums["overflow"][i] += counts[4 + 2 * i]


class RealPasses:
    """Compares passes with the same weights and batch in FP32, and in FP16 at every scale."""

    def __init__(self, task, twin):
        self._task, self._twin = task, twin
        self.steps = []
        self.tensors = {}
        self.overflow = {"weights": [], "any": []}  # [step][scale]: True if not finite

    def add(self, step, model, batch):
        self._twin.load_state_dict(model.state_dict())
        true = gradients(self._task, self._twin, batch, 1.0, half=False)
        self.steps.append(step)
        bad = {"weights": [], "any": []}
        for i, k in enumerate(SCALES):
            got = gradients(self._task, self._twin, batch, 2.0**k, half=True)
            counts = {name: self._compare(true[name], got[name]) for name in true if name in got}
            rows = dict(zip(counts, torch.stack(list(counts.values())).tolist()))
            for name, row in rows.items():
                self._add(name, i, row, got[name].dtype)
            bad["any"].append(any(row[3] for row in rows.values()))
            bad["weights"].append(any(row[3] for name, row in rows.items()
                                      if name.startswith("weight_grad/")))
        for kind, each in bad.items():
            self.overflow[kind].append(each)

    @staticmethod
    def _compare(true, got):
        there, zero = true != 0, got == 0
        is_half = (got.half().to(got.dtype) == got) | ~torch.isfinite(got)
        return torch.stack([there.sum(), (there & zero).sum(), (~there & ~zero).sum(),
                            (~torch.isfinite(got)).sum(), (~is_half).sum()])

    def _add(self, name, i, row, dtype):
        nonzero, lost, gained, nonfinite, wide = row
        sums = self.tensors.setdefault(name, {
            "dtype": str(dtype).replace("torch.", ""), "nonzero": 0, "not_half_values": 0,
            "lost": [0] * len(SCALES), "gained": [0] * len(SCALES), "nonfinite": [0] * len(SCALES)})
        if i == 0:
            sums["nonzero"] += nonzero
        sums["not_half_values"] += wide
        for field, count in (("lost", lost), ("gained", gained), ("nonfinite", nonfinite)):
            sums[field][i] += count

    def result(self):
        return {"steps": self.steps, "scales": SCALES, "tensors": self.tensors,
                "overflow": self.overflow}
