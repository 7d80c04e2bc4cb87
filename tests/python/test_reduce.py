# SPDX-License-Identifier: Apache-2.0
"""`halfscope reduce`: what sums over ranks, microbatches and elements lose. The judge adds one by
one in NumPy's float16 or in rationals."""
import math
from fractions import Fraction

import numpy as np
import pytest

import halfscope
from program import json_of, run, words_of
from sum_runs import one, reduce, write_rank, write_ranks

def bfloat16(x):
    """Ties to even, as binary32."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def orders(order, count, element, elements):
    """The additions of one sum as a tree of indices: (left, right) or an index."""
    indices = list(range(count))
    if order == "ring":
        chunk = math.ceil(elements / count)
        first = (element // chunk + 1) % count
        indices = indices[first:] + indices[:first]
    if order in ("sequential", "ring"):
        tree = indices[0]
        for index in indices[1:]:
            tree = (tree, index)
        return tree
    if order == "pairwise":
        def halves(part):
            return part[0] if len(part) == 1 else (halves(part[:len(part) // 2]), halves(part[len(part) // 2:]))
        return halves(indices)
    power = 1 << (count.bit_length() - 1)  # recursive halving
    extra = count - power
    nodes = [(2 * i, 2 * i + 1) for i in range(extra)] + [i + extra for i in range(extra, power)]
    while len(nodes) > 1:
        half = len(nodes) // 2
        nodes = [(nodes[i], nodes[i + half]) for i in range(half)]
    return nodes[0]


def added(tree, addends, told):
    if not isinstance(tree, tuple):
        return addends[tree]
    left, right = (added(part, addends, told) for part in tree)
    with np.errstate(over="ignore"):
        out = left + right
    told["additions"] += 1
    told["lost"] += int(left != 0 and right != 0 and np.isfinite(out) and out in (left, right))
    return out


@pytest.mark.parametrize("order", ["sequential", "ring", "tree", "pairwise"])
@pytest.mark.parametrize("dtype, name", [(np.float16, "binary16"), (np.float32, "binary32")])
@pytest.mark.parametrize("count", [2, 3, 8, 13])
def test_every_order_is_that_of_additions_one_by_one(tmp_path, order, dtype, name, count):
    rng = np.random.default_rng(count)
    values = (rng.standard_normal((count, 57)) * 2.0 ** rng.integers(-8, 12, (count, 57))).astype(dtype)
    values[:, 3] = np.finfo(dtype).max  # overflows
    values[0, 5] = np.nan
    found = one(write_ranks(tmp_path / "run", values), "--over", "ranks", "--order", order, "--format", name)
    told = {"additions": 0, "lost": 0}
    squared_error, squared_exact, overflow = Fraction(0), Fraction(0), 0
    for element in range(values.shape[1]):
        addends = values[:, element]
        if not np.isfinite(addends).all():
            continue
        result = added(orders(order, count, element, values.shape[1]), addends, told)
        if not np.isfinite(result):
            overflow += 1
            continue
        exact = sum(Fraction(float(x)) for x in addends)
        squared_error += (Fraction(float(result)) - exact) ** 2
        squared_exact += exact ** 2
    assert (found["additions"], found["lost"], found["overflow"]) == (
        told["additions"], told["lost"], overflow)
    assert found["sums"] == 56 and found["nonfinite"] == 1 and found["count"] == count
    assert found["relative_l2"] == pytest.approx(math.sqrt(squared_error / squared_exact), rel=1e-12)


@pytest.mark.parametrize("count, lost, error", [(96, 0.044, 0.0095), (384, 0.186, 0.027)])
def test_known_answer_of_bfloat16(tmp_path, count, lost, error):
    """field-2026: BF16(m + n), m and n independent N(0, 1), sequential."""
    rng = np.random.default_rng(1)
    mean = rng.standard_normal(4000)
    log = write_ranks(tmp_path / "run", [bfloat16(mean + rng.standard_normal(4000)) for _ in range(count)])
    found = one(log, "--over", "ranks", "--format", "bf16", "--order", "sequential")
    assert found["lost_share"] == pytest.approx(lost, abs=0.003)
    assert found["relative_l2"] == pytest.approx(error, rel=0.05)
    said = run("reduce", log, "--format", "bf16")[0]
    assert f"BF16 all-reduce over {count} ranks loses" in said
    assert ("reduce in FP32" in said) == (error > 0.01)


def test_a_prediction_holds_the_truth(tmp_path):
    rng = np.random.default_rng(2)
    mean = rng.standard_normal(20000)
    log = write_ranks(tmp_path / "run", [bfloat16(mean + rng.standard_normal(20000)) for _ in range(8)])
    found = [entry for entry in reduce(log, "--format", "bf16", "--order", "sequential", "--count", 384)
             if entry["predicted"] and entry["name"] == "*"]
    (predicted,) = found
    assert predicted["recorded"] == 8 and predicted["count"] == 384
    low, high = predicted["lost_share"]
    assert low <= 0.186 <= high and high - low < 0.045
    low, high = predicted["relative_l2"]
    assert low <= 0.027 * 1.02 and high >= 0.027 * 0.98 and high / low < 1.3
    assert predicted["lost"][0] == pytest.approx(predicted["lost_share"][0] * predicted["additions"])
    assert "BF16 all-reduce over 384 ranks would lose" in run("reduce", log, "--count", 384)[0]


def test_too_few_ranks_to_predict_from(tmp_path):
    log = write_ranks(tmp_path / "run", np.ones((3, 8), np.float32))
    assert "has no sums of 4 addends or more, which predictions need" in run(
        "reduce", log, "--count", 64)[1]


def test_microbatches_are_the_first_dimension(tmp_path):
    rng = np.random.default_rng(3)
    parts = rng.standard_normal((6, 4, 5)).astype(np.float16)
    log = write_rank(tmp_path / "run", {"local_weight_grad/w": parts, "weight_grad/w": parts.sum(0)})
    found = one(log, "--over", "microbatches", "--format", "fp16", "--order", "sequential",
                name="local_weight_grad/w")
    assert (found["count"], found["sums"], found["additions"]) == (6, 20, 100)
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    exact = parts.astype(np.float64).sum(0)
    error = np.linalg.norm(result.astype(np.float64) - exact) / np.linalg.norm(exact)
    assert found["relative_l2"] == pytest.approx(error, rel=1e-12)
    assert {entry["order"] for entry in reduce(log, "--over", "microbatches")} == {
        "sequential", "tree", "pairwise"}


def test_ranks_add_their_microbatches(tmp_path):
    rng = np.random.default_rng(4)
    values = rng.standard_normal((4, 3, 50)).astype(np.float32)
    for rank in range(4):
        write_rank(tmp_path / f"run/rank-{rank:04}", {"local_weight_grad/w": values[rank],
                                                      "weight_grad/w": values[rank].sum(0)}, rank=rank, ranks=4)
    found = reduce(tmp_path / "run")
    assert {(entry["over"], entry["count"]) for entry in found if entry["name"] == "local_weight_grad/w"} == {
        ("ranks", 4), ("microbatches", 3)}
    (microbatches,) = [e for e in found if e["name"] == "*" and e["over"] == "microbatches"
                       and e["format"] == "binary16" and e["order"] == "sequential"]
    assert microbatches["sums"] == 4 * 50


NETWORK = """Net(
  (fc): Linear(in_features=8, out_features=4, bias=True)
  (layernorm): LayerNorm((4,), eps=1e-05, elementwise_affine=True)
  (softmax): Softmax(dim=1)
)"""


def test_4096_ones_stop_at_2048(tmp_path):
    ones = np.ones((4096, 4), np.float16)
    log = write_rank(tmp_path / "run", {"activation_grad/fc": ones, "weight_grad/fc.bias": np.ones(4, np.float16)},
                     NETWORK)
    found = one(log, "--over", "elements", "--format", "fp16", "--order", "sequential",
                name="activation_grad/fc")
    assert found["sum"] == "bias_gradient"
    assert (found["count"], found["sums"], found["lost"]) == (4096, 4, 4 * 2048)
    assert found["relative_l2"] == 0.5
    said = words_of("reduce", log, "--format", "fp16", "--order", "sequential")
    assert "bias gradient of activation_grad/fc (4,096 addends, error 50.0 %)" in said
    pairwise = one(log, "--over", "elements", "--format", "fp16", "--order", "pairwise",
                   name="activation_grad/fc")
    assert pairwise["relative_l2"] == 0 and pairwise["lost"] == 0


def test_sums_of_layers_are_found_by_their_class(tmp_path):
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((64, 4)) * 200).astype(np.float32)
    log = write_rank(tmp_path / "run", {
        "weight/layernorm.weight": np.ones(4, np.float32), "activation/fc": x, "activation/layernorm": x / 200,
        "activation/softmax": x, "weight_grad/fc.weight": x * 300}, NETWORK)
    found = {(e["sum"], e["name"]): e for e in reduce(log, "--format", "fp16", "--order", "sequential")}
    assert set(found) == {("mean", "activation/fc"), ("variance", "activation/fc"),
                          ("softmax", "activation/layernorm"),
                          ("gradient_norm", "weight_grad/fc.weight")}
    assert found["variance", "activation/fc"]["count"] == 4
    assert found["softmax", "activation/layernorm"]["sums"] == 64
    norm = found["gradient_norm", "weight_grad/fc.weight"]
    assert (norm["sums"], norm["count"], norm["overflow"]) == (1, 256, 1)
    centred = x.astype(np.float64) - x.astype(np.float64).mean(1, keepdims=True)
    with np.errstate(over="ignore"):
        squares = (centred ** 2).astype(np.float32).astype(np.float16)
        sums = squares[:, 0]
        for column in squares.T[1:]:
            sums = sums + column
    assert found["variance", "activation/fc"]["overflow"] == int(np.isinf(sums).sum()) > 0


def test_squares_are_rounded_to_binary32_first(tmp_path):
    """A square just above a tie of binary16, which binary32 rounds to the tie: then it goes down to
    a number that 4 + x keeps. Rounded once it would go up to one that 4 + x rounds."""
    roots = np.sqrt(1 + np.arange(0, 256) / 256 + 2.0 ** -11).astype(np.float32)
    squares = roots.astype(np.float64) ** 2
    ties = 1 + np.arange(0, 256) / 256 + 2.0 ** -11
    root = roots[(squares > ties) & (squares.astype(np.float32) == ties)][0]
    gradient = np.array([2, root], np.float32)
    log = write_rank(tmp_path / "run", {"weight_grad/w": gradient})
    found = one(log, "--over", "elements", "--format", "fp16", "--order", "sequential",
                name="weight_grad/w")
    assert (found["sum"], found["count"], found["relative_l2"]) == ("gradient_norm", 2, 0)


def test_what_is_refused(tmp_path):
    log = write_ranks(tmp_path / "run", np.ones((4, 8), np.float32))
    for options, said in ((("--format", "e4m3"), "--format: found 'e4m3', expected binary16"),
                          (("--over", "elements", "--count", "8"), "it is of ranks or microbatches"),
                          (("--over", "microbatches", "--order", "ring"), "a ring is of ranks"),
                          (("--count", "1"), "--count"), (("--over", "files"), "--over")):
        assert said in run("reduce", log, *options, expect=2)[1]
    assert "has no full gradients from before the sum over microbatches; record with" in run(
        "reduce", log, "--over", "microbatches", expect=1)[1]
    assert "no full tensor whose elements a layer adds up" in run(
        "reduce", log, "--over", "elements", expect=1)[1]
    run("count", log, "--out", tmp_path / "log.hst")
    with pytest.raises(ValueError, match="order: found 'random', expected sequential"):
        halfscope.reduce(log, order="random")
    assert "needs the tensors themselves; ask the log that was counted" in run(
        "reduce", tmp_path / "log.hst", expect=1)[1]


def test_python_has_the_same(tmp_path):
    log = write_ranks(tmp_path / "run", np.ones((4, 8), np.float32))
    found = halfscope.reduce(str(log), format="fp16", order="tree")
    assert [dict(one) for one in found] == reduce(log, "--format", "fp16", "--order", "tree")
    assert (found[0].name, found[0].count, found[0].lost) == ("*", 4, 0)
    assert str(found) == "FP16 all-reduce over 4 ranks loses 0 % of additions, error 0 %: harmless."


def test_the_report_and_the_recommendation_have_them(tmp_path):
    ones = np.ones((4096, 4), np.float16)
    log = write_rank(tmp_path / "run", {"activation_grad/fc": ones, "weight_grad/fc.bias": np.ones(4, np.float16)},
                     NETWORK)
    keep = json_of("recommend", log)["keep_in_fp32"]
    assert [(k["name"], k["kind"], k["why"]) for k in keep] == [
        ("activation_grad/fc", "reduction", "its bias gradient, a sum of 4,096 addends one after the other, "
                                            "stalls: the error is 50.0 %")]
    run("report", log, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'id="sums"' in page and "FP16 accumulators are not enough for 1 of" in page
    run("report", log, "--out", tmp_path / "page.md")
    assert "FP16 accumulators are not enough for 1 of" in (tmp_path / "page.md").read_text()


def test_threads_and_parts_change_nothing(tmp_path):
    """A tensor that is read in several parts has the ring's chunks of the whole."""
    rng = np.random.default_rng(6)
    values = rng.standard_normal((3, (1 << 18) + 77)).astype(np.float16)
    log = write_ranks(tmp_path / "run", values)
    found = one(log, "--order", "ring", "--format", "fp16", name="local_weight_grad/w")
    chunk = math.ceil(values.shape[1] / 3)
    lost = 0
    for element in (*range(0, 50), *range(chunk - 50, chunk + 50), *range(values.shape[1] - 100, values.shape[1])):
        told = {"additions": 0, "lost": 0}
        added(orders("ring", 3, element, values.shape[1]), values[:, element], told)
        lost += told["lost"]
    starts = (np.arange(values.shape[1]) // chunk + 1) % 3
    turned = np.stack([values[(starts + i) % 3, np.arange(values.shape[1])] for i in range(3)])
    first = turned[0] + turned[1]
    second = first + turned[2]
    whole = sum(int(((s == a) | (s == b))[(a != 0) & (b != 0)].sum())
                for s, a, b in ((first, turned[0], turned[1]), (second, first, turned[2])))
    assert found["lost"] == whole >= lost
    assert found == one(log, "--order", "ring", "--format", "fp16", "--threads", "1", name="local_weight_grad/w")
