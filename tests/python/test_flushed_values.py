# SPDX-License-Identifier: Apache-2.0
"""What the command line says of values that were flushed, or would be: zeros of FP16 tensors, evidence
of FP16, and the rules of flushing beside those of `emulate`."""

import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import PROGRAM, json_of


def half_gradients():
    """Gradients of an FP16 run, over 2^16."""
    random = np.random.default_rng(3)
    values = np.exp2(random.normal(-6, 4, 5000)) * random.choice([-1.0, 1.0], 5000)
    return values.astype(np.float16).astype(np.float32) / np.float32(65536)


def test_fp16_without_a_zero_hides_no_underflow(tmp_path):
    half = half_gradients()
    half = half[half != 0]
    save_file({"weight_grad/a": half}, tmp_path / "h.safetensors")
    tensor = json_of("analyze", tmp_path / "h.safetensors")["tensors"][0]
    assert tensor["suspected_fp16"] and tensor["underflow_identifiable"]
    advice = json_of("recommend", tmp_path / "h.safetensors")
    assert advice["lowest"] is not None and not advice.get("underflow_not_identifiable")
    assert isinstance(advice["flushed_at_1"]["count"], int)


def test_one_value_is_no_evidence_of_fp16(tmp_path):
    save_file({"weight_grad/a": np.array([1.5 + 2.0**-10, 0.0], np.float32)}, tmp_path / "one.safetensors")
    tensor = json_of("analyze", tmp_path / "one.safetensors")["tensors"][0]
    assert "suspected_fp16" not in tensor and tensor["underflow_identifiable"]


@pytest.mark.parametrize("rule", ["flush", "flush-before", "flush-result"])
def test_analyze_flushes_what_emulate_flushes(tmp_path, rule):
    """Every binary32 value around the limits, one by one."""
    least = np.float32(2.0**-14).view(np.uint32)
    words = np.concatenate([np.arange(least - 3 * 2**13, least + 8, 2**9, dtype=np.uint32) + d
                            for d in (0, 1)]).astype(np.uint32)
    save_file({"weight_grad/a": words.view(np.float32)}, tmp_path / "near.safetensors")
    tensor = json_of("analyze", tmp_path / "near.safetensors", "--subnormals", rule)
    assert tensor["subnormals"] == rule
    tensor = tensor["tensors"][0]
    done = subprocess.run([PROGRAM, "emulate", "f32_to_f16", "--subnormals", rule], text=True,
                          input="".join(f"{word:08X}\n" for word in words), capture_output=True)
    results = [line.split()[1] for line in done.stdout.splitlines()]
    assert len(results) == len(words)
    assert tensor["flushed_to_zero"] == results.count("0000") > 0
    assert tensor["subnormal"] == 0 and tensor["normal"] == len(words) - results.count("0000") > 0
