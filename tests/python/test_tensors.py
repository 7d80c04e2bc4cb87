# SPDX-License-Identifier: Apache-2.0
"""analyze, recommend and report of arrays in memory, beside NumPy's counts and the same arrays in a file."""

import ctypes
import json
import logging
import threading

import pytest

import halfscope
from halfscope._tensors import Tensors

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors.numpy")


def values(shape, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 4, shape)).astype(dtype)


def training_step():
    """A dict with whole tensors of several roles, of four element types."""
    weight = values((16, 64), 1)
    return {"weight": {"fc": {"weight": weight}}, "update": {"fc": {"weight": weight * np.float32(2e-4)}},
            "weight_grad": {"fc": {"weight": values((16, 64), 2, "float16"), "bias": values(16, 3)}},
            "activation": {"fc": values((8, 16), 4, "float64")}, "activation_grad": {"fc": values((8, 16), 5)}}


def as_file(path, tree, **metadata):
    flat = {f"{role}/{name}": array for role, of_role in tree.items()
            for name, array in ((key if not isinstance(entry, dict) else f"{key}.{below}", array)
                                for key, entry in of_role.items()
                                for below, array in (entry.items() if isinstance(entry, dict) else [(None, entry)]))}
    safetensors.save_file({name: np.ascontiguousarray(array) for name, array in flat.items()}, path,
                          metadata={"gradients": "unscaled", **metadata})
    return path


def without_names(found):
    """A result as plain values, without the fields that name the log."""
    if isinstance(found, dict):
        return {key: without_names(value) for key, value in found.items() if key not in ("log", "logs", "notes")}
    return [without_names(value) for value in found] if isinstance(found, (list, tuple)) else found


def plain(result):
    return without_names(json.loads(json.dumps(result)))


@pytest.mark.parametrize("options", [{}, {"what_if": True, "formats": True}, {"recipes": "nvfp4", "tensor": "weight*"},
                                     {"loss_scale": 3, "subnormals": "flush", "format": "bfloat16"}])
def test_arrays_are_analysed_as_a_file_of_them_is(tmp_path, options):
    tree = training_step()
    found = halfscope.analyze(tensors=tree, **options)
    assert plain(found) == plain(halfscope.analyze(as_file(tmp_path / "a.safetensors", tree), **options))
    assert len(found.tensors) == len(plain(found)["tensors"]) >= 3


def test_counts_are_numpys():
    tree = training_step()
    for tensor in halfscope.analyze(tensors=tree, loss_scale=4).tensors:
        role, _, name = tensor.name.partition("/")
        array = tree[role]
        for key in name.split("."):
            array = array[key]
        scaled = np.abs(array.astype("float64")) * 4
        assert tensor.total == array.size
        assert tensor.flushed_to_zero == int(((scaled <= 2.0 ** -25) & (scaled != 0)).sum()), tensor.name
        assert tensor.subnormal == int(((scaled > 2.0 ** -25) & (scaled < 2.0 ** -14 - 2.0 ** -26)).sum()), tensor.name


def test_recommend_and_report_give_the_files_answer(tmp_path):
    tree = training_step()
    file = as_file(tmp_path / "a.safetensors", tree)
    advice = halfscope.recommend(tensors=tree)
    assert plain(advice) == plain(halfscope.recommend(file))
    page = tmp_path / "page.html"
    report = halfscope.report(tensors=tree)
    report.save_html(page)
    assert "<title>tensors" in page.read_text() and str(advice).partition("\n")[0] in str(report)
    advice.save_html(tmp_path / "again.html")  # reads the arrays once more
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_a_recorded_scale_is_that_of_the_gradients(tmp_path):
    tree = training_step()
    file = as_file(tmp_path / "a.safetensors", tree, gradients="scaled", scale="1024.0")
    found = halfscope.analyze(tensors=tree, recorded_scale=1024)
    assert plain(found) == plain(halfscope.analyze(file))
    unscaled = np.abs(tree["weight_grad"]["fc"]["weight"].astype("float64")) / 1024
    assert found.tensor("weight_grad/fc.weight").flushed_to_zero == int(
        ((unscaled <= 2.0 ** -25) & (unscaled != 0)).sum())
    assert found.tensor("weight/fc.weight") == halfscope.analyze(tensors=tree).tensor("weight/fc.weight")


def test_roles_come_from_keys_or_from_the_argument():
    a = values(9)
    roles = {tensor.name: tensor.role for tensor in halfscope.analyze(tensors={"a": a, "b": [a]}, roles="activation").tensors}
    assert roles == {"a": "activation", "b.0": "activation"}
    found = halfscope.analyze(tensors={"x.weight": a, "x.bias": a}, roles={"*.bias": "weight", "*.weight": "weight_grad"})
    assert {t.name: t.role for t in found.tensors} == {"x.weight": "weight_grad", "x.bias": "weight"}
    assert [t.role for t in halfscope.analyze(tensors=a).tensors] == ["weight_grad"]
    assert [t.name for t in halfscope.analyze(tensors={"weight": a}).tensors] == ["weight/0"]


def test_a_layers_own_names_are_no_roles():
    layer = {"weight": values((4, 4)), "bias": values(4, 1)}
    assert halfscope.recommend(tensors=layer).static_scale == halfscope.recommend(
        tensors={"weight_grad": layer}).static_scale is not None


