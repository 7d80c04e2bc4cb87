# SPDX-License-Identifier: Apache-2.0
"""Runs any model under emulated precision in its own training loop: docs/simulate.md."""

import contextlib
import warnings

from halfscope._arguments import described
from halfscope.torch import names
from halfscope.torch.arguments import require_kinds
from halfscope.torch.emulate_checks import Known, require_model, require_optimizer
from halfscope.torch.emulate_modules import Modules, is_rounded, wide_parameters
from halfscope.torch.emulate_products import Products, tensor_core_of
from halfscope.torch.emulate_recipes import Recipes, recipes_of
from halfscope.torch.emulate_rounding import PRECISIONS
from halfscope.torch.emulate_scaling import EmulatedScale, EmulatedScaler, policy_of
from halfscope.torch.emulate_weights import Weights
from halfscope.torch.patching import Patch
from halfscope.torch.recorder import Recorder
from halfscope.torch.storage import EmulatedStorage

_emulated = {}  # {id: parameter or optimizer} for all that are under emulation now


def emulate(model, optimizer, precision="mixed", loss_scale=None, *, accumulate="fp32", recipe=None,
            seed=0, log=None, every=1, sample_every=None, keep_fp32=None, about=None):
    """Returns a context in which a training loop runs as if tensors were 16-bit: docs/simulate.md.

        with halfscope.torch.emulate(model, optimizer, loss_scale="torch", log="runs/x") as run:
            for x, y in batches:
                optimizer.zero_grad()
                run.backward(loss_function(model(x), y))   # in place of loss.backward()
                optimizer.step()                           # the policy may skip the step

    precision    fp32, fp16, mixed, bf16 or mixed-bf16, as in `halfscope simulate`
    loss_scale   None, a number, or a policy with settings: "torch,init_scale=65536"
    accumulate   fp32: PyTorch computes the sums of products. tensor-core:ARCH: they are computed as
                 on Tensor Cores of ARCH, bit for bit (volta, turing, ampere, ada, hopper,
                 blackwell)
    recipe       quantises the operands of matrix products: the name of a recipe, such as "nvfp4" or
                 "mxfp8-e4m3-rceil" (halfscope.arrays.recipes() has all), a framework's recipes
                 together, "nvfp4-training" or "fp8-block", or a dict with a name for each kind of
                 operand: "weight", "activation", "gradient", "other"
    seed         of the random numbers of a recipe that rounds at random
    log          folder in which a run log is recorded; it may not hold one already. None: no log
    every, sample_every, about   as for Recorder
    keep_fp32    function of (path, module) that returns True if the module's own parameters stay
                 FP32; those of PyTorch's normalization layers always do
    """
    return Emulation(model, optimizer, precision, loss_scale, accumulate=accumulate, recipe=recipe,
                     seed=seed, log=log, every=every, sample_every=sample_every, keep_fp32=keep_fp32,
                     about=about)


