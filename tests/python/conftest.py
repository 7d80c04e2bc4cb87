# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: how a log is read back, and a GradScaler for the CPU."""

import os
import pathlib
from collections import defaultdict

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Log:
    """A run log as the tests look at it: scalars[step], tables[name, step], sample(step)."""

    def __init__(self, folder):
        from halfscope import _halfscope

        self.scalars, records, self.sample_files = _halfscope.read_run_log(os.fspath(folder))
        self.tables = {(record["name"], record["step"]): record for record in records}

    def names(self, step):
        return [name for name, at in self.tables if at == step]

    def sample(self, step):
        """{name: tensor}, and the file's metadata, by the safetensors package."""
        from safetensors import safe_open

        with safe_open(self.sample_files[step], framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def pytest_collection_modifyitems(config, items):
    """Tests marked `exhaustive` run where HALFSCOPE_EXHAUSTIVE is set (./run exhaustive), others not."""
    wanted = bool(os.environ.get("HALFSCOPE_EXHAUSTIVE"))
    chosen = [item for item in items if (item.get_closest_marker("exhaustive") is not None) == wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.fixture
def read_log():
    return Log


@pytest.fixture
def root():
    """The repository's root."""
    return ROOT


class StandInScaler:
    """torch.amp.GradScaler's rules without its kernels: PyTorch 1.13 has none for the CPU."""

    def __init__(self, init_scale=65536.0, growth_interval=2000):
        self._scale = init_scale
        self._growth_interval = growth_interval
        self._clean_steps = 0
        self._states = defaultdict(dict)

    def is_enabled(self):
        return True

    def get_scale(self):
        return self._scale

    def get_growth_interval(self):
        return self._growth_interval

    def scale(self, outputs):
        return outputs * self._scale

    def _check(self, optimizer, inverse):
        import torch

        found = torch.zeros(())
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    if not torch.isfinite(parameter.grad).all():
                        found.fill_(1.0)
                    parameter.grad.mul_(inverse)
        self._states[id(optimizer)]["found_inf"] = found

    def unscale_(self, optimizer):
        if self._states[id(optimizer)].get("unscaled"):
            raise RuntimeError("unscale_() has already been called")
        self._check(optimizer, 1.0 / self._scale)
        self._states[id(optimizer)]["unscaled"] = True

    def step(self, optimizer, *args, **kwargs):
        import torch

        state = self._states[id(optimizer)]
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            scaled = not state.get("unscaled")
            if scaled:
                self._check(optimizer, 1.0)
            optimizer.grad_scale = torch.tensor(self._scale) if scaled else None
            optimizer.found_inf = state["found_inf"]
            try:
                return optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        if not state.get("unscaled"):
            self.unscale_(optimizer)
        return None if state["found_inf"] else optimizer.step(*args, **kwargs)

    def update(self):
        if any(state["found_inf"] for state in self._states.values()):
            self._scale, self._clean_steps = self._scale * 0.5, 0
        else:
            self._clean_steps += 1
            if self._clean_steps == self._growth_interval:
                self._scale, self._clean_steps = self._scale * 2.0, 0
        self._states.clear()


@pytest.fixture
def stand_in_scaler():
    return StandInScaler
