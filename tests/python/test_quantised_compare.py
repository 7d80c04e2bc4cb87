# SPDX-License-Identifier: Apache-2.0
"""Comparisons with quantised checkpoints: roles, the order of tensors, and scales that are wrong."""

import numpy as np
from program import json_of, run, stdout_of, valid_json_of, words, words_of
from quantised_files import E4M3, f32, quantised, tensor, write
from safetensors.numpy import save_file
from test_quantised_files import LAYER, modelopt_nvfp4, original


def test_a_role_that_one_file_shows_holds_for_both(tmp_path):
    case = modelopt_nvfp4()
    small = write(tmp_path / "small.safetensors", case.tensors)
    before = tmp_path / "a.safetensors"
    save_file({case.name: case.original}, before)  # without the metadata "format": "pt"
    for pair in ((before, small), (small, before)):
        found = valid_json_of("compare", *pair)
        assert [one["name"] for one in found["tensors"]] == [f"weight/{case.name}"]
        assert any("it is compared with a model's weights" in note for note in found["notes"])
    (one,) = json_of("compare", before, before)["tensors"]
    assert one["name"] == f"weight_grad/{case.name}"  # nothing shows weights


def test_two_roles_of_one_tensor_are_named(tmp_path):
    case = modelopt_nvfp4()
    small = write(tmp_path / "small.safetensors", case.tensors)
    before = tmp_path / "a.safetensors"
    save_file({f"weight_grad/{case.name}": case.original}, before)
    (line,) = run("compare", before, small, expect=1).stderr.splitlines()[-1:]
    assert line.endswith(
        f"tensor '{case.name}' is in both, as weight_grad in the first and weight in the second, "
        "expected one role; name it for both, such as with --role '*=weight'"
    )
    (one,) = valid_json_of("compare", before, small, "--role", "*=weight")["tensors"]
    assert one["name"] == f"weight/{case.name}" and "stored" in one["b"]


def test_the_tensor_with_most_vanished_blocks_is_first(tmp_path):
    """Half of the FP8 tensor's blocks vanish, but their values are tiny: its ratio is the best."""
    case, eight = modelopt_nvfp4(), original(3, (256, 128))
    eight[128:] *= 2.0**-20
    scales = np.array([[np.abs(eight).max() / 448], [0]], np.float32)
    codes, _ = quantised(eight, E4M3, (128, 128), scales)
    tensors = case.tensors | {"e": tensor(codes, "F8_E4M3"), "e_scale": f32(scales)}
    small = write(tmp_path / "small.safetensors", tensors)
    before = write(tmp_path / "a.safetensors", {case.name: f32(case.original), "e": f32(eight)})
    text = stdout_of("compare", before, small)
    assert "The largest share vanished in weight/e: 50.0 % of 2 blocks." in words(text)
    table = text[text.index("Tensors stored as codes, most vanished blocks first"):]
    assert table.index("weight/e ") < table.index(f"weight/{case.name}")
    stored = [one["b"]["stored"] for one in json_of("compare", before, small)["tensors"]]
    assert max(stored, key=lambda one: one["signal_to_noise"])["blocks"] == 2


def test_an_inverted_second_scale_is_named(tmp_path):
    case = modelopt_nvfp4()
    before = write(tmp_path / "a.safetensors", {case.name: f32(case.original)})
    name, sentence = f"{LAYER}.weight_scale_2", "in B may be inverted or missing."
    for wrong in (False, True):
        if wrong:
            scale = np.frombuffer(case.tensors[name][2], np.float32)
            case.tensors[name] = f32(1 / scale)
        small = write(tmp_path / "small.safetensors", case.tensors)
        assert (sentence in words_of("compare", before, small)) == wrong
    assert f"The errors of weight/{LAYER}.weight are about as large as" in words_of("compare", before, small)
