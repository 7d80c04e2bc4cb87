# SPDX-License-Identifier: Apache-2.0
"""Five networks in FP32, BF16, partly BF16 and FP16, held against plain PyTorch: the advised loss scale
overflows at no step of the same data, lost updates are those that leave a weight as it was, the first
sentence names the harm that was built in, and gradients that are rounding errors decide nothing. The
judge reads parameters, gradients and outputs of an FP32 and an FP64 twin, and nothing of a log."""
import functools
import json
import pathlib
import re
import tempfile

import pytest

torch = pytest.importorskip("torch")

from five_networks import NETWORKS, NORMS, Cnn, Detector, Experts, Gpt, Lstm  # noqa: E402
from program import json_of, stdout_of  # noqa: E402
from halfscope.torch import Recorder, emulate  # noqa: E402

FP16_INFINITY = 65520.0  # what rounds to infinity
NARROW = {"bf16": torch.bfloat16, "partly": torch.bfloat16, "fp16": torch.float16}
KINDS = ["fp32", *NARROW]
STEPS = 6
each = pytest.mark.parametrize("network", NETWORKS)


class Counted:
    """What plain PyTorch says of a run."""

    def __init__(self):
        self.largest = 0.0                # gradient in FP32, of weights and of outputs
        self.flushed = self.nonzero = 0   # of these gradients, those that round to zero in FP16
        self.moves, self.stays = {}, {}   # by parameter in 16 bits: nonzero updates; unchanged weights
        self.noise, self.held = {}, {}    # by parameter: gradients off by half of themselves; nonzero
        self.gone = {}                    # by parameter: of the others, those that round to zero in FP16
        self.parameters = 0

    def see_fp32(self, twin, x, y):
        twin.zero_grad()
        seen, hooks = [], []
        watch = lambda _, __, output: [t.register_hook(lambda g: seen.append(g.detach()))  # noqa: E731
                                       for t in tensors_in(output) if t.requires_grad] and None
        for module in twin.modules():
            if not list(module.children()) or isinstance(module, torch.nn.MultiheadAttention):
                hooks.append(module.register_forward_hook(watch))
        twin.loss(x, y).backward()
        for hook in hooks:
            hook.remove()
        for gradient in [*seen, *(p.grad for p in twin.parameters())]:
            self.largest = max(self.largest, gradient.abs().max().item())
            self.flushed += int(((gradient != 0) & (gradient.half() == 0)).sum())
            self.nonzero += int((gradient != 0).sum())

    def see_noise(self, model, exact, x, y):
        exact.zero_grad()
        exact.loss(as_double(x), as_double(y)).backward()
        for (name, p), true in zip(model.named_parameters(), exact.parameters()):
            own = p.grad.double()
            off = (own != 0) & ((own - true.grad).abs() >= own.abs() / 2)
            self.noise[name] = self.noise.get(name, 0) + int(off.sum())
            self.held[name] = self.held.get(name, 0) + int((own != 0).sum())
            gone = (own != 0) & ~off & (own.half() == 0)
            self.gone[name] = self.gone.get(name, 0) + int(gone.sum())

    def see_step(self, name, parameter, before, moves):
        self.moves[name] = self.moves.get(name, 0) + int(moves.sum())
        self.stays[name] = self.stays.get(name, 0) + int((moves & (parameter == before)).sum())

    @property
    def lost(self):
        return sum(self.stays.values()) / sum(self.moves.values())


def tensors_in(output):
    if isinstance(output, torch.Tensor):
        return [output]
    return [t for item in output or () for t in tensors_in(item)] if isinstance(output, (tuple, list)) else []


def as_double(x):
    if isinstance(x, tuple):
        return tuple(map(as_double, x))
    return x.double() if x.is_floating_point() else x


def narrow_names(network, kind):
    """Parameters that the run keeps in 16 bits."""
    wide = {} if kind == "bf16" else {f"{path}.{name}" for path, module in network.named_modules()
                                      if isinstance(module, NORMS) for name, _ in module.named_parameters()}
    return set() if kind == "fp32" else {name for name, _ in network.named_parameters()} - set(wide)


