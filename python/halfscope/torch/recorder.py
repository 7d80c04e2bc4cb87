# SPDX-License-Identifier: Apache-2.0
"""The Recorder, which records a PyTorch training run."""

import contextlib
import os
import warnings

from halfscope._folders import log_folder, require_no_log
from halfscope._halfscope import same_objects
from halfscope._run_log import RunLog, first_number, for_the_manifest
from halfscope.torch import manifest, names, roles, sharding
from halfscope.torch.arguments import Steps, require_kinds
from halfscope.torch.attempt import Attempt
from halfscope.torch.gradients import Gradients, backward_runs
from halfscope.torch.guard import Guard
from halfscope.torch.late import LateWriting
from halfscope.torch.live import Alerts, summary_of
from halfscope.torch.losses import Losses
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
    every          steps at which histograms are recorded: a number n (every n-th step), a collection
                   of steps, or a function of the step. Scalars are written at every step.
    sample_every   steps at which whole tensors are saved, as for `every`; none by default
    scaler         the loop's GradScaler, or any object with its methods
    loss_scale     a loss scale that the loop applies itself, without a scaler
    unscaled_before_step  True if that loop divides the gradients before optimizer.step()
    modules        function of (path, module) that returns True if the module's activations are
                   recorded; by default all modules without submodules
    magnitudes_every  further steps at which the largest magnitude of activation gradients is read,
                   as for `every`; by default every step; None: only recorded steps
    sample_roles   roles of the tensors in samples: "weight", "update"...; all by default
    clipping       how the loop clips gradients before the step; only noted in run.json
    local_gradients  True to record also the weight gradients of each backward pass, before they are
                   added to those of other microbatches and ranks
    first_step     number of the first step, for a run that continues from a checkpoint
    about          further keys for run.json: data, name of the run...; values must be JSON
    on_error       "warn": an error of the recorder ends the recording with a warning, and the
                   training run continues; "raise": the error is raised; a function is called with
                   the text of every warning
    """

    _started = None  # if the arguments are refused, it stays None and __del__ does not warn

    def __init__(self, model, optimizer, out, every=1, *, sample_every=None, scaler=None,
                 loss_scale=None, unscaled_before_step=False, modules=None, clipping=None,
                 local_gradients=False, first_step=0, about=None, magnitudes_every=1,
                 sample_roles=None, on_error="warn"):
        require_kinds(model, optimizer, scaler, loss_scale, modules, on_error)
        self.loss_scale = loss_scale_of(optimizer, scaler, loss_scale, unscaled_before_step)
        self.optimizer, _ = of_accelerate(optimizer)
        self._stepped = step_method(optimizer)
        self.step = first_number(first_step)  # number of the next step, or of the running one
        self._compiled = names.is_compiled(model)
        self._guard = Guard(on_error, self.stop)
        self._late = LateWriting(self._guard)
        self.sampled_role = roles.test(sample_roles)
        self._named = os.fspath(out)  # name of the folder in messages
        self._out = os.path.abspath(out)  # the loop may change its working directory
        self._steps = Steps(every, sample_every, magnitudes_every)
        self._settings = {**self._steps.told, "sample_roles": roles.told(sample_roles),
                          "first_step": self.step, "clipping": manifest.as_json(clipping),
                          "local_gradients": bool(local_gradients)}
        self._model = names.unwrapped(model)
        self._about = for_the_manifest(about)
        self.parameters, self._names = {}, {}  # {name: parameter}, {id: name}
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
        self._learned = {}  # {id: parameter of the optimizer}; keeps them alive, so ids are unique
        self._known = []    # the groups, and the parameters of each, at the last learn_parameters()
        self.trained = {}   # {name: (parameter, its group)} for the optimizer's present parameters
        self.writer = None
        self._autocast = None  # {kind of device: dtype or None}, as in run.json
        self._told_missing = self._told_size = self._told_unstarted = False
        self._step_patch = self._zero_patch = None
        self.attempt = None  # the Attempt of the step that runs now
        self._ended = self._record_was = False  # last attempt: it was a step; the step was recorded
        self._gradients = None  # Gradients after the last backward pass since the last step
        self.losses = Losses()
        self._tried = []  # scalars of earlier attempts of the running step

    def start(self):
        """Makes the folder and begins to record. If the folder cannot be made or a tensor cannot be
        read, warns and records nothing (or raises, see on_error)."""
        if self._started:
            raise RuntimeError("this Recorder was started already; make another, with a folder of its own")
        self._started = True
        self._guard.begin()
        rank, self.ranks = manifest.rank_and_world_size()
        self.sharded = sharding.layout(self._model, self.ranks)
        require_no_log(self._out, rank, self.ranks)
        self._guard(self._start, rank)
        return self

    def _start(self, rank):
        self.learn_parameters()
        self._trained_told = manifest.trained(self._model, self.optimizer, self._names)
        about = manifest.about(self._model, self.optimizer, self.loss_scale, self._settings)
        about["recorder"].update(self._blind_spots())
        self.writer = RunLog(
            self._out, scaled=self.loss_scale.scaled, rank=rank, world_size=self.ranks,
            sharded=self._of_each_rank() if self.ranks > 1 else [],
            about={**self._trained_told, **about, **self._about})
        self._prepare()
        self.modules.all_parts = self.ranks > 1
        self.modules.start()
        self._step_patch = Patch(*self._stepped, self._around_step)
        if hasattr(self.optimizer, "zero_grad"):
            self._zero_patch = Patch(self.optimizer, "zero_grad", self._around_zero_grad)
        self.loss_scale.start(self._attempting, lambda loss: self._guard(self._loss_scaled, loss))
        self._late.start(self.writer)

    def stop(self):
        """Removes all hooks. The log is then complete. A second stop() does nothing."""
        try:
            self._late.stop()
        finally:
            self._remove()

    def _remove(self):
        self.loss_scale.stop()
        for patch in (self._step_patch, self._zero_patch):
            if patch is not None:
                patch.remove()
        self.modules.stop()
        self.writer = None
        self._gradients, self.attempt = None, None
        self.losses = Losses()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def __del__(self):
        if self._started is False:
            self._tell_unstarted()

    def loss(self, loss):
        """Notes the loss before scaling, and returns it. Losses of one step (of its microbatches)
        are added, as their gradients are."""
        if not self._started:
            self._tell_unstarted()
        elif self.writer is not None:
            self._guard(self._note_loss, loss)
        return loss

    def alert(self, when, do=None):
        """Tests a condition from now on: "loss > 100" at every step; grad_norm and the conditions
        of `halfscope analyze --fail-if` ("nan > 0 for weight_grad", docs/gates.md) at every
        recorded step. do: a function that receives a list of lines if the condition holds or is
        undecided; it may raise to end the run. By default, the first such case is a warning.
        """
        self._alerts.add(when, do)

    def summary(self):
        """Returns the answer of `halfscope recommend` for the log so far, as text. Raises
        halfscope.BadInput if the log has too little for an answer."""
        self._late.complete()
        return summary_of(self._out)

    # The methods below are for the other parts of the recorder.

    def _note_loss(self, loss):
        if self.attempt is not None and self.attempt.begun:
            return  # a further call of a closure
        self.losses.note(self.modules.round, loss)

    def hyperparameters(self):
        return manifest.hyperparameters(self.optimizer, self._names)

    def learn_parameters(self):
        """Updates parameters, modules and names if the optimizer's groups changed."""
        groups = self.optimizer.param_groups
        known = [list(groups), *(list(group["params"]) for group in groups)]
        if len(known) == len(self._known) and all(map(same_objects, known, self._known)):
            return
        self._known = known
        now = {id(p): p for p in self._of_the_optimizer()}
        if not now.keys() <= self._learned.keys():
            self._learn(now)
        self.trained = {self._names[id(p)]: (p, group) for group in groups for p in group["params"]
                        if id(p) in self._names}
        self.trained_parameters = [parameter for parameter, _ in self.trained.values()]
        self.modules.trained, self.modules.trained_ids = list(now.values()), now.keys()

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
        """Returns the number of gradients that the step uses but `gradients` lacks. Warns once."""
        read = gradients.read
        missing = [f"optimizer.{g}.{i}" for g, group in enumerate(self.optimizer.param_groups)
                   for i, p in enumerate(group["params"])
                   if id(p) not in read and p.grad is not None]
        if missing and not self._told_missing:
            self._told_missing = True
            self._guard.warn(f"step {self.step} uses {len(missing)} gradients that are not recorded; the "
                             f"first is of {missing[0]} (group, place). They were not there when the "
                             "backward pass ended, or their type is not recorded. The log counts them as "
                             "gradients_missing. Add parameters to the optimizer before the backward pass")
        return len(missing)

    def take_gradients(self):
        """Returns the Gradients after the last backward pass. None if there was no pass since the
        last step, or if one runs now: the optimizer steps in one of its hooks."""
        gradients, self._gradients = self._gradients, None
        return None if backward_runs() else gradients

    def gradients_now(self, provenance, scaled):
        return Gradients(self, provenance, self._record, scaled)

    def take_tried(self):
        tried, self._tried = self._tried, []
        return tried

    def tell_sample_size(self, tensors):
        """Logs the size of a sample once, before the first is written."""
        if not self._told_size:
            self._told_size = True
            roles.tell_size(tensors, self._named)

    def be_emulated(self, storage, loss_scale):
        """Sets storage and loss scale of an emulated run. Called before start()."""
        self.storage = self.modules.storage = storage
        self.loss_scale = loss_scale

    def keeps(self, role):
        """Returns True if the sample of the running step includes values of the role."""
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
        """Returns what is not recorded and why, for run.json. Also warns once."""
        spots = dict(self.sharded.about)
        if self._compiled:
            spots["activations"] = "not recorded: torch.compile"
            self.modules.unseen_is_told = True
            self._guard.warn(names.COMPILED)
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
        """Adds autocast dtypes to run.json, also if autocast begins inside forward()."""
        known = self._autocast or {}
        merged = {**known, **{key: cast for key, cast in found.items() if known.get(key) is None}}
        if merged != self._autocast and self.writer is not None:
            self._autocast = merged
            self.writer.replace_about({"autocast": manifest.autocast(merged)})

    def _of_the_optimizer(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _backward_ended(self):
        if self.attempt is not None and self.attempt.begun:
            return  # a further call of a closure
        self.learn_parameters()
        if self._gradients is None or not self.loss_scale.unscaled_by_the_loop:
            scaled = self.loss_scale.scaled and not self.loss_scale.unscaled_by_the_loop
            gradients = self.gradients_now(self.modules.provenance, scaled)
            self.modules.first_part(gradients.largest.bounding)
            self._gradients = gradients if gradients.read else None  # else a hook cleared them

    def _loss_scaled(self, loss):
        self.losses.note_scaled(self.modules.round, loss)

    def _give_up(self):
        """Drops gradients and losses: the loop cleared the gradients without attempting a step."""
        if self.attempt is not None and self.attempt.begun:
            return  # a further call of a closure
        self._gradients = None
        self.losses.drop_before(self.modules.give_up())

    def _around_zero_grad(self, original, *args, **kwargs):
        self._guard(self._give_up)
        return original(*args, **kwargs)

    @contextlib.contextmanager
    def _attempting(self, closure=False):
        """A context for one attempted step. With a closure, gradients are computed inside the step,
        so begin() follows the closure's first call."""
        attempt = self.attempt = Attempt(self, self.step, self._record, self._sample)
        try:
            if not closure:
                self._guard(attempt.begin)
            yield attempt
        finally:
            self.attempt = None  # nothing more is written for an attempt that raised
        if self.writer is not None:
            self._guard(self._attempt_ends, attempt)
            if self._ended and self.writer is not None:
                self._alerts.look(self._guard, self.writer.folder, attempt, self._record_was)

    def _attempt_ends(self, attempt):
        self._ended = self._record_was = False
        if self.loss_scale.tries_again():
            self._late.flush()
            self._tried.append(attempt.again())
            return
        attempt.end()
        if attempt.casts:
            self._note_autocast(attempt.casts)
        on_gpu = any(p.is_cuda for p in self.trained_parameters[:1])
        self._late.write(attempt, at_once=self._alerts or not on_gpu)
        self._ended, self._record_was = True, self._record
        self.step += 1
        self._prepare()

    def _around_step(self, original, *args, **kwargs):
        attempt = self.attempt
        if attempt is not None:  # called by the scaler, which does not skip the step
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
        if not self.losses.noted and loss is not None:
            self.loss(loss)
        attempt.begin()
