# SPDX-License-Identifier: Apache-2.0
"""The recorder on parameters that ranks have parts of: FSDP2, and what is refused."""

import json

import pytest

torch = pytest.importorskip("torch")

from small_runs import join_ranks, loss_of, small_network  # noqa: E402

import halfscope  # noqa: E402
from halfscope.torch import Recorder  # noqa: E402
from halfscope.torch.guard import Hook  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
    pytest.skip("this PyTorch has no FSDP2 (fully_shard), which came with 2.6", allow_module_level=True)

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,  # noqa: E402
                                               parallelize_module)

STEPS = 3
OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
              "adamw": lambda p: torch.optim.AdamW(p, lr=0.01)}


def shard(model):
    fully_shard(model[3])  # two groups: one more for the root
    return fully_shard(model)


def clip(model, kind):
    if kind != "sgd":
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)


def train_rank(rank, folder, kind):
    join_ranks(rank, folder)
    torch.manual_seed(3)
    model = shard(small_network())
    optimizer = OPTIMIZERS[kind](model.parameters())
    made = []
    with Recorder(model, optimizer, f"{folder}/run", every=2, sample_every=[2]) as recorder:
        for step in range(STEPS):
            before = {name: p.to_local().detach().clone() for name, p in model.named_parameters()}
            optimizer.zero_grad()
            recorder.loss(loss_of(model, 10 * rank + step)).backward()
            gradients = {name: p.grad.to_local().clone() for name, p in model.named_parameters()}
            clip(model, kind)
            optimizer.step()
            after = {name: p.to_local().detach().clone() for name, p in model.named_parameters()}
            made.append((before, gradients, after))
    torch.save(made, f"{folder}/made-{rank}.pt")
    torch.distributed.destroy_process_group()


def train_whole(folder, kind):
    """The same steps on one rank: the gradient is the mean of both batches'."""
    model = small_network()
    optimizer = OPTIMIZERS[kind](model.parameters())
    with Recorder(model, optimizer, folder, every=2):
        for step in range(STEPS):
            optimizer.zero_grad()
            (0.5 * (loss_of(model, step) + loss_of(model, 10 + step))).backward()
            clip(model, kind)
            optimizer.step()


@pytest.fixture(scope="module", params=OPTIMIZERS)
def trained(request, tmp_path_factory):
    """(folder of the sharded run, what each rank made, folder of the same run on one rank)"""
    folder = tmp_path_factory.mktemp(request.param)
    torch.multiprocessing.spawn(train_rank, (str(folder), request.param), nprocs=2)
    train_whole(folder / "whole", request.param)
    made = [torch.load(folder / f"made-{rank}.pt") for rank in (0, 1)]
    return folder / "run", made, folder / "whole"


def logs_of(run, read_log):
    return [read_log(run / f"rank-{rank:04d}") for rank in (0, 1)]


def test_each_rank_records_its_own_part(trained, read_log):
    run, made, _ = trained
    for log, steps in zip(logs_of(run, read_log), made):
        assert sorted(log.scalars) == list(range(STEPS))
        for step in (0, 2):
            before, gradients, _ = steps[step]
            for role, tensors in (("weight", before), ("weight_grad", gradients)):
                for name, values in tensors.items():
                    record = log.tables[f"{role}/{name}", step]
                    assert record["table"] == halfscope.binade_table(values), (role, name)
                    assert record["shape"] == tuple(values.shape)
        for step, (_, gradients, _) in enumerate(steps):
            assert log.scalars[step]["max_abs_weight_grad"] == max(
                g.abs().max().item() for g in gradients.values() if g.numel())


def test_the_parts_are_the_whole(trained, read_log):
    """Their histograms add up to that of the gradient, before it was clipped, of all parameters."""
    run, made, _ = trained
    for step in (0, 2):
        for name, part in made[0][step][1].items():
            whole = torch.cat([part, made[1][step][1][name]])
            first, second = (log.tables[f"weight_grad/{name}", step]["table"]
                             for log in logs_of(run, read_log))
            first.merge(second)
            assert first == halfscope.binade_table(whole)
            assert whole.numel() == dict(small_network().named_parameters())[name].numel()