def copied_into(twin, model):
    twin.load_state_dict({k: v.to(twin.state_dict()[k].dtype) for k, v in model.state_dict().items()})
    return twin


@functools.lru_cache(maxsize=None)
def trained(network, kind):
    """(folder of a run's log, what plain PyTorch counted of it)."""
    torch.manual_seed(0)
    model, twin, exact = network(), network(), network().double()
    narrow = narrow_names(model, kind)
    if kind in ("bf16", "partly"):
        model.to(NARROW[kind])
        for module in model.modules():
            if kind == "partly" and isinstance(module, NORMS):
                module.float()
    # FP16's second moments of Adam are a harm of their own, test_adam_breaks.py.
    optimizer = (torch.optim.SGD(model.parameters(), lr=1e-3) if kind == "fp16"
                 else torch.optim.Adam(model.parameters(), lr=1e-5))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="halfscope-five-")) / "run"
    run = (emulate(model, optimizer, precision="fp16", log=folder, sample_every=1) if kind == "fp16"
           else Recorder(model, optimizer, folder, sample_every=1))
    counted = Counted()
    counted.parameters = len(list(model.parameters()))
    with run:
        for _ in range(STEPS):
            x, y = model.data()
            counted.see_fp32(copied_into(twin, model), x, y)
            optimizer.zero_grad()
            loss = model.loss(x, y)
            run.backward(loss) if kind == "fp16" else loss.backward()
            counted.see_noise(model, copied_into(exact, model), x, y)
            before = {name: p.detach().clone() for name, p in model.named_parameters()}
            gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
            optimizer.step()
            for name, p in model.named_parameters():
                if name in narrow:  # Adam moves what its first moment moves
                    moved_by = optimizer.state[p].get("exp_avg", gradients[name])
                    counted.see_step(name, p.detach(), before[name], moved_by != 0)
    return folder, counted


def of_kind(kind):
    return ["--format", "fp16" if kind in ("fp32", "fp16") else "bfloat16"]


@each
@pytest.mark.parametrize("kind", KINDS)
def test_the_advised_scale_overflows_nowhere(network, kind):
    log, counted = trained(network, kind)
    scale = json_of("recommend", log, "--format", "fp16")["static_scale"]
    assert counted.largest * scale < FP16_INFINITY
    assert counted.largest * scale * 8 >= FP16_INFINITY  # and is no lower than its headroom asks for


@each
@pytest.mark.parametrize("kind", NARROW)
def test_lost_updates_are_counted_tensor_by_tensor(network, kind):
    """A weight's own format decides. PyTorch adds in FP32 and rounds once."""
    log, counted = trained(network, kind)
    tensors = json_of("analyze", log, *of_kind(kind))["tensors"]
    found = {t["name"].removeprefix("weight/"): t for t in tensors if "updates" in t}
    kept = {name: t["kept_in"] for name, t in found.items()}
    assert {name for name, format in kept.items() if format != "F32"} == set(counted.moves)
    for name, moves in counted.moves.items():
        if moves:
            lost = found[name]["swamped_fused"] / moves
            assert lost == pytest.approx(counted.stays[name] / moves, abs=0.02), name


@each
@pytest.mark.parametrize("kind", NARROW)
def test_the_first_sentence_names_lost_updates(network, kind):
    log, counted = trained(network, kind)
    answer = json_of("recommend", log, *of_kind(kind))["answer"]
    some = f"{len(counted.moves)} of {counted.parameters} weight tensors are stored in"
    subject = {"bf16": "Weights are stored in BF16, and ", "partly": f"{some} BF16: ", "fp16": f"{some} FP16: "}[kind]
    assert answer["headline"].startswith(subject) and answer["severity"] == "breaks"
    share = float(re.search(r"([\d.]+) % of [\d,]+ sampled weight updates are lost", answer["headline"])[1])
    assert share / 100 == pytest.approx(counted.lost, abs=0.02)
    assert "Nothing was found" not in json.dumps(answer)


