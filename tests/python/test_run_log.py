# SPDX-License-Identifier: Apache-2.0
"""halfscope.RunLog: a log that a loop of NumPy, JAX or PyTorch writes, judged by NumPy's own counts."""

import collections
import dataclasses
import json
import os
import pathlib
import threading

import pytest

import halfscope
from halfscope import _halfscope

np = pytest.importorskip("numpy")

Pair = collections.namedtuple("Pair", "kernel bias")


@dataclasses.dataclass
class Layer:
    kernel: object
    bias: object = None


def values(shape, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 4, shape)).astype(dtype)


def binades_of(array):
    """[(e, number of finite values with magnitude in [2^e, 2^(e+1)))], by frexp."""
    finite = np.abs(array[np.isfinite(array) & (array != 0)]).astype("float64")
    return sorted(collections.Counter((np.frexp(finite)[1] - 1).tolist()).items())


def stored(path):
    """({name: bytes}, metadata) of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__")
    return {name: data[begin + tensor["data_offsets"][0]:begin + tensor["data_offsets"][1]]
            for name, tensor in header.items()}, metadata


def written(folder):
    """{path of each file: its bytes}"""
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_numpy_loop_is_counted_as_numpy_counts(tmp_path, read_log):
    grads = {step: {"hidden": {"w": values((7, 5), step), "b": values(5, step + 50)},
                    "out": [values((3, 2, 2), step, "float16")]} for step in (0, 3)}
    grads[3]["hidden"]["b"][:3] = np.nan, -np.inf, -0.0
    with halfscope.RunLog(tmp_path / "run", scaled=True, about={"data": "none"}) as log:
        log.step(loss=np.float32(2.5), learning_rate=0.1, loss_scale=1024, found_inf=False,
                 weight_grad=grads[0], weight=values(4), activation_grad={"a": values(9, 7)})
        log.step(loss=np.float64(1.5), loss_scale=1024, max_abs_weight_grad=0.75)
        log.step(3, loss_scale=512, found_inf=np.bool_(True), weight_grad=grads[3], weight=None)
    assert log.folder == str(tmp_path / "run")
    read = read_log(log.folder)
    assert read.names(0) == ["weight_grad/hidden.w", "weight_grad/hidden.b", "weight_grad/out.0", "weight/0",
                             "activation_grad/a"]
    for step, scale in ((0, 1024), (3, 512)):
        for name, array in (("hidden.w", grads[step]["hidden"]["w"]), ("hidden.b", grads[step]["hidden"]["b"]),
                            ("out.0", grads[step]["out"][0])):
            record = read.tables[f"weight_grad/{name}", step]
            finite = array[np.isfinite(array)].astype("float64")
            assert record["table"].binades() == binades_of(array), name
            assert record["table"].total == array.size and record["shape"] == array.shape
            assert record["source_dtype"] == {"float32": "F32", "float16": "F16"}[str(array.dtype)]
            assert (record["scaled"], record["scale"]) == (True, scale)
            assert record["mean"] == pytest.approx(finite.mean(), rel=1e-12)
            assert record["sum_squares"] == pytest.approx((finite ** 2).sum(), rel=1e-12)
    assert read.tables["weight/0", 0]["scaled"] is False
    table = read.tables["weight_grad/hidden.b", 3]["table"]
    assert (table.nan, table.inf, table.zero, table.negative_zero) == (1, 1, 1, 1)
    first, second, last = (read.scalars[step] for step in (0, 1, 3))
    largest = max(float(np.abs(a).max()) for a in (*grads[0]["hidden"].values(), *grads[0]["out"]))
    assert first == {"loss": 2.5, "learning_rate": 0.1, "loss_scale": 1024, "found_inf": False, "more": {},
                     "max_abs_weight_grad": largest / 1024,
                     "max_abs_activation_grad": float(np.abs(values(9, 7)).max()) / 1024}
    assert (second["loss"], second["max_abs_weight_grad"], second["found_inf"]) == (1.5, 0.75, None)
    assert np.isnan(last["max_abs_weight_grad"]) and last["found_inf"] is True and last["loss"] is None


def test_a_sample_has_the_bits_and_recommend_reads_the_log(tmp_path, read_log):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    trees = {"weight": {"w": values((4, 8))}, "update": {"w": values((4, 8), 1)},
             "weight_grad": {"w": values((4, 8), 2).astype(ml_dtypes.bfloat16)},
             "activation": {"x": values(6, 3).astype(ml_dtypes.float8_e4m3fn)},
             "optimizer_state": {"exp_avg": {"w": values((4, 8), 4)}, "step": np.int64(3)}}
    with halfscope.RunLog(tmp_path / "run", scaled=True) as log:
        log.step(loss_scale=8, found_inf=False, sample=True, **trees)
    tensors, metadata = stored(read_log(log.folder).sample_files[0])
    assert metadata == {"gradients": "scaled", "activation_gradients": "scaled", "found_inf": "0", "scale": "8.0",
                        "schema": "1", "step": "0"}
    assert sorted(tensors) == ["activation/x", "optimizer_state/exp_avg/w", "update/w", "weight/w", "weight_grad/w"]
    for role, name in (("weight", "w"), ("update", "w"), ("weight_grad", "w"), ("activation", "x")):
        assert tensors[f"{role}/{name}"] == trees[role][name].tobytes(), role
    found = halfscope.analyze(log.folder, what_if=True)
    assert found.tensor("weight/w").updates == 32
    unscaled = trees["weight_grad"]["w"].astype("float64") / 8
    assert found.tensor("weight_grad/w").flushed_to_zero == int(
        ((np.abs(unscaled) <= 2.0 ** -25) & (unscaled != 0)).sum())
    assert "loss scale" in str(halfscope.recommend(log.folder))


def test_names_are_the_keys_on_the_way(tmp_path, read_log):
    jax = pytest.importorskip("jax")

    class Own:
        def __init__(self, inner):
            self.inner = inner

    jax.tree_util.register_pytree_with_keys(
        Own, lambda own: ([(jax.tree_util.GetAttrKey("inner"), own.inner)], None), lambda _, inner: Own(*inner))
    a = values(3)
    with halfscope.RunLog(tmp_path / "run") as log:
        log.step(weight={"d": {0: a}, "l": [a, (a, None)], "p": Pair(a, {"x": a}), "c": Layer(a),
                         "j": Own({"deep": jax.numpy.asarray(a)}), "mlp/~/linear": a})
    assert read_log(log.folder).names(0) == [f"weight/{name}" for name in (
        "d.0", "l.0", "l.1.0", "p.kernel", "p.bias.x", "c.kernel", "j.inner.deep", "mlp/~/linear")]


def test_jax_arrays_are_counted_and_their_counters_skipped(tmp_path, read_log):
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    weights = {"w": jax.numpy.asarray(values((3, 4))), "b": jax.numpy.zeros(4, "bfloat16")}
    state = optax.adam(1e-3).init(weights)
    with halfscope.RunLog(tmp_path / "run") as log:
        log.step(weight=weights, optimizer_state=state, loss=jax.numpy.float32(2))
        with pytest.raises(TypeError, match=r"^tensor 'weight_grad/b': .* cannot be read \("):
            jax.jit(lambda tree: log.step(weight_grad=tree))(weights)
    read = read_log(log.folder)
    assert sorted(read.names(0)) == [*(f"optimizer_state/0/{m}.{w}" for m in ("mu", "nu") for w in ("b", "w")),
                                     "weight/b", "weight/w"]
    assert read.tables["weight/w", 0]["table"] == halfscope.binade_table(values((3, 4)))
    assert read.tables["weight/b", 0]["source_dtype"] == "BF16" and list(read.scalars) == [0]


def test_the_order_of_memory_and_the_package_do_not_matter(tmp_path, read_log):
    torch = pytest.importorskip("torch")
    array = values((6, 10))
    tensor = torch.nn.Parameter(torch.tensor(array))
    with halfscope.RunLog(tmp_path / "run") as log:
        log.step(weight={"plain": array, "fortran": np.asfortranarray(array), "cut": array[:, ::2],
                         "torch": tensor, "transposed": tensor.t(), "bf16": tensor.bfloat16(),
                         "memory": memoryview(array), "scalar": np.float32(0.5), "none": array[:0]})
    read = read_log(log.folder)
    for name in ("plain", "fortran", "torch", "transposed", "memory"):
        assert read.tables[f"weight/{name}", 0]["table"] == halfscope.binade_table(array), name
    assert read.tables["weight/cut", 0]["table"] == halfscope.binade_table(np.ascontiguousarray(array[:, ::2]))
    assert read.tables["weight/bf16", 0]["table"] == halfscope.binade_table(tensor.bfloat16())
    assert read.tables["weight/scalar", 0]["shape"] == () and read.tables["weight/none", 0]["shape"] == (0, 10)
    assert read.tables["weight/transposed", 0]["shape"] == (10, 6)


def test_the_recorder_and_a_run_log_agree(tmp_path, read_log):
    torch = pytest.importorskip("torch")
    from halfscope.torch import Recorder
    from small_runs import loss_of, small_network

    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "recorder") as recorder, halfscope.RunLog(tmp_path / "own") as log:
        for step in range(3):
            optimizer.zero_grad()
            loss = recorder.loss(loss_of(model, step))
            loss.backward()
            log.step(loss=loss, learning_rate=0.1, found_inf=False, loss_scale=1,
                     weight=dict(model.named_parameters()),
                     weight_grad={name: p.grad for name, p in model.named_parameters()})
            optimizer.step()
    own, other = read_log(tmp_path / "own"), read_log(tmp_path / "recorder")
    assert own.tables == {key: {**record, "computed_dtype": None} for key, record in other.tables.items()
                          if key in own.tables}
    assert len(own.tables) == 3 * 8
    for step, scalars in own.scalars.items():
        assert scalars == {**other.scalars[step], "max_abs_activation_grad": None}


def test_ranks_write_a_log_each(tmp_path):
    for rank in range(2):
        with halfscope.RunLog(tmp_path / "run", rank=rank, world_size=2, sharded=["weight_grad"]) as log:
            log.step(weight_grad={"w": values(10, rank)}, loss=1)
        assert log.folder == str(tmp_path / "run" / f"rank-000{rank}")
    tensor = halfscope.analyze(tmp_path / "run").tensor("weight_grad/w")
    assert tensor.total == 20
    assert tensor.flushed_to_zero == sum(int((np.abs(values(10, rank)) <= 2.0 ** -25).sum()) for rank in range(2))


def test_a_scale_that_cannot_be_undone_is_unknown(tmp_path, read_log):
    with halfscope.RunLog(tmp_path / "run", scaled=True) as log:
        log.step(loss_scale=0, weight_grad=values(3))
        log.step(loss_scale=float("inf"), weight_grad=values(3))
        log.step(loss_scale=2, weight_grad=values(3))
    read = read_log(log.folder)
    assert [read.tables["weight_grad/0", step]["scale"] for step in (0, 1)] == [None, None]
    assert all(np.isnan(read.scalars[step]["max_abs_weight_grad"]) for step in (0, 1))
    found = halfscope.analyze(log.folder)  # the other steps can be read
    assert found.tensors[0].steps == [2]
    assert "2 histograms are skipped, from step 0 on" in " ".join(found.notes)


def test_steps_of_several_threads_are_all_written(tmp_path, read_log):
    with halfscope.RunLog(tmp_path / "run") as log:
        def write():
            for _ in range(25):
                log.step(loss=1.0, weight_grad=values(20000))

        threads = [threading.Thread(target=write) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert sorted(read_log(log.folder).scalars) == list(range(100))


def test_a_folder_has_one_log_or_ranks(tmp_path):
    halfscope.RunLog(tmp_path / "ranks", rank=1, world_size=2)
    halfscope.RunLog(tmp_path / "ranks", rank=0, world_size=2)
    halfscope.RunLog(tmp_path / "one")
    for out, more in (("ranks", {}), ("one", {"rank": 0, "world_size": 2})):
        with pytest.raises(halfscope.BadInput, match="holds a run log already"):
            halfscope.RunLog(tmp_path / out, **more)


def test_integers_are_left_out(tmp_path, read_log):
    with halfscope.RunLog(tmp_path / "run") as log:
        log.step(weight={"w": values(2), "batches": np.int64(3), "ids": np.zeros(2, ">i4")})
    assert list(read_log(log.folder).tables) == [("weight/w", 0)]


def itself():
    tree = {}
    tree["a"] = tree
    return tree


@pytest.mark.parametrize("error, found, step", [
    (halfscope.BadInput, "weight_grad: {} has no arrays", {"weight_grad": {}}),
    (halfscope.BadInput, "has no arrays", {"weight": {"a": [None, {}]}}),
    (halfscope.BadInput, "tensor 'weight/a.b': two arrays have this name",
     {"weight": {"a": {"b": values(2)}, "a.b": values(2)}}),
    (halfscope.BadInput, "weight: the tree has more than 100 levels", {"weight": itself()}),
    (halfscope.BadInput, "has no arrays of floating-point numbers",
     {"weight_grad": {"step": np.int32(1)}}),
    (halfscope.BadInput, "has a name of more than 4096 bytes", {"weight": {"w" * 4090: values(2)}}),
    (halfscope.BadInput, "loss_scale is -4.0, expected a number above 0", {"loss_scale": -4}),
    (TypeError, "masked: pass array.compressed", {"weight": np.ma.masked_array(values(2), [0, 1])}),
    (TypeError, "tensor 'weight/w': dtype complex64", {"weight": {"w": np.zeros(2, "complex64")}}),
    (TypeError, "tensor 'weight/w': dtype >f4", {"weight": {"w": np.zeros(2, ">f4")}}),
    (halfscope.BadInput, "tensor 'weight/\\udc00' has a key that is not UTF-8", {"weight": {"\udc00": values(2)}}),
    (TypeError, "tensor 'weight/0': found 'abc', expected an array", {"weight": ["abc"]}),
    (TypeError, "step() has no argument 'gradients'; the roles of tensors are weight,", {"gradients": values(2)}),
    (TypeError, "loss is [1, 2], expected a number", {"loss": [1, 2]}),
    (TypeError, "step is 'x', expected the number of a step", {"step": "x"}),
    (halfscope.BadInput, "step 4: expected a number from 5", {"step": 4}),
    (halfscope.BadInput, f"step {2**53}: expected a number from 5", {"step": 2**53}),
    (TypeError, "loss is int of", {"loss": 10**5000}),
    (halfscope.BadInput, "sample=True saves arrays, but the step has none", {"sample": True}),
    (halfscope.BadInput, "but no loss_scale", {"weight_grad": values(2)}),
])
def test_a_wrong_step_is_one_line_and_writes_nothing(tmp_path, error, found, step):
    with halfscope.RunLog(tmp_path / "run", scaled=True, first_step=4) as log:
        log.step(loss=1, loss_scale=1, weight=values(2))
        before = written(tmp_path)
        with pytest.raises(error) as refused:
            log.step(**step)
        assert found in str(refused.value) and "\n" not in str(refused.value)
        assert written(tmp_path) == before
        log.step(loss=2)
    assert list(_halfscope.read_run_log(log.folder)[0]) == [4, 5]


def test_a_log_is_never_written_over(tmp_path):
    with halfscope.RunLog(tmp_path / "run") as log:
        log.step(loss=1)
    before = written(tmp_path)
    (tmp_path / "file").write_text("mine")
    for out, found in ((tmp_path / "run", "holds a run log already"), (tmp_path / "file", "file")):
        with pytest.raises(halfscope.BadInput, match=found) as refused:
            halfscope.RunLog(out)
        assert "\n" not in str(refused.value)
    with pytest.raises(halfscope.BadInput, match="this log is closed"):
        log.step(loss=2)
    assert written(tmp_path / "run") == before and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("error, arguments", [
    (TypeError, {"first_step": "a"}), (ValueError, {"first_step": -1}), (TypeError, {"about": [1]}),
    (ValueError, {"rank": 2, "world_size": 2}), (ValueError, {"rank": "0"}),
    (ValueError, {"about": {"x": float("nan")}}), (ValueError, {"sharded": ["none"]}),
])
def test_wrong_arguments_make_no_folder(tmp_path, error, arguments):
    with pytest.raises(error) as refused:
        halfscope.RunLog(tmp_path / "run", **arguments)
    assert "\n" not in str(refused.value) and not os.path.exists(tmp_path / "run")
