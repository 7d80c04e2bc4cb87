# SPDX-License-Identifier: Apache-2.0
"""Files of weights, as PyTorch, Lightning, transformers and NumPy leave them, get no loss scale."""
import json
import subprocess

import numpy as np
import pytest
import safetensors.numpy
import torch

from program import PROGRAM


def run(command, *arguments):
    done = subprocess.run([PROGRAM, command, *map(str, arguments), "--json", "-"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def roles(log, *arguments):
    return {t["name"]: t["role"] for t in run("analyze", log, *arguments)[0]["tensors"]}


def trained(norm=True):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5)] if norm else [torch.nn.Linear(6, 5)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(5, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(8, 6)).square().sum().backward()
    optimizer.step()
    return model, optimizer


def arrays(named):
    return {name: tensor.detach().numpy() for name, tensor in named}


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters()}


def plain(model):
    """As an EMA copy or a comprehension keeps them: PyTorch says nothing of these."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


SAVED = {
    "lone_state.pth": lambda f, m, o: torch.save(m.state_dict(), f),
    "parameters of a dictionary.pt": lambda f, m, o: torch.save(dict(m.named_parameters()), f),
    "epoch3.tar": lambda f, m, o: torch.save(
        {"epoch": 3, "model_state_dict": m.state_dict(), "optimizer_state_dict": o.state_dict()}, f),
    "last.ckpt": lambda f, m, o: torch.save(
        {"state_dict": m.state_dict(), "optimizer_states": [o.state_dict()],
         "callbacks": {"ModelCheckpoint": {"kth_value": torch.tensor(float("inf"))}}}, f),
    "hub.safetensors": lambda f, m, o: safetensors.numpy.save_file(
        arrays(m.named_parameters()), f, metadata={"format": "pt"}),
    "norms.safetensors": lambda f, m, o: safetensors.numpy.save_file(
        arrays(m.state_dict().items()), f),
    "best_model.npz": lambda f, m, o: np.savez(f, **arrays(m.named_parameters())),
    "plain.pt": lambda f, m, o: torch.save(
        {"model": plain(m), "optimizer": o.state_dict(), "epoch": 3}, f),
    "net.pt": lambda f, m, o: torch.save(
        {"net": plain(m), "opt": o.state_dict(), "scaler": {"scale": 65536.0}}, f),
    "sgd.pt": lambda f, m, o: torch.save(
        {"ema": plain(m), "opt": torch.optim.SGD(m.parameters(), lr=0.1).state_dict()}, f),
    "state.npz": lambda f, m, o: np.savez(
        f, **{"fc/w": np.ones(3), "fc/w/exp_avg": np.ones(3), "fc/w/exp_avg_sq": np.ones(3)}),
    "optimizer.pt": lambda f, m, o: torch.save(o.state_dict(), f),
}


NO_BUFFERS = ("best_model.npz", "plain.pt", "net.pt", "sgd.pt", "state.npz")


@pytest.mark.parametrize("name", SAVED)
def test_no_loss_scale_from_weights(tmp_path, name):
    model, optimizer = trained(norm=name not in NO_BUFFERS)
    SAVED[name](tmp_path / name, model, optimizer)
    for log in (tmp_path / name, tmp_path):
        if log == tmp_path and name.endswith(".tar"):
            continue  # not an ending that is looked for in folders
        answer, said = run("recommend", log)
        assert answer["static_scale"] is None and answer["reason"] == "no_gradients", name
        assert "weight_grad" not in answer["roles_found"]
        assert name == "optimizer.pt" or "treated as a model's weights: it " in said


def test_what_a_checkpoint_holds_beside_weights(tmp_path):
    SAVED["last.ckpt"](tmp_path / "last.ckpt", *trained())
    found = roles(tmp_path / "last.ckpt")
    assert found.pop("callbacks.ModelCheckpoint.kth_value") == "unknown"
    states = {name for name in found if name.startswith("optimizer_states.0.state.")}
    assert "optimizer_states.0.state.0.step" in states
    assert {found.pop(name) for name in states} == {"optimizer_state"}
    assert found and set(found.values()) == {"weight"}


def test_every_state_of_an_optimizer_is_one(tmp_path):
    state = {"state": {0: {"step": torch.tensor(3.0), "a_state_of_its_own": torch.ones(3)}}}
    torch.save(state, tmp_path / "o.pt")
    assert set(roles(tmp_path / "o.pt").values()) == {"optimizer_state"}


GRADIENTS = {
    "g.pt": lambda f, m: torch.save(gradients(m), f),
    "g.safetensors": lambda f, m: safetensors.numpy.save_file(arrays(gradients(m).items()), f),
    "g.npz": lambda f, m: np.savez(f, **arrays(gradients(m).items())),
    "model_grads.npz": lambda f, m: np.savez(f, **arrays(gradients(m).items())),
    "said.safetensors": lambda f, m: safetensors.numpy.save_file(
        arrays(gradients(m).items()), f, metadata={"format": "pt", "gradients": "unscaled"}),
    "beside.pt": lambda f, m: torch.save(
        {"state_dict": m.state_dict(), "grads": gradients(m)}, f),
    "grads_and_model.pt": lambda f, m: torch.save(
        {"model": large(m), "model_grads": gradients(m)}, f),
    "branches.npz": lambda f, m: np.savez(
        f, **{f"net/{k}": v for k, v in arrays(large(m).items()).items()},
        **{f"grads/{k}": v for k, v in arrays(gradients(m).items()).items()}),
    "with_optimizer.pt": lambda f, m: torch.save(
        {"grads": gradients(m), "opt": {"state": {0: {"exp_avg": torch.ones(3)}}}}, f),
    "a_module_of_that_name.pt": lambda f, m: torch.save(
        {("grad_reversal." if k.startswith("0") else "") + k: g for k, g in gradients(m).items()}, f),
}
BOTH = ("beside.pt", "grads_and_model.pt", "branches.npz")


def large(model):
    return {name: 1e3 * p for name, p in plain(model).items()}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_still_gradients(tmp_path, name):
    model, _ = trained(norm=False)
    GRADIENTS[name](tmp_path / name, model)
    answer, said = run("recommend", tmp_path / name)
    assert answer["static_scale"] is not None and "weight_grad" in answer["roles_found"]
    largest = max(float(g.abs().max()) for g in gradients(model).values())
    assert answer["limited_by"]["max_abs"] == largest
    assert ("treated as a model's weights" in said) == (name in BOTH)
    others = {n: role for n, role in roles(tmp_path / name).items() if "opt." not in n}
    assert set(others.values()) == ({"weight", "weight_grad"} if name in BOTH else {"weight_grad"})


def test_role_says_otherwise(tmp_path):
    model, optimizer = trained()
    SAVED["lone_state.pth"](tmp_path / "m.pth", model, optimizer)
    assert set(roles(tmp_path / "m.pth", "--role", "*=weight_grad").values()) == {"weight_grad"}
    (entry, *_), _ = run("analyze", tmp_path / "m.pth")[0]["tensors"], None
    assert entry["role_source"] == "file"


def test_a_folder_may_hold_both(tmp_path):
    model, _ = trained(norm=False)
    safetensors.numpy.save_file({f"w.{k}": v for k, v in arrays(model.named_parameters()).items()},
                                tmp_path / "model.safetensors")
    np.savez(tmp_path / "g.npz", **arrays(gradients(model).items()))
    found = roles(tmp_path)
    assert {role for name, role in found.items() if name.startswith("w.")} == {"weight"}
    assert {role for name, role in found.items() if not name.startswith("w.")} == {"weight_grad"}
