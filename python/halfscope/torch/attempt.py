# SPDX-License-Identifier: Apache-2.0
"""Records one attempted optimizer step: reads before and after it, then writes."""

import functools
import json
import math

import torch

from halfscope._halfscope import Gathered
from halfscope._run_log import unscaled
from halfscope.torch import steps, updates
from halfscope.torch.gpu import finish_counts, number_of
from halfscope.torch.scaler import found_inf_inside, unscales_inside
from halfscope.torch.tensors import copies, gather, gather_each, in_chunks, local, plain, values_of

_SEEN_IN_BACKWARD = ("activation_grad", "local_weight_grad")  # these carry the loss scale, if any


class Attempt:
    """begin() reads weights and gradients when the step is attempted. entered() is called when the
    optimizer's own step begins, so it was not skipped, and left() when it is over. end() writes the
    sample, and write() the rest: on a GPU when the next step has ended, since it waits for results."""

    def __init__(self, run, step, record, sample):
        self._run = run
        self.step = self._step = step
        self._record = record or sample
        self._sample = sample
        self.begun = False
        self._entered = False
        self._found_inf_later = None  # found_inf_inside(); None if unknown
        self._tensors = []      # (name, Gathered, True if scaled)
        self._samples = {}      # {name: values}, in the order of the file
        self._weights = {}      # {name of a parameter: values before the step, if needed}
        self._gradients = {}    # {name of a parameter: unscaled gradient, if needed}
        self._weight_grads = []  # Gathered weight gradients; empty unless recorded
        self.loss = None
        self.numbers = {"loss": lambda: self.loss, "grad_norm": self._grad_norm}  # for Recorder.alert()

    def begin(self):
        """Reads weights, gradients and the data of the hooks."""
        self.begun = True
        run = self._run
        run.learn_parameters()
        self._scale_later = run.loss_scale.later()
        gradients = run.take_gradients()
        self._seen = run.modules.take()
        self._seen.copy_to_host()
        run.modules.tell_unseen(self._seen)
        self._read_at_step = gradients is None  # the loop set the gradients without a backward pass
        if self._read_at_step:
            gradients = run.gradients_now(self._seen.provenance, run.loss_scale.weight_grads_scaled)
        self._missing = run.missing_in(gradients)
        self._scaled = {"weight_grad": gradients.scaled,
                        **dict.fromkeys(_SEEN_IN_BACKWARD, run.loss_scale.scaled)}
        self._hyperparameters = run.hyperparameters() if self._sample else None
        self._lr = [float(group["lr"]) for group in run.optimizer.param_groups if "lr" in group]
        self._largest_weight_grad = gradients.largest
        if self._record:
            self._read_weights()
            self._weight_grads = list(gradients.tensors.values())
            self._write("weight_grad", gradients.tensors.items())
            self._write("local_weight_grad", self._seen.local_weight_grads(run.ranks).items())
            self._keep_for_updates()
            if self._entered:  # with a closure
                self._keep_gradients()
            for path, gathered in self._seen.tensors.items():
                role, _, name = path.partition("/")
                self._write(role, [(name, gathered)])

    @functools.cached_property
    def _scale(self):
        """The loss scale. Read as late as possible: its copy from a GPU may not have arrived."""
        return number_of(self._scale_later)

    @functools.cached_property
    def _found_inf(self):
        """True if the optimizer skips the step inside."""
        return self._found_inf_later is not None and bool(number_of(self._found_inf_later))

    @functools.cached_property
    def _foreach(self):
        """{id of a group: True if torch.optim uses foreach operations for it}"""
        return {id(group): steps.takes_foreach(group) for group in self._run.optimizer.param_groups}

    @property
    def casts(self):
        """Provenance.casts of the step. Empty unless the step is recorded."""
        return self._seen.provenance.casts

    def entered(self, kwargs):
        self._entered = True
        if self.begun:
            self._keep_gradients()
        if unscales_inside(self._run.optimizer):
            self._found_inf_later = found_inf_inside(self._run.optimizer, kwargs)

    def left(self):
        """Reads the updates, unless the step was skipped."""
        if self._record and self.begun and not self._found_inf:
            self._read_updates()

    def end(self):
        if not self.begun:  # a closure that was never called
            self.begin()
        run = self._run
        run.modules.take()  # drops the data of a closure's further calls
        self._weights = self._gradients = None
        finish_counts()
        self._losses, self._tried = run.losses.take(), run.take_tried()
        if self._sample:
            self._read_after()
            run.tell_sample_size(self._samples)
            run.writer.write_sample(self._step, self._samples, self._metadata())
            self._samples = {}

    def write(self, later=False):
        """Writes histograms and scalars. Waits for the GPU to compute them; for histograms, another thread
        does if `later` is True."""
        self._write_tensors(later)
        self._write_scalars()

    @property
    def _skipped(self):
        return not self._entered or self._found_inf

    def _write(self, role, named):
        """named: (name, Gathered) of tensors of the role."""
        scaled, keeps = self._scaled.get(role, False), self._run.keeps(role)
        for name, gathered in named:
            self._tensors.append((f"{role}/{name}", gathered, scaled))
            if keeps:
                self._samples[f"{role}/{name}"] = values_of(gathered)

    def _write_tensors(self, later=False):
        # A scale of 0 or infinity cannot be undone: the log gets an unknown scale.
        usable = self._scale if 0 < self._scale < math.inf else None
        if self._tensors:
            self._run.writer.write_tensors(self._step, [
                (name, gathered, scaled, usable if scaled else 1.0)
                for name, gathered, scaled in self._tensors], later)

    def _read_weights(self):
        storage, parameters = self._run.storage, self._run.parameters
        weights = {name: Gathered() for name in parameters}
        gather_each([(weights[name], *storage.stored("weight", parameter, None, parameter))
                     for name, parameter in parameters.items()], self._run.keeps("weight"))
        for name, parameter in parameters.items():
            self._write("weight", [(name, weights[name])])
            if storage.has_master(parameter):
                master = Gathered()
                gather(master, storage.updated(parameter), None, self._run.keeps("master_weight"))
                self._write("master_weight", [(name, master)])

    def _keep_for_updates(self):
        """Copies weights and gradients that updates.update_each() needs and that the step changes."""
        run, weights = self._run, {}
        for name, (parameter, group) in run.trained.items() if steps.knows(run.optimizer) else ():
            if parameter.grad is None:
                continue
            if updates.needs_weight(run.optimizer, group):
                weights[name] = local(run.storage.updated(parameter))
            if updates.needs_gradient(run.optimizer, group) and self._unscaled_inside():
                self._gradients[name] = parameter.grad.detach() / self._scale
        self._weights = dict(zip(weights, copies(list(weights.values()))))

    def _keep_gradients(self):
        """Copies gradients that updates.update_each() needs and that the step, which comes next, changes."""
        run = self._run
        if not self._record or not steps.knows(run.optimizer):
            return
        changed = {name: local(parameter.grad) for name, (parameter, group) in run.trained.items()
                   if parameter.grad is not None and name not in self._gradients
                   and updates.changes_gradient(run.optimizer, group, self._foreach[id(group)])}
        self._gradients.update(zip(changed, copies(list(changed.values()))))

    def _unscaled_inside(self):
        return (self._run.loss_scale.weight_grads_scaled and
                unscales_inside(self._run.optimizer))

    def _read_updates(self):
        run = self._run
        if not steps.knows(run.optimizer):
            return
        stepped = ((name, p) for name, (p, _) in run.trained.items() if p.grad is not None)
        for chunk in in_chunks(stepped):
            added = updates.update_each(run.optimizer, [
                (p, run.trained[name][1], self._weights.get(name), self._gradients.get(name, p.grad.detach()))
                for name, p in chunk], self._foreach)
            gathered = [Gathered() for _ in chunk]
            gather_each([(each, tensor, None) for each, tensor in zip(gathered, added)])
            for each, tensor in zip(gathered, added) if run.keeps("update") else ():
                each.keep(plain(tensor))  # no copy: nothing else refers to the tensor
            self._write("update", ((name, each) for (name, _), each in zip(chunk, gathered)))

    def _read_after(self):
        for name, (parameter, _) in self._run.trained.items():
            if self._run.keeps("weight_after"):
                self._samples[f"weight_after/{name}"] = self._now("weight_after", parameter,
                                                                  parameter)
            if not self._run.keeps("optimizer_state"):
                continue
            for key, value in self._run.optimizer.state.get(parameter, {}).items():
                if isinstance(value, (int, float)):
                    value = torch.tensor(float(value), dtype=torch.float64)
                if isinstance(value, torch.Tensor) and torch.is_floating_point(value):
                    self._samples[f"optimizer_state/{key}/{name}"] = self._now(
                        "optimizer_state", value, parameter)

    def _now(self, role, tensor, parameter):
        """Returns a tensor for the sample. Not a copy: it is written before the loop continues."""
        return plain(local(self._run.storage.stored(role, tensor, None, parameter)[0]))

    def _metadata(self):
        states = {role: "scaled" if scaled else "unscaled" for role, scaled in self._scaled.items()}
        metadata = {"gradients": states["weight_grad"],
                    "activation_gradients": states["activation_grad"],
                    "found_inf": str(int(self._skipped)),
                    "hyperparameters": json.dumps(self._hyperparameters)}
        if any(self._scaled.values()):
            metadata["scale"] = repr(self._scale)
        return metadata

    def again(self):
        """Called instead of end() if the step will be tried again. Returns the scalars."""
        self._run.modules.take()
        finish_counts()
        self._write_tensors()
        self._run.losses.take()
        return {"loss_scale": self._scale, **self._largest()}

    def _largest(self):
        return {"max_abs/weight_grad": unscaled(self._largest_weight_grad.value(),
                                                self._scale_of("weight_grad")),
                "max_abs/activation_grad": unscaled(self._seen.largest_activation_grad(),
                                                    self._scale_of("activation_grad"))}

    def _write_scalars(self):
        run = self._run
        largest = self._largest()
        more = {f"learning_rate/group-{i}": lr for i, lr in enumerate(self._lr) if i > 0}
        if self._read_at_step:
            more["gradients_read_at_step"] = 1.0
        if self._missing:
            more["gradients_missing"] = float(self._missing)
        more.update(self._seen.per_microbatch(run.ranks))  # with the loss scale: docs/run-log.md
        tried = [*self._tried, {"loss_scale": self._scale, **largest}]
        for i, attempt in enumerate(tried if len(tried) > 1 else []):
            more.update({f"{tag}/attempt-{i}": value for tag, value in attempt.items()
                         if value is not None})
        self.loss = sum(map(number_of, self._losses)) if self._losses else None
        run.writer.write_scalars(
            step=self._step,
            loss=self.loss,
            learning_rate=self._lr[0] if self._lr else None,
            loss_scale=self._scale,
            found_inf=self._skipped,
            max_abs_weight_grad=largest["max_abs/weight_grad"],
            max_abs_activation_grad=largest["max_abs/activation_grad"],
            more=more)

    def _grad_norm(self):
        """Returns the L2 norm of the unscaled weight gradients before clipping. None if they were
        not recorded or carry a scale that cannot be undone."""
        scale = self._scale_of("weight_grad")
        if not self._weight_grads or not 0 < scale < math.inf:
            return None
        return math.sqrt(sum(gathered.norm_squared for gathered in self._weight_grads)) / scale

    def _scale_of(self, role):
        return self._scale if self._scaled[role] else 1.0
