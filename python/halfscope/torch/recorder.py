# SPDX-License-Identifier: Apache-2.0
"""The recorder: what a user of PyTorch sees of halfscope."""

import collections.abc
import contextlib
import math
import warnings

import torch

from halfscope.torch import manifest, names
from halfscope.torch.attempt import Attempt
from halfscope.torch.gradients import Gradients, backward_runs
from halfscope.torch.log_writer import LogWriter
from halfscope.torch.modules import ModuleWatch
from halfscope.torch.patching import Patch
from halfscope.torch.scaler import FixedScale, WatchedScaler
from halfscope.torch.storage import Storage


class Recorder:
    """Records a training run as a run log: docs/recording.md.

        with Recorder(model, optimizer, "run", every=10) as recorder:
            for x, y in batches:
                loss = loss_function(model(x), y)
                ...                                # backward, optimizer.step(), as ever
                recorder.loss(loss)                # before the step; optional

    Or start() and stop() in place of `with`. A step is one attempted optimizer step, counted from 0.

    out            folder of the log; it may not hold one already
    every          at which steps tables are recorded: every so many, a collection of steps, or a
                   function of the step. Scalars are written at every step.
    sample_every   the same for whole tensors; none by default
    scaler         the loop's GradScaler, or anything with its methods
    loss_scale     a loss scale that the loop applies itself, without a scaler;
    unscaled_before_step  and whether it divides the gradients before optimizer.step()
    modules        function of (path, module): which modules' activations are recorded; by default
                   all that have no submodules
    clipping       how the loop clips gradients before the step; only noted in run.json
    local_gradients  whether weight gradients are also recorded as they come from each backward pass,
                   before they are added to those of other microbatches and ranks
    first_step     number of the first step, for a run that goes on from a checkpoint
    about          more for run.json: data, name of the run...; values must be JSON
    """

    def __init__(self, model, optimizer, out, every=1, *, sample_every=None, scaler=None,
                 loss_scale=None, unscaled_before_step=False, modules=None, clipping=None,
                 local_gradients=False, first_step=0, about=None):
        require_kinds(model, optimizer, scaler, loss_scale)
        if scaler is not None and loss_scale is not None:
            raise ValueError("both scaler and loss_scale are given, expected one: a scaler knows its scale")
        self.optimizer = optimizer
        self.step = first_step  # of the step that comes next, or is under way
        model = names.unwrapped(model)
        self._out = out
        self._record_at = _step_test(every, "every")
        self._sample_at = _step_test(sample_every, "sample_every")
        self._settings = {"every": _told(every), "sample_every": _told(sample_every),
                          "first_step": first_step, "clipping": clipping,
                          "local_gradients": bool(local_gradients)}
        self._model = model
        self._about = about or {}
        self.parameters, self._names = {}, {}  # by name; id -> name
        self._local = self._names if local_gradients else {}
        self.modules = ModuleWatch(model, self.parameters.values(), self._of_the_optimizer, modules,
                                   self.learn_parameters, self._backward_ended, self._give_up)
        self._learned = {}  # id -> parameter of the optimizer, held: ids stay theirs
        self.writer = None
        self.learn_parameters()
        if scaler is not None and getattr(scaler, "is_enabled", lambda: True)():
            self.loss_scale = WatchedScaler(scaler, optimizer)
        else:
            self.loss_scale = FixedScale(loss_scale, unscaled_before_step)
        self.storage = Storage()
        self._told_missing = False
        self._started = False
        self._step_patch = self._zero_patch = None
        self._attempt = None
        self._gradients = None  # of the last backward pass since the last step
        self._losses, self._scaled_losses = [], []  # (round of the modules, loss)
        self._tried = []  # scalars of attempts of the step under way that it was tried again after

    def start(self):
        """Makes the folder and begins to watch."""
        if self._started:
            raise RuntimeError("this Recorder was started already; make another, with a folder of its own")
        self._started = True
        rank, self.ranks = manifest.rank_and_world_size()
        self.learn_parameters()
        self._trained_told = manifest.trained(self._model, self.optimizer, self._names)
        about = manifest.about(self._model, self.optimizer, self.loss_scale, self._settings)
        self.writer = LogWriter(
            self._out, scaled=self.loss_scale.scaled, rank=rank, world_size=self.ranks,
            sharded=self._of_each_rank() if self.ranks > 1 else [],
            about={**self._trained_told, **about, **self._about})
        self._prepare()
        self.modules.start()
        self._step_patch = Patch(self.optimizer, "step", self._around_step)
        if hasattr(self.optimizer, "zero_grad"):
            self._zero_patch = Patch(self.optimizer, "zero_grad", self._around_zero_grad)
        self.loss_scale.start(self._attempting, self._loss_scaled)
        return self

    def stop(self):
        """Puts everything back as it was. The log is complete; a second stop() does nothing."""
        self.loss_scale.stop()
        if self._step_patch is not None:
            self._step_patch.remove()
            self._step_patch = None
        if self._zero_patch is not None:
            self._zero_patch.remove()
        self.modules.stop()
        self.writer = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def loss(self, loss):
        """Notes the loss, as it is before scaling, and returns it. Losses noted in one step (of
        microbatches) add up, as their gradients do."""
        value = loss.detach() if isinstance(loss, torch.Tensor) else loss
        self._losses.append((self.modules.round, value))
        return loss

    # What follows is for the other parts of the recorder.

    @property
    def trained(self):
        """{name: (parameter, its group)} of the parameters the optimizer has now."""
        return {self._names[id(p)]: (p, group) for group in self.optimizer.param_groups
                for p in group["params"] if id(p) in self._names}

    def hyperparameters(self):
        return manifest.hyperparameters(self.optimizer, self._names)

    def take_loss(self):
        """The loss of the step: noted by loss(), else seen by scaler.scale() or a closure."""
        losses = self._losses or self._scaled_losses
        self._losses, self._scaled_losses = [], []
        return sum(float(loss) for _, loss in losses) if losses else None

    def learn_parameters(self):
        """Also those that joined the optimizer since, with the modules and names that the model has
        now."""
        now = {id(p): p for p in self._of_the_optimizer()}
        if now.keys() <= self._learned.keys():
            return
        self._learned = now
        known = names.parameters(self._model, self.optimizer)
        self.parameters.clear()
        self.parameters.update(known)
        self._names.clear()
        self._names.update((id(p), name) for name, p in known.items())
        self.modules.look_again()
        if self.writer is not None:
            told = manifest.trained(self._model, self.optimizer, self._names, self._trained_told)
            if told != self._trained_told:
                self._trained_told = told
                self.writer.replace_about({k: v for k, v in told.items() if k not in self._about})

    def missing_in(self, gradients):
        """How many gradients the optimizer's step is about to use that these are without."""
        missing = [f"optimizer.{g}.{i}" for g, group in enumerate(self.optimizer.param_groups)
                   for i, p in enumerate(group["params"])
                   if p.grad is not None and id(p) not in gradients.read]
        if missing and not self._told_missing:
            self._told_missing = True
            warnings.warn(f"Recorder: step {self.step} uses {len(missing)} gradients that are not "
                          f"recorded; the first is of {missing[0]} (group, place). They were not "
                          "there when the backward pass ended, or their type is not recorded. The "
                          "log counts them as gradients_missing. Add parameters to the optimizer "
                          "before the backward pass", RuntimeWarning, stacklevel=2)
        return len(missing)

    def take_gradients(self):
        """Weight gradients as the last backward pass left them; None where there was none since the
        last step, or one runs now: an optimizer that steps in a hook of it."""
        gradients, self._gradients = self._gradients, None
        return None if backward_runs() else gradients

    def gradients_now(self, provenance, scaled):
        return Gradients(self, provenance, self._record, self._sample, scaled)

    def take_tried(self):
        tried, self._tried = self._tried, []
        return tried

    def be_emulated(self, storage, loss_scale):
        """For emulate(), before start(): what memory holds, and the scale that it applies."""
        self.storage = self.modules.storage = storage
        self.loss_scale = loss_scale

    def _prepare(self):
        self._sample = self._sample_at(self.step)
        self._record = self._sample or self._record_at(self.step)
        self.modules.record, self.modules.keep = self._record, self._sample
        self.modules.local = self._local if self._record else {}

    def _of_each_rank(self):
        local = ["local_weight_grad"] if self._local else []
        return ["activation", "activation_grad", *local]

    def _of_the_optimizer(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _backward_ended(self):
        if self._attempt is not None and self._attempt.begun:
            return  # a closure's further calls
        self.learn_parameters()
        if self._gradients is None or not self.loss_scale.unscaled_by_the_loop:
            scaled = self.loss_scale.scaled and not self.loss_scale.unscaled_by_the_loop
            gradients = self.gradients_now(self.modules.provenance, scaled)
            self._gradients = gradients if gradients.read else None  # a hook took them all away

    def _loss_scaled(self, loss):
        self._scaled_losses.append((self.modules.round, loss))

    def _give_up(self):
        """Gradients were zeroed and no step was attempted: what led to them is of no step."""
        if self._attempt is not None and self._attempt.begun:
            return  # a closure's further calls
        self._gradients = None
        first = self.modules.give_up()
        self._losses, self._scaled_losses = (
            [(round_, loss) for round_, loss in losses if round_ >= first]
            for losses in (self._losses, self._scaled_losses))

    def _around_zero_grad(self, original, *args, **kwargs):
        self._give_up()
        return original(*args, **kwargs)

    @contextlib.contextmanager
    def _attempting(self, closure=False):
        """One attempted step. With a closure, gradients come to be inside the step: its first call
        is followed by begin()."""
        attempt = self._attempt = Attempt(self, self.step, self._record, self._sample)
        try:
            if not closure:
                attempt.begin()
            yield attempt
        finally:
            self._attempt = None  # an attempt that raised is not a step: nothing more is written
        if self.loss_scale.tries_again():
            self._tried.append(attempt.again())
            return
        attempt.end()
        self.step += 1
        self._prepare()

    def _around_step(self, original, *args, **kwargs):
        if self._attempt is not None:  # called by the scaler, which decided not to skip
            self._attempt.entered(kwargs)
            result = original(*args, **kwargs)
            self._attempt.left()
            return result
        closure = args[0] if args else kwargs.get("closure")
        with self._attempting(closure is not None) as attempt:
            attempt.entered(kwargs)
            if closure is not None:
                args = (self._read_after(closure, attempt), *args[1:])
                kwargs = {key: value for key, value in kwargs.items() if key != "closure"}
            result = original(*args, **kwargs)
            attempt.left()
            return result

    def _read_after(self, closure, attempt):
        def first_call_is_read():
            loss = closure()
            if not attempt.begun:
                if not self._losses and loss is not None:
                    self.loss(loss)
                attempt.begin()
            return loss

        return first_call_is_read


def _step_test(every, name):
    """A function of the step from a number, a collection of steps, a function, or None: never."""
    if every is None:
        return lambda step: False
    if isinstance(every, int) and not isinstance(every, bool) and every > 0:
        return lambda step: step % every == 0
    if callable(every):
        return lambda step: bool(every(step))
    if isinstance(every, collections.abc.Iterable) and not isinstance(every, (str, bytes)):
        steps = frozenset(every)
        return lambda step: step in steps
    raise TypeError(f"{name} is {every!r}, expected a number of steps above 0, a collection of steps "
                    "or a function of the step")


def _told(every):
    """How run.json says it."""
    if every is None or isinstance(every, int):
        return every
    return "a function" if callable(every) else sorted(every)


def require_kinds(model, optimizer, scaler=None, loss_scale=None):
    """Mistakes that would show hours later, or in the log alone, show here."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    if not hasattr(optimizer, "param_groups") or not hasattr(optimizer, "step"):
        raise TypeError(f"optimizer: found {type(optimizer).__name__}, expected a torch.optim.Optimizer")
    missing = [method for method in ("scale", "step", "update") if not hasattr(scaler, method)]
    if scaler is not None and missing:
        raise TypeError(f"scaler: found {type(scaler).__name__}, expected a GradScaler or anything with its methods")
    if loss_scale is not None and not (math.isfinite(loss_scale) and loss_scale > 0):
        raise ValueError(f"loss_scale: found {loss_scale}, expected a positive finite number")
