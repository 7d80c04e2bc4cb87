# SPDX-License-Identifier: Apache-2.0
"""Any model under emulated precision, in the training loop it has: docs/simulate.md."""

import torch

from halfscope.torch import names
from halfscope.torch.emulate_modules import Modules, is_rounded, wide_parameters
from halfscope.torch.emulate_rounding import PRECISIONS
from halfscope.torch.emulate_scaling import EmulatedScale, EmulatedScaler, policy_of
from halfscope.torch.emulate_weights import Weights
from halfscope.torch.patching import Patch
from halfscope.torch.recorder import Recorder, require_kinds
from halfscope.torch.storage import EmulatedStorage

_emulated = set()  # ids of the parameters and optimizers that are under emulation now


def emulate(model, optimizer, precision="mixed", loss_scale=None, *, log=None, every=1,
            sample_every=None, keep_fp32=None, about=None):
    """A context in which a training loop runs as if tensors were 16-bit: docs/simulate.md.

        with halfscope.torch.emulate(model, optimizer, loss_scale="torch", log="runs/x") as run:
            for x, y in batches:
                optimizer.zero_grad()
                run.backward(loss_function(model(x), y))   # in place of loss.backward()
                optimizer.step()                           # may skip, as the policy says

    precision    fp32, fp16, mixed, bf16 or mixed-bf16, as `halfscope simulate` has them
    loss_scale   None, a number, or a policy with settings: "torch,init_scale=65536"
    log          folder of a run log, which is recorded then; it may not hold one already
    every, sample_every, about   as for Recorder
    keep_fp32    function of (path, module): whether this module's own parameters stay FP32, as
                 those of PyTorch's normalization layers do
    """
    return Emulation(model, optimizer, precision, loss_scale, log=log, every=every,
                     sample_every=sample_every, keep_fp32=keep_fp32, about=about)


class Emulation:
    """What emulate() returns."""

    def __init__(self, model, optimizer, precision, loss_scale, *, log, every, sample_every,
                 keep_fp32, about):
        _require_one_optimizer(optimizer)
        require_kinds(model, optimizer)
        if precision not in PRECISIONS:
            raise ValueError(f"precision: found {precision!r}, want one of {', '.join(PRECISIONS)}")
        self._model = names.unwrapped(model)
        _require_fp32(self._model)
        self._optimizer = optimizer
        chosen = PRECISIONS[precision]
        policy = policy_of(loss_scale)
        self._weights = Weights(self._model, optimizer, chosen,
                                wide_parameters(self._model, keep_fp32))
        self._modules = Modules(self._model, chosen.format, self._weights.before_forward,
                                note=policy is not None)
        storage = EmulatedStorage(chosen, self._weights)
        self._scaler = EmulatedScaler(policy, self._modules, storage.bounds_scale)
        self._recorder = None
        if log is not None:
            self._recorder = Recorder(self._model, optimizer, log, every, sample_every=sample_every,
                                      modules=is_rounded, about={"precision": precision, **(about or {})})
            self._recorder.be_emulated(storage, EmulatedScale(self._scaler, optimizer))
        self._step_patch = None
        self._has_gradients = False  # that run.backward() made, since the last step
        self.steps = 0    # attempted ones
        self.skipped = 0  # of these

    @property
    def loss_scale(self):
        """By which the next backward pass multiplies."""
        return self._scaler.get_scale()

    def backward(self, loss, **arguments):
        """loss.backward(**arguments) of the scaled loss. The loss is noted in the log."""
        self._require_begun("backward()")
        self._has_gradients = True
        self._scaler.scale(loss).backward(**arguments)

    def unscale_(self):
        """Divides the gradients by the scale now, for a loop that clips them before the step."""
        self._require_begun("unscale_()")
        self._scaler.unscale_(self._optimizer)

    def master_weights(self):
        """{name: copy of what the optimizer updates}: FP32 values in mixed precision. The model's
        own parameters, and its state_dict(), are the 16-bit copies inside the context."""
        return self._weights.masters(names.parameters(self._model, self._optimizer).items())

    def __enter__(self):
        mine = {id(self._optimizer), *(id(p) for p in self._model.parameters())}
        if self._step_patch is not None or mine & _emulated:
            raise RuntimeError("this optimizer, or a parameter of this model, is under emulate() "
                               "already: one optimizer and one context at a time")
        _emulated.update(mine)
        self._mine = mine
        try:
            self._weights.start()
            self._modules.start()  # before the recorder's hooks, which see what these return
            if self._recorder is not None:
                self._recorder.start()
            self._step_patch = Patch(self._optimizer, "step", self._around_step)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        self._stop()

    def _stop(self):
        if self._step_patch is not None:
            self._step_patch.remove()
            self._step_patch = None
        if self._recorder is not None:
            self._recorder.stop()
        self._modules.stop()
        self._weights.stop()
        _emulated.difference_update(self._mine)

    def _around_step(self, original, *args, **kwargs):
        if args or kwargs.get("closure") is not None:
            raise ValueError("optimizer.step(closure) is not emulated: call run.backward(loss), then "
                             "optimizer.step() without a closure")
        if self._scaler.policy is not None and not self._has_gradients:
            raise RuntimeError("optimizer.step(): the gradients carry no loss scale, since "
                               "run.backward(loss) was not called; call it in place of "
                               "loss.backward()")

        def take_step():
            with self._weights.updated():
                return original(**kwargs)

        result = self._scaler.step(self._optimizer, take_step)
        self._scaler.update()
        self._has_gradients = False
        self.steps += 1
        self.skipped += self._scaler.action != "apply"
        return result

    def _require_begun(self, what):
        if self._step_patch is None:
            raise RuntimeError(f"{what} was called outside of the context: with emulate(...) as run:")


def _require_one_optimizer(optimizer):
    if isinstance(optimizer, (list, tuple, dict)):
        raise TypeError(f"optimizer: found a {type(optimizer).__name__} of {len(optimizer)}, want one "
                        "torch.optim.Optimizer: several optimizers are not emulated together; give "
                        "one of them parameter groups instead")


def _require_fp32(model):
    for name, parameter in model.named_parameters():
        if torch.is_floating_point(parameter) and parameter.dtype != torch.float32:
            raise TypeError(f"model: parameter {name} is {str(parameter.dtype).replace('torch.', '')}, "
                            "want float32: 16-bit values are emulated in FP32 memory; call "
                            "model.float() first")