@each
def test_a_run_in_fp16_without_a_loss_scale_is_told_so(network, tmp_path):
    """With FP32 weights, so that no update is lost. A judge in FP32 counts what becomes zero."""
    torch.manual_seed(0)
    model, twin, counted = network(), network(), Counted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with emulate(model, optimizer, precision="mixed", log=tmp_path / "run") as run:
        for _ in range(STEPS):
            x, y = model.data()
            counted.see_fp32(copied_into(twin, model), x, y)
            optimizer.zero_grad()
            run.backward(model.loss(x, y))
            optimizer.step()
    headline = json_of("recommend", tmp_path / "run")["answer"]["headline"]
    if network is not Detector:
        assert headline.startswith("PyTorch's default GradScaler() is fine for this run")
        assert counted.flushed / counted.nonzero < 0.1
        return
    least, most = re.match(r"This run computes gradients in FP16 without a loss scale: ([\d.]+) % to ([\d.]+) % of "
                           "the gradient values may have become zero. Use PyTorch's default GradScaler",
                           headline).groups()
    assert float(least) < 100 * counted.flushed / counted.nonzero < float(most)


@each
def test_a_run_in_fp32_is_told_of_no_harm_but_its_small_loss(network):
    log, counted = trained(network, "fp32")
    advice = json_of("recommend", log, "--format", "fp16")
    answer = advice["answer"]
    assert answer["headline"].startswith("PyTorch's default GradScaler() is fine for this run")
    share = counted.flushed / counted.nonzero
    assert advice["flushed_at_1"]["share"] == pytest.approx(share, abs=0.01)
    serious = [f["title"] for f in answer["findings"] if f["severity"] in ("breaks", "serious")]
    if network is Detector:
        assert float(re.search(r"Without a loss scale, ([\d.]+) %", serious[0])[1]) == pytest.approx(
            100 * share, abs=1)
    else:
        assert serious == [] and share < 0.1


@each
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_found_where_it_is(network, kind):
    """Where 16-bit values are rounded, noise and small gradients meet: some is missed, and more of a
    convolution's, whose bias gradient PyTorch 1.13 adds up in BF16 itself. The detector's gradients are
    subnormal in FP16, which is a harm and no noise of sums."""
    log, counted = trained(network, kind)
    found = {t["name"].removeprefix("weight_grad/"): t["rounding_noise"]
             for t in json_of("analyze", log, *of_kind(kind))["tensors"] if "rounding_noise" in t}
    for name in network.noise:
        if counted.noise[name] >= 10 and (network, kind) != (Detector, "fp16"):
            least = 0.9 if kind == "fp32" else 0.1 if network in (Cnn, Detector) else 0.3
            assert least * counted.noise[name] <= found.get(name, 0), (name, found, counted.noise[name])
    wrong = {name: count for name, count in found.items() if name not in network.noise}
    assert sum(wrong.values()) <= 0.01 * sum(counted.held.values()), wrong
    if kind == "fp32":
        assert not wrong and all(count <= 1.05 * counted.noise[name] for name, count in found.items())


@each
def test_noise_decides_nothing(network):
    log, counted = trained(network, "fp32")
    advice = json_of("recommend", log, "--format", "fp16")
    assert not [name for name in advice.get("above_target", []) for noise in network.noise if noise in name]
    lowest = {Cnn: 2.0**4, Gpt: 2.0**6, Lstm: 2.0**2, Detector: 2.0**18, Experts: 2.0**6}[network]
    assert advice["lowest"] <= lowest
    shown = stdout_of("analyze", log)
    first = next(line for line in shown.splitlines() if line.startswith("  weight_grad/")).split()[0]
    shares = {name: counted.gone[name] / max(1, counted.held[name] - counted.noise[name]) for name in counted.held}
    assert shares[first.removeprefix("weight_grad/")] == max(shares.values())
