# SPDX-License-Identifier: Apache-2.0
"""Local gradients: as they come from one backward pass of one rank, before they are added up."""

import copy
import pathlib

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder
from small_runs import join_ranks, loss_of, small_network

ROLE = "local_weight_grad/"


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def gradients_by_hand(model, batches, factor=1.0):
    """By parameter, the gradients of each batch, of a copy that nobody watches."""
    twin = copy.deepcopy(model)
    parts = [torch.autograd.grad(factor * loss_of(twin, batch), list(twin.parameters()))
             for batch in batches]
    return dict(zip(dict(twin.named_parameters()), zip(*parts)))


def table_of(parts):
    table = halfscope.BinadeTable()
    for part in parts:
        table.merge(halfscope.binade_table(part))
    return table


def test_microbatches_are_recorded_before_they_are_added(tmp_path, read_log):
    model = small_network()
    optimizer = sgd(model)
    by_hand = gradients_by_hand(model, range(3))
    with Recorder(model, optimizer, tmp_path / "run", sample_every=2, local_gradients=True):
        for microbatch in range(3):
            loss_of(model, microbatch).backward()
        added = {name: p.grad.clone() for name, p in model.named_parameters()}
        optimizer.step()
    log = read_log(tmp_path / "run")
    sample, _ = log.sample(0)
    for name, parts in by_hand.items():
        assert torch.equal(sample[ROLE + name], torch.stack(parts))
        record = log.tables[ROLE + name, 0]
        assert record["shape"] == (3, *parts[0].shape)
        assert record["table"] == table_of(parts)
        assert log.tables[f"weight_grad/{name}", 0]["table"] == halfscope.binade_table(added[name])


def test_they_are_recorded_at_recorded_steps_and_kept_at_sampled_ones(tmp_path, read_log):
    model = small_network()
    optimizer = sgd(model)
    with Recorder(model, optimizer, tmp_path / "run", every=2, sample_every=[2],
                  local_gradients=True):
        for step in range(4):
            optimizer.zero_grad()
            for microbatch in range(2):
                loss_of(model, 10 * step + microbatch).backward()
            optimizer.step()
    log = read_log(tmp_path / "run")
    local = {step for name, step in log.tables if name.startswith(ROLE)}
    assert local == {0, 2}
    assert list(log.sample_files) == [2]
    assert sum(name.startswith(ROLE) for name in log.sample(2)[0]) == 4


@pytest.mark.parametrize("asked, microbatches", [(False, 2), (True, 1)])
def test_they_are_not_recorded_unasked_nor_twice(tmp_path, read_log, asked, microbatches):
    """One microbatch on one rank: the local gradient is weight_grad."""
    model = small_network()
    optimizer = sgd(model)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1, local_gradients=asked):
        for microbatch in range(microbatches):
            loss_of(model, microbatch).backward()
        optimizer.step()
    log = read_log(tmp_path / "run")
    assert "weight_grad/0.weight" in log.names(0)
    assert not [name for name in (*log.names(0), *log.sample(0)[0]) if name.startswith(ROLE)]


def test_a_pass_that_was_given_up_leaves_none(tmp_path, read_log):
    model = small_network()
    optimizer = sgd(model)
    by_hand = gradients_by_hand(model, (1, 2))
    with Recorder(model, optimizer, tmp_path / "run", local_gradients=True):
        (1000 * loss_of(model, 0)).backward()
        optimizer.zero_grad()
        for microbatch in (1, 2):
            loss_of(model, microbatch).backward()
        optimizer.step()
    log = read_log(tmp_path / "run")
    for name, parts in by_hand.items():
        assert log.tables[ROLE + name, 0]["table"] == table_of(parts)


