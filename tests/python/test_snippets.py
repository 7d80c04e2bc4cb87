# SPDX-License-Identifier: Apache-2.0
"""The lines `halfscope recommend` offers run in PyTorch and do what they say."""
import json
import os
import pathlib
import subprocess
import warnings

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build")) / "halfscope"


def advice(folder, values):
    path = folder / "gradients.npy"
    np.save(path, np.asarray(values, dtype=np.float32))
    said = subprocess.run([PROGRAM, "recommend", path, "--json", "-"], check=True,
                          capture_output=True, text=True)
    return json.loads(said.stdout)


@pytest.mark.parametrize("largest", [1e-3, 1.0, 40000.0, 1e9])
def test_the_pytorch_line_sets_the_recommended_scale(tmp_path, monkeypatch, largest):
    found = advice(tmp_path, [largest, largest / 1000])
    line = found["snippets"]["pytorch"]
    # Without a GPU a GradScaler switches itself off; here it must believe there is one.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    if hasattr(torch.cuda.amp, "common"):
        monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False,
                            raising=False)
    for module in (torch.cuda.amp.grad_scaler, getattr(torch.amp, "grad_scaler", None)):
        if module is not None and hasattr(module, "amp_definitely_not_available"):
            monkeypatch.setattr(module, "amp_definitely_not_available", lambda: False)
    names = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer PyTorch prefers torch.amp
        exec(line, names)
    scaler = names["scaler"]
    assert scaler.is_enabled()
    assert scaler.get_scale() == found["static_scale"]
    assert scaler.get_growth_interval() == 2**31 - 1
    assert largest * found["static_scale"] < 65520 / 2  # the headroom asked for
    assert largest * found["static_scale"] * 2 >= 65520 / 2
