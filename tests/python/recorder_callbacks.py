# SPDX-License-Identifier: Apache-2.0
"""What holds of RecorderCallback in every framework. train(folder, callback, network) trains
with the callback in that framework."""

import re

import pytest
import torch

import halfscope


def require_refusal_of_a_folder_with_a_log(folder, callback, train, network):
    """`callback` and `network` make one."""
    train(folder, callback(folder / "run"))
    model = network()
    with pytest.raises(halfscope.BadInput, match="holds a run log already"):
        train(folder, callback(folder / "run"), model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), network().parameters()))


def require_alerts_and_a_summary(folder, callback, train):
    lines = []
    with pytest.raises(ValueError, match="found 'nan >', expected 'FIELD OP NUMBER"):
        callback.alert("nan >")
    with pytest.raises(RuntimeError, match="has not begun"):
        callback.summary()
    callback.alert("max_abs > 0 for network.3.weight", lines.append)
    train(folder, callback)
    assert [step[0].partition(":")[0] for step in lines] == ["step 0", "step 3"]
    assert callback.summary() == str(halfscope.recommend(folder / "run"))


def documented(root, module):
    """The lines of docs/recording.md that use the module."""
    (lines,) = (block for block in re.findall(r"```python\n(.*?)```", (
        root / "docs/recording.md").read_text(), re.S) if module in block)
    return lines