class Emulation:
    """The context that emulate() returns."""

    def __init__(self, model, optimizer, precision, loss_scale, *, accumulate, recipe, seed,
                 log, every, sample_every, keep_fp32, about):
        require_optimizer(optimizer)
        require_kinds(model, optimizer)
        if names.is_compiled(model):
            raise TypeError("model: torch.compile compiles it, or a part of it, so that no operation can "
                            "be rounded on its way; give emulate() the model that is not compiled")
        if not isinstance(precision, str) or precision not in PRECISIONS:
            raise ValueError(f"precision: found {described(precision)}, expected one of {', '.join(PRECISIONS)}")
        core = tensor_core_of(accumulate, precision)
        recipes = recipes_of(recipe, seed)
        self._model = names.unwrapped(model)
        require_model(self._model, optimizer)
        self._optimizer = optimizer
        chosen = PRECISIONS[precision]
        policy = policy_of(loss_scale)
        wide = wide_parameters(self._model, keep_fp32)
        self._weights = Weights(self._model, optimizer, chosen, wide)
        self._products = self._products_of(core, recipes, seed, chosen.format, wide)
        self._modules = Modules(self._model, chosen.format, self._before_forward,
                                note=policy is not None)
        storage = EmulatedStorage(chosen, self._weights)
        self._scaler = EmulatedScaler(policy, self._modules, storage.bounds_scale)
        self._recorder = None
        if log is not None:
            about = {"precision": precision, "accumulate": accumulate,
                     **({} if recipe is None else {"recipe": recipe}), **(about or {})}
            self._recorder = Recorder(self._model, optimizer, log, every, sample_every=sample_every,
                                      modules=is_rounded, about=about)
            self._recorder.be_emulated(storage, EmulatedScale(self._scaler, optimizer))
        self._step_patch = None
        self._has_gradients = False  # True after run.backward(), until the next step
        self.steps = 0    # attempted steps
        self.skipped = 0  # attempted steps that were not applied

    @property
    def loss_scale(self):
        """The loss scale of the next backward pass."""
        return self._scaler.get_scale()

    def backward(self, loss, **arguments):
        """Scales the loss and calls its backward(**arguments). The log notes the unscaled loss."""
        self._require_begun("backward()")
        if self._scaler.unscaled:
            raise RuntimeError(
                "run.backward() was called after run.unscale_() with no optimizer.step() in between:"
                " scaled gradients would be added to unscaled ones. The order of a step is: "
                "run.backward(loss) of every microbatch, run.unscale_(), clipping, "
                "optimizer.step()")
        self._known.require("run.backward()")
        self._weights.watch()
        self._has_gradients = True
        self._set_in_step(True)
        try:
            self._scaler.scale(loss).backward(**arguments)
        finally:
            self._set_in_step(False)

    def unscale_(self):
        """Divides the gradients by the scale now, for a loop that clips them before the step."""
        self._require_begun("unscale_()")
        self._scaler.unscale_(self._optimizer)

    def master_weights(self):
        """Returns {name: copy of the values that the optimizer updates} (FP32 in mixed precision).
        Inside the context, the model itself and its state_dict() have 16-bit copies."""
        return self._weights.masters(names.parameters(self._model, self._optimizer).items())

    def writing(self):
        """Returns a context in which the parameters hold the values that the optimizer updates, for
        a loop that reads or writes them. Afterwards they hold rounded copies."""
        self._require_begun("writing()")
        return self._weights.updated()

    def __enter__(self):
        mine = {id(one): one for one in (self._optimizer, *self._model.parameters())}
        if self._step_patch is not None or mine.keys() & _emulated.keys():
            raise RuntimeError("this optimizer, or a parameter of this model, is under emulate() "
                               "already: one optimizer and one context at a time")
        with contextlib.ExitStack() as stack:  # undoes all if a part fails
            _emulated.update(mine)
            stack.callback(_forget, mine)
            self._known = Known(self._model, self._optimizer)
            stack.callback(self._weights.stop)
            self._weights.start()
            stack.callback(self._modules.stop)
            self._modules.start()  # before the recorder's hooks, which read the rounded outputs
            if self._recorder is not None:
                stack.callback(self._recorder.stop)
                self._recorder.start()
            self._step_patch = Patch(self._optimizer, "step", self._around_step)
            stack.callback(self._remove_step_patch)
            if self._products is not None:
                stack.enter_context(self._products.begun())
            self._scaler.update()
            self._has_gradients = False
            self._set_in_step(False)
            self._undo = stack.pop_all()
        return self

    def __exit__(self, kind, *_):
        try:
            self._undo.close()
        except Exception as error:
            if kind is None:
                raise
            warnings.warn(f"the end of emulate(): {error}", RuntimeWarning, stacklevel=2)

    def _before_forward(self):
        self._weights.before_forward()
        if self._products is not None:
            self._products.before_forward()

    def _products_of(self, core, recipes, seed, format, wide):
        if core is None and recipes is None:
            return None
        matrices = {name: p for name, p in self._model.named_parameters() if p.dim() > 1}
        wide = {name: p for name, p in matrices.items() if id(p) in wide}
        if recipes is not None:
            recipes = Recipes(recipes, seed, format, matrices, set(wide))
        return Products(core, recipes, wide)

    def _remove_step_patch(self):
        self._step_patch.remove()
        self._step_patch = None

    def _set_in_step(self, holds):
        """Sets whether backward passes belong to the step. Without a policy all do: the loop may
        also call loss.backward() itself."""
        holds = holds or self._scaler.policy is None
        self._modules.in_step = holds
        if self._recorder is not None:
            self._recorder.modules.in_step = holds

    def _around_step(self, original, *args, **kwargs):
        if args or kwargs.get("closure") is not None:
            raise ValueError("optimizer.step(closure) is not emulated: call run.backward(loss), then "
                             "optimizer.step() without a closure")
        if self._scaler.policy is not None and not self._has_gradients:
            raise RuntimeError("optimizer.step(): the gradients carry no loss scale, since "
                               "run.backward(loss) was not called; call it in place of "
                               "loss.backward()")
        self._known.require("optimizer.step()")

        def take_step():
            with self._weights.updated(), self._optimizers_own():
                return original(**kwargs)

        result = self._scaler.step(self._optimizer, take_step)
        self._scaler.update()
        self._has_gradients = False
        self.steps += 1
        self.skipped += self._scaler.action != "apply"
        return result

    def _optimizers_own(self):
        return contextlib.nullcontext() if self._products is None else self._products.paused()

    def _require_begun(self, what):
        if self._step_patch is None:
            raise RuntimeError(f"{what} was called outside of the context: with emulate(...) as run:")


def _forget(mine):
    for key in mine:
        del _emulated[key]
