# SPDX-License-Identifier: Apache-2.0
"""The recorder: what a user of PyTorch sees of halfscope."""

import contextlib
import os
import warnings

import torch

from halfscope.torch import manifest, names, roles, sharding
from halfscope.torch.arguments import Steps, first_number, for_the_manifest, require_kinds
from halfscope.torch.attempt import Attempt
from halfscope.torch.gpu import number_later, number_of
from halfscope.torch.gradients import Gradients, backward_runs
from halfscope.torch.guard import Guard
from halfscope.torch.live import Alerts, summary_of
from halfscope.torch.log_writer import LogWriter, log_folder, require_no_log
from halfscope.torch.modules import ModuleWatch
from halfscope.torch.patching import Patch
from halfscope.torch.provenance import autocast_now
from halfscope.torch.scaler import loss_scale_of, of_accelerate, step_method
from halfscope.torch.storage import Storage


class Recorder:
    """Records a training run as a run log: docs/recording.md.

        with Recorder(model, optimizer, "run", every=10) as recorder:
            for x, y in batches:
                loss = loss_function(model(x), y)
                ...                                # backward, optimizer.step(), as ever
                recorder.loss(loss)                # before the step; optional

    Or start() and stop() in place of `with`. A step is one attempted optimizer step, from 0.

    out            folder of the log; it may not hold one already
    every          at which steps tables are recorded: every so many, a collection of steps, or a
                   function of the step. Scalars are written at every step.
    sample_every   the same for whole tensors; none by default
    scaler         the loop's GradScaler, or anything with its methods
    loss_scale     a loss scale that the loop applies itself, without a scaler;
    unscaled_before_step  and whether it divides the gradients before optimizer.step()
    modules        function of (path, module): whose activations are recorded; by default all without submodules
    magnitudes_every  at which steps beside the recorded ones the largest magnitude of activation
                   gradients is taken; by default at every step; None: at recorded steps alone
    sample_roles   roles of the tensors that samples hold: "weight", "update"...; all by default
    clipping       how the loop clips gradients before the step; only noted in run.json
    local_gradients  whether weight gradients are also recorded as they come from each backward pass,
                   before they are added to those of other microbatches and ranks
    first_step     number of the first step, for a run that goes on from a checkpoint
    about          more for run.json: data, name of the run...; values must be JSON
    on_error       "warn": an error of the recorder ends the recording with a warning, and the
                   training run goes on; "raise": it is raised
    """

    _started = None  # __del__ says nothing of a recorder whose arguments were refused

    def __init__(self, model, optimizer, out, every=1, *, sample_every=None, scaler=None,
                 loss_scale=None, unscaled_before_step=False, modules=None, clipping=None,
                 local_gradients=False, first_step=0, about=None, magnitudes_every=1,
                 sample_roles=None, on_error="warn"):
        require_kinds(model, optimizer, scaler, loss_scale, modules, on_error)
        self.loss_scale = loss_scale_of(optimizer, scaler, loss_scale, unscaled_before_step)
        self.optimizer, _ = of_accelerate(optimizer)
        self._stepped = step_method(optimizer)
        self.step = first_number(first_step)  # of the step that comes next, or is under way
        self._compiled = names.is_compiled(model)
        self._guard = Guard(on_error == "raise", self.stop)
        self.sampled_role = roles.test(sample_roles)
        self._named = os.fspath(out)  # in messages
        self._out = os.path.abspath(out)  # a loop may change its working directory
        self._steps = Steps(every, sample_every, magnitudes_every)
        self._settings = {**self._steps.told, "sample_roles": roles.told(sample_roles),
                          "first_step": self.step, "clipping": manifest.as_json(clipping),
                          "local_gradients": bool(local_gradients)}
        self._model = names.unwrapped(model)
        self._about = for_the_manifest(about)
        self.parameters, self._names = {}, {}  # by name; id -> name
        self._local = self._names if local_gradients else {}
        self.modules = ModuleWatch(model, self.parameters.values(), self._guard, modules,
                                   self._model_called, self._backward_ended,
                                   self._give_up)
        self.storage = Storage()
        self._alerts = Alerts()
        self._begin_empty()
        self.learn_parameters()
        self._started = False

    def _begin_empty(self):
        self._learned = {}  # id -> parameter of the optimizer, held: ids stay theirs
        self._ids = None    # of groups and their parameters, as they were last
        self.trained = {}   # name -> (parameter, its group), of those the optimizer has now
        self.trained_parameters = []
        self.writer = None
        self._autocast = None  # {device: type or None}, as run.json has it
        self._told_missing = self._told_size = self._told_unstarted = False
        self._step_patch = self._zero_patch = None
        self._attempt = None
        self._ended = self._record_was = False  # of the attempt that was last: a step, and recorded
        self._gradients = None  # of the last backward pass since the last step
        self._losses, self._scaled_losses = [], []  # (round of the modules, loss)
        self._tried = []  # scalars of attempts of the step under way that it was tried again after

    def start(self):
        """Makes the folder and begins to watch. Where the folder cannot be made, or a tensor cannot
        be read, that is said in a warning, and nothing is recorded."""
        if self._started:
            raise RuntimeError("this Recorder was started already; make another, with a folder of its own")
        self._started = True
        self._guard.begin()
        rank, self.ranks = manifest.rank_and_world_size()
        self.sharded = sharding.layout(self._model, self.ranks)
        folder = log_folder(self._out, rank, self.ranks)
        require_no_log(folder)
        self._guard(self._start, folder, rank)
        return self

    def _start(self, folder, rank):
        self.learn_parameters()
        self._trained_told = manifest.trained(self._model, self.optimizer, self._names)
        about = manifest.about(self._model, self.optimizer, self.loss_scale, self._settings)
        about["recorder"].update(self._blind_spots())
        self.writer = LogWriter(
            folder, scaled=self.loss_scale.scaled, rank=rank, world_size=self.ranks,
            sharded=self._of_each_rank() if self.ranks > 1 else [],
            about={**self._trained_told, **about, **self._about})
        self._prepare()
        self.modules.all_parts = self.ranks > 1
        self.modules.start()
        self._step_patch = Patch(*self._stepped, self._around_step)
        if hasattr(self.optimizer, "zero_grad"):
            self._zero_patch = Patch(self.optimizer, "zero_grad", self._around_zero_grad)
        self.loss_scale.start(self._attempting, lambda loss: self._guard(self._loss_scaled, loss))

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
        self._gradients, self._attempt = None, None
        self._losses, self._scaled_losses = [], []

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def __del__(self):
        if self._started is False:
            self._tell_unstarted()

    def loss(self, loss):
        """Notes the loss, as it is before scaling, and returns it. Losses noted in one step (of
        microbatches) add up, as their gradients do."""
        if not self._started:
            self._tell_unstarted()
        elif self.writer is not None:
            self._guard(self._note_loss, loss)
        return loss

    def alert(self, when, do=None):
        """Looks for a condition from now on: "loss > 100" at every step, grad_norm and those of `halfscope
        analyze --fail-if` ("nan > 0 for weight_grad", docs/gates.md) at every recorded one. do: a
        function that is called with the lines of what holds or is undecided, and may raise to end
        the run; by default they are one warning, the first time.
        """
        self._alerts.add(when, do)

    def summary(self):
        """What `halfscope recommend` says of the log so far, as text. Raises halfscope.BadInput
        where nothing can be said yet."""
        return summary_of(self._out)

    # What follows is for the other parts of the recorder.

    def _note_loss(self, loss):
        value = loss.detach() if isinstance(loss, torch.Tensor) else loss
        self._losses.append((self.modules.round, number_later(value)))

    def hyperparameters(self):
        return manifest.hyperparameters(self.optimizer, self._names)

    def take_loss(self):
        """The loss of the step: noted by loss(), else seen by scaler.scale() or a closure."""
        losses = self._losses or self._scaled_losses
        self._losses, self._scaled_losses = [], []
        return sum(number_of(loss) for _, loss in losses) if losses else None

    def learn_parameters(self):
        """Also those that joined the optimizer since, with the modules and names that the model has
        now."""
        groups = self.optimizer.param_groups
        ids = [[id(group), *map(id, group["params"])] for group in groups]
        if ids == self._ids:
            return
        self._ids = ids
        now = {id(p): p for p in self._of_the_optimizer()}
        if not now.keys() <= self._learned.keys():
            self._learn(now)
        self.trained = {self._names[id(p)]: (p, group) for group in groups for p in group["params"]
                        if id(p) in self._names}
        self.trained_parameters = [parameter for parameter, _ in self.trained.values()]
        self.modules.trained = {id(p): p for p in self._of_the_optimizer()}

    def _learn(self, now):
        self._learned = now
        known = names.parameters(self._model, self.optimizer)
        self.parameters.clear()
        self.parameters.update(known)
        self._names.clear()
        self._names.update((id(p), name) for name, p in known.items())
        self.modules.look_again()
        if self.writer is not None:
            now_told = manifest.trained(self._model, self.optimizer, self._names, self._trained_told)
            if now_told != self._trained_told:
                self._trained_told = now_told
                self.writer.replace_about({k: v for k, v in now_told.items() if k not in self._about})

    def name_of(self, parameter):
        return self._names[id(parameter)]

    def missing_in(self, gradients):
        """How many gradients the optimizer's step is about to use that these are without."""
        read = gradients.read
        missing = [f"optimizer.{g}.{i}" for g, group in enumerate(self.optimizer.param_groups)
                   for i, p in enumerate(group["params"])
                   if id(p) not in read and p.grad is not None]
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
        return Gradients(self, provenance, self._record, scaled)

    def take_tried(self):
        tried, self._tried = self._tried, []
        return tried

    def tell_sample_size(self, tensors):
        """Once, before the first is written."""
        if not self._told_size:
            self._told_size = True
            roles.tell_size(tensors, self._named)

    def be_emulated(self, storage, loss_scale):
        """For emulate(), before start(): what memory holds, and the scale that it applies."""
        self.storage = self.modules.storage = storage
        self.loss_scale = loss_scale

    def keeps(self, role):
        """Whether values of the role go into the sample of the step under way."""
        return self._sample and self.sampled_role(role)

    def _prepare(self):
        self._sample = self._steps.sample(self.step)
        self._record = self._sample or self._steps.record(self.step)
        self.modules.record, self.modules.keep = self._record, self.keeps
        self.modules.magnitudes = self._record or self._steps.look(self.step)
        self.modules.local = self._local if self._record else {}
        self.modules.look_at_modules()

    def _of_each_rank(self):
        local = ["local_weight_grad"] if self._local else []
        return ["activation", "activation_grad", *local, *self.sharded.roles]

    def _blind_spots(self):
        """For run.json: what is not looked at, and why. Said once, too."""
        spots = dict(self.sharded.about)
        if self._compiled:
            spots["activations"] = "not recorded: torch.compile"
            self.modules.unseen_is_told = True
            warnings.warn(f"Recorder: {names.COMPILED}", RuntimeWarning, stacklevel=5)
        return spots

    def _tell_unstarted(self):
        if not self._told_unstarted:
            self._told_unstarted = True
            warnings.warn("Recorder: it was never started, so nothing is recorded; write `with "
                          "Recorder(...):` around the loop, or call start()", RuntimeWarning,
                          stacklevel=3)

    def _model_called(self):
        self.learn_parameters()
        if self._autocast is None:
            self._note_autocast(autocast_now(self._model))

    def _note_autocast(self, found):
        """Also where it begins inside of the model's forward()."""
        known = self._autocast or {}
        merged = {**known, **{key: cast for key, cast in found.items() if known.get(key) is None}}
        if merged != self._autocast and self.writer is not None:
            self._autocast = merged
            self.writer.replace_about({"autocast": manifest.autocast(merged)})

    def _of_the_optimizer(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _backward_ended(self):
        if self._attempt is not None and self._attempt.begun:
            return  # a closure's further calls
        self.learn_parameters()
        if self._gradients is None or not self.loss_scale.unscaled_by_the_loop:
            scaled = self.loss_scale.scaled and not self.loss_scale.unscaled_by_the_loop
            gradients = self.gradients_now(self.modules.provenance, scaled)
            self.modules.first_part(gradients.largest.bounding)
            self._gradients = gradients if gradients.read else None  # a hook took them all away

    def _loss_scaled(self, loss):
        self._scaled_losses.append((self.modules.round, number_later(loss)))

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
        self._guard(self._give_up)
        return original(*args, **kwargs)

    @contextlib.contextmanager
    def _attempting(self, closure=False):
        """One attempted step. With a closure, gradients come to be inside the step: its first call
        is followed by begin()."""
        attempt = self._attempt = Attempt(self, self.step, self._record, self._sample)
        try:
            if not closure:
                self._guard(attempt.begin)
            yield attempt
        finally:
            self._attempt = None  # an attempt that raised is not a step: nothing more is written
        if self.writer is not None:
            self._guard(self._attempt_ends, attempt)
            if self._ended and self.writer is not None:
                self._alerts.look(self._guard, self.writer.folder, attempt, self._record_was)

    def _attempt_ends(self, attempt):
        self._ended = self._record_was = False
        if self.loss_scale.tries_again():
            self._tried.append(attempt.again())
            return
        attempt.end()
        if attempt.casts:
            self._note_autocast(attempt.casts)
        self._ended, self._record_was = True, self._record
        self.step += 1
        self._prepare()

    def _around_step(self, original, *args, **kwargs):
        attempt = self._attempt
        if attempt is not None:  # called by the scaler, which decided not to skip
            self._guard(attempt.entered, kwargs)
            result = original(*args, **kwargs)
            self._guard(attempt.left)
            return result
        closure = args[0] if args else kwargs.get("closure")
        with self._attempting(closure is not None) as attempt:
            self._guard(attempt.entered, kwargs)
            if closure is not None:
                args = (self._read_after(closure, attempt), *args[1:])
                kwargs = {key: value for key, value in kwargs.items() if key != "closure"}
            result = original(*args, **kwargs)
            self._guard(attempt.left)
            return result

    def _read_after(self, closure, attempt):
        def first_call_is_read():
            loss = closure()
            if not attempt.begun:
                self._guard(self._closure_was_called, loss, attempt)
            return loss

        return first_call_is_read

    def _closure_was_called(self, loss, attempt):
        if not self._losses and loss is not None:
            self.loss(loss)
        attempt.begin()