def test_torch_tensors_whose_values_are_not_in_memory():
    torch = pytest.importorskip("torch")
    weight, update = torch._neg_view(torch.ones(4, dtype=torch.float16)), torch.full((4,), .6 * 2**-11)
    kept = halfscope.analyze(tensors={"weight": weight, "update": update}).tensors[0]
    assert kept.swamped == 0 and halfscope.analyze(
        tensors={"weight": -weight, "update": update}).tensors[0].swamped == 4
    freed = torch.ones(8)
    freed.storage().resize_(0)
    with pytest.raises(TypeError, match="tensor 'w"):
        halfscope.analyze(tensors={"w": freed})


def test_parameters_of_a_model_are_weights():
    torch = pytest.importorskip("torch")
    found = halfscope.analyze(tensors=dict(torch.nn.Linear(2, 2).named_parameters()))
    assert sorted(tensor.name for tensor in found.tensors) == ["weight/bias", "weight/weight"]
    with pytest.raises(KeyError, match="did you mean 'weight/weight'"):
        found.tensor("weight/wieght")


def test_ctypes_are_counted_where_they_are():
    numbers = (ctypes.c_float * 3)(1, 2, 3)
    assert halfscope.binade_table(numbers).rows() == halfscope.binade_table(np.float32([1, 2, 3])).rows()
    assert halfscope.analyze(tensors={"w": numbers}).tensors[0].total == 3


def test_arrays_are_not_copied_unless_their_order_is_another():
    array = values((64, 32))
    log, copied = Tensors({"weight": array}), Tensors({"weight": array[:, ::2]})
    halves = halfscope.analyze(log), halfscope.analyze(copied)
    array *= 0
    now = halfscope.analyze(log), halfscope.analyze(copied)
    assert [found.tensors[0].zero for found in halves] == [0, 0]
    assert [found.tensors[0].zero for found in now] == [2048, 0]


@pytest.mark.parametrize("package", ["torch", "jax", "ml_dtypes", "memory"])
def test_other_packages_arrays(package):
    array = values((6, 4), dtype="float16" if package == "memory" else "float32")
    if package == "memory":
        other = memoryview(array)
    else:
        module = pytest.importorskip(package)
        other = (array.astype(module.bfloat16) if package == "ml_dtypes" else
                 module.nn.Parameter(module.tensor(array)) if package == "torch" else module.numpy.asarray(array))
    found = halfscope.analyze(tensors={"weight_grad": {"w": other}}).tensor("weight_grad/w")
    if package == "ml_dtypes":
        array = other.astype("float32")
    assert (found.total, found.shape) == (24, [6, 4])
    assert found.flushed_to_zero == int(((array != 0) & (np.abs(array.astype("float64")) <= 2.0 ** -25)).sum())


def test_integers_are_left_out_with_a_note(caplog):
    with caplog.at_level(logging.WARNING, "halfscope"):
        found = halfscope.analyze(tensors={"w": values(3), "steps": np.int64(3), "mask": np.ones(2, bool)})
    assert [tensor.name for tensor in found.tensors] == ["w"]
    assert any("left out: 'steps' and 1 more" in text for text in caplog.messages)


@pytest.mark.parametrize("error, found, arguments", [
    (TypeError, "logs and tensors are both given", {"logs": "x", "tensors": {"a": np.zeros(1)}}),
    (TypeError, "logs is None, expected a path", {}),
    (halfscope.BadInput, "tensors: {} has no arrays of floating-point numbers", {"tensors": {}}),
    (halfscope.BadInput, "no arrays of floating-point numbers", {"tensors": {"a": np.zeros(3, int)}}),
    (TypeError, "tensor 'a': dtype complex128, expected an array of float16", {"tensors": {"a": np.zeros(3, complex)}}),
    (TypeError, "tensor 'a.0': found 'x.npy', expected an array", {"tensors": {"a": ["x.npy"]}}),
    (ValueError, "recorded_scale is 0, expected a number above 0", {"tensors": np.ones(3), "recorded_scale": 0}),
    (halfscope.BadInput, "tensor files have no scalars", {"tensors": np.ones(3), "recorded_scale": "loss_scale"}),
    (ValueError, "no role is called 'grad'", {"tensors": np.ones(3), "roles": "grad"}),
    (halfscope.BadInput, "has a key that is not UTF-8", {"tensors": {"\ud800": np.ones(3)}}),
])
def test_bad_input_is_one_line(error, found, arguments):
    with pytest.raises(error) as refused:
        halfscope.analyze(**arguments)
    assert found in str(refused.value) and "\n" not in str(refused.value)


def test_threads_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tensors in memory").mkdir()  # a folder of that name changes nothing
    trees, found = [{"weight": values(5000 + i, i)} for i in range(8)], {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: halfscope.analyze(tensors=trees[i])}))
               for i in range(8)]
    with Tensors({"weight": values(3)}).open_as_log():
        for thread in threads:
            thread.start()
        threads[0].join(0.2)
        assert not found
    for thread in threads:
        thread.join()
    for i, tree in enumerate(trees):
        tensor = found[i].tensors[0]
        assert tensor.total == 5000 + i
        assert tensor.flushed_to_zero == int((np.abs(tree["weight"]) <= 2.0 ** -25).sum())