def test_they_carry_the_loss_scale_that_the_loop_took_out_of_the_sum(tmp_path, read_log,
                                                                    stand_in_scaler):
    model, scaler = small_network(), stand_in_scaler(4096.0)
    optimizer = sgd(model)
    by_hand = gradients_by_hand(model, range(2), 4096.0)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1, scaler=scaler,
                  local_gradients=True):
        for microbatch in range(2):
            scaler.scale(loss_of(model, microbatch)).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    log = read_log(tmp_path / "run")
    found = {t["name"]: t for t in halfscope.analyze(tmp_path / "run")["tensors"]}
    for name, parts in by_hand.items():
        record = log.tables[ROLE + name, 0]
        assert (record["scaled"], record["scale"]) == (True, 4096.0)
        largest = max(part.abs().max().item() for part in parts)
        assert found[ROLE + name]["max_abs"] == largest / 4096
        assert torch.equal(log.sample(0)[0][ROLE + name], torch.stack(parts))
    (tmp_path / "samples").mkdir()
    sample = pathlib.Path(log.sample_files[0])
    for part in ("run.json", sample.relative_to(tmp_path / "run")):
        target = tmp_path / "samples" / part
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((tmp_path / "run" / part).read_bytes())
    again = {t["name"]: t for t in halfscope.analyze(tmp_path / "samples")["tensors"]}
    assert again[ROLE + "0.weight"]["max_abs"] == found[ROLE + "0.weight"]["max_abs"]


# What the analyzers make of them.


def cancelling_run(folder, **settings):
    """Two microbatches whose gradients take each other away, but for a part in 1,024."""
    model = small_network()
    optimizer = sgd(model)
    with Recorder(model, optimizer, folder, sample_every=2, **settings):
        for step in range(4):
            optimizer.zero_grad()
            (1024 * loss_of(model, step)).backward()
            (-1023 * loss_of(model, step)).backward()
            optimizer.step()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same run without and with local gradients."""
    folder = tmp_path_factory.mktemp("runs")
    cancelling_run(folder / "plain")
    cancelling_run(folder / "local", local_gradients=True)
    return folder / "plain", folder / "local"


def test_counts_of_other_tensors_are_as_without(both):
    plain, local = ({t["name"]: {k: v for k, v in t.items() if k != "log"}
                     for t in halfscope.analyze(log)["tensors"]} for log in both)
    more = set(local) - set(plain)
    assert more == {ROLE + name for name, _ in small_network().named_parameters()}
    assert {name: entry for name, entry in local.items() if name not in more} == plain
    assert {local[name]["role"] for name in more} == {"local_weight_grad"}
    assert local[ROLE + "0.weight"]["total"] == 2 * local["weight_grad/0.weight"]["total"]


def test_they_bound_the_loss_scale_by_name(both):
    plain, local = (halfscope.recommend(log) for log in both)
    assert plain["limited_by"]["name"] == "weight_grad"  # a scalar of every step alone
    assert local["limited_by"]["name"].startswith(ROLE)
    assert local["static_scale"] == plain["static_scale"]
    assert local["limited_by"]["max_abs"] == plain["limited_by"]["max_abs"]
    largest = max(t["max_abs"] for t in halfscope.analyze(both[1])["tensors"]
                  if t["role"] == "local_weight_grad")
    assert local["static_scale"] * largest < 65520 / 2 <= 2 * local["static_scale"] * largest


def test_selected_alone_they_bound_the_loss_scale(both):
    sums, local = (halfscope.recommend(both[1], tensor=f"{role}/*")["static_scale"]
                   for role in ("weight_grad", "local_weight_grad"))
    assert sums >= 128 * local


# Ranks.


def train_rank(rank, folder):
    join_ranks(rank, folder)
    model = nn.parallel.DistributedDataParallel(small_network())
    optimizer = sgd(model)
    by_hand = gradients_by_hand(model.module, [rank])
    with Recorder(model, optimizer, f"{folder}/run", sample_every=1, local_gradients=True):
        loss_of(model, rank).backward()
        optimizer.step()
    torch.save(by_hand, f"{folder}/by-hand-{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_each_rank_records_its_own_before_the_reduction(tmp_path, read_log):
    torch.multiprocessing.spawn(train_rank, (str(tmp_path),), nprocs=2)
    by_hand = [torch.load(tmp_path / f"by-hand-{rank}.pt") for rank in (0, 1)]
    for rank in (0, 1):
        log = read_log(tmp_path / "run" / f"rank-{rank:04d}")
        for name, (part,) in by_hand[rank].items():
            assert torch.equal(log.sample(0)[0][ROLE + name], part)
    found = {t["name"]: t for t in halfscope.analyze(tmp_path / "run")["tensors"]}
    for name, (part,) in by_hand[0].items():
        assert found[ROLE + name]["total"] == 2 * part.numel()
        assert found[f"weight_grad/{name}"]["total"] == part.numel()
        both = max(by_hand[rank][name][0].abs().max().item() for rank in (0, 1))
        assert found[ROLE + name]["max_abs"] == both