ROLES = ("weight/", "weight_grad/", "update/")


def test_it_is_the_run_on_one_rank(trained, read_log):
    """To the bit, but for clipping, whose norm is another order of sums."""
    run, _, whole = trained
    alone, (first, second) = read_log(whole), logs_of(run, read_log)
    for step in (0, 2):
        names = [name for name in alone.names(step) if name.startswith(ROLES)]
        assert len(names) == 12
        for name in names:
            union, table = first.tables[name, step]["table"], alone.tables[name, step]["table"]
            union.merge(second.tables[name, step]["table"])
            assert union.total == table.total, name
            if "sgd" in str(run) or (step == 0 and not name.startswith("update/")):
                assert union == table, name


def test_an_analysis_adds_the_ranks(trained):
    run, _, whole = trained
    ranks = {t["name"]: t for t in halfscope.analyze(run)["tensors"]}
    for tensor in halfscope.analyze(whole)["tensors"]:
        if tensor["name"].startswith(ROLES):
            mine = ranks[tensor["name"]]
            assert mine["total"] == tensor["total"]
            assert mine["max_abs"] == pytest.approx(tensor["max_abs"], rel=1e-3)


def test_updates_are_those_of_each_part(trained, read_log):
    pytest.importorskip("safetensors")
    run, made, _ = trained
    for log, steps in zip(logs_of(run, read_log), made):
        before, _, after = steps[2]
        sample, _ = log.sample(2)
        for name in before:
            update = sample[f"update/{name}"]
            assert log.tables[f"update/{name}", 2]["table"] == halfscope.binade_table(update)
            assert torch.equal(sample[f"weight_after/{name}"], after[name])
            moved = after[name].double() - before[name].double()
            bound = torch.finfo(torch.float32).eps * (before[name].abs() + update.abs()).double()
            assert ((update.double() - moved).abs() <= 2 * bound).all(), name
            assert not update.numel() or update.abs().max() > 0


def test_the_manifest_says_what_is_reduced(trained):
    run, _, _ = trained
    manifest = json.loads((run / "rank-0001/run.json").read_text())
    assert {"weight", "weight_grad", "update", "activation"} <= set(manifest["sharded"])
    assert "after the reduction over ranks" in manifest["recorder"]["sharding"]
    assert manifest["rank"] == 1 and manifest["world_size"] == 2


def refused_rank(rank, folder, kind):
    join_ranks(rank, folder)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    if kind == "a part":
        fully_shard(model[0])
    else:
        mesh = init_device_mesh("cpu", (2,))
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    said = "not refused"
    try:
        Recorder(model, optimizer, f"{folder}/run").start()
    except TypeError as refused:
        said = str(refused)
    hooked = any(isinstance(hook, Hook) for module in model.modules()
                 for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values()))
    model(torch.ones(3, 4)).sum().backward()  # trains all the same
    optimizer.step()
    torch.save((said, hooked, "step" in vars(optimizer)), f"{folder}/said-{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("kind, expected", [
    ("tensor parallel", "model: parameter 0.weight is a DTensor (S(0) on a mesh of shape (2,), 2 "
                        "ranks), expected FSDP2's parts"),
    ("a part", "model: parameter 2.weight is whole on every rank and 0.weight is divided")])
def test_what_cannot_be_added_over_ranks_is_refused(tmp_path, kind, expected):
    torch.multiprocessing.spawn(refused_rank, (str(tmp_path), kind), nprocs=2)
    for rank in (0, 1):
        said, hooked, patched = torch.load(tmp_path / f"said-{rank}.pt")
        assert said.startswith(expected), said
        assert not hooked and not patched
    assert not (tmp_path / "run").exists()
