# SPDX-License-Identifier: Apache-2.0
"""Records the PyTorch optimizers of a program whose code does not change: docs/run.md."""

import functools
import gc
import inspect
import itertools
import os
import weakref

import torch

from halfscope._folders import log_folder, logs_in, remove_empty_log, require_no_logs
from halfscope._halfscope import BadInput
from halfscope._logs import recommend
from halfscope.torch import found, trainers
from halfscope.torch.arguments import chosen_steps
from halfscope.torch.guard import compiled, lifted
from halfscope.torch.gradients import backward_runs
from halfscope.torch.manifest import as_json, rank_and_world_size
from halfscope.torch.patching import ClassPatch, Patch
from halfscope.torch.recorder import Recorder
from halfscope.torch.scaler import WatchedScaler

_GradScaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
_MOST = 16  # optimizers that are recorded, at most
_UNSEEN = "calls inside a function of torch.compile or a CUDA graph are not seen"


class _Waiting(Patch):
    """An optimizer without a Recorder. Calls first_step(self, original, ...) for its first step."""

    def __init__(self, optimizer, first_step, earlier):
        super().__init__(optimizer, "step", functools.partial(first_step, self))
        self.optimizer = optimizer
        self.earlier = earlier  # True if it existed before start(): perhaps nobody needs it now
        self.number = None  # that of its folder; known when the first model is called
        self.recorder = None  # a weak reference, later


class record:
    """Records the optimizers that step in a `with` block, whose code does not change.

        with halfscope.torch.record("run") as recording:
            main()
        print(recording.answer())

    Or start() and stop() in place of `with`. A Recorder is made for each optimizer when a module
    with its parameters is called for the first time. It finds the GradScaler, and notes the loss on
    which backward() is called. Optimizers with a Recorder of their own are left alone.

    out           folder of the log; of several optimizers, the logs are in optimizer-N in it
    every, sample_every   as for Recorder
    only_one      True to record only the first optimizer, in `out`
    settings      further arguments of Recorder: about, modules, magnitudes_every...

    notes: what was not recorded and why, a line each. Nothing of this ends the training.
    """

    def __init__(self, out, every=10, *, sample_every=None, only_one=False, **settings):
        self.settings = {"every": every, "sample_every": sample_every, **settings}
        chosen_steps(every, "every"), chosen_steps(sample_every, "sample_every")
        inspect.signature(Recorder).bind(None, None, out, **self.settings)  # TypeError
        self.out = os.path.abspath(out)  # the program may change its working directory
        self.notes = []
        self._most = 1 if only_one else _MOST
        self._numbered = 0   # number of optimizers that have a number
        self._waiting = []   # weak references to _Waiting
        self._made = weakref.WeakKeyDictionary()  # {Recorder: (its process, its log)}
        self._scalers = []   # weak references
        self._taken = weakref.WeakSet()       # optimizers with a Recorder
        self._looked_at = weakref.WeakSet()   # modules that hold no parameter of a waiting optimizer
        self._by_scaler = weakref.WeakSet()   # optimizers that a GradScaler stepped
        self._patches = []
        self._started = False
        self._owner = None  # the process that may use an `out` that existed before
        self._call_patch = None
        self._optimizers = 0  # number of optimizers that were found

    def start(self, joins=False):
        """Begins to record. joins: `out` may hold logs that other processes of the program wrote.
        Raises halfscope.BadInput if it holds a log otherwise."""
        if self._started:
            raise RuntimeError("this record was started already")
        if not joins:
            require_no_logs(self.out)
            self._owner = os.getpid() if os.path.isdir(self.out) else None
        self._scalers = [weakref.ref(scaler) for scaler in found.alive(_GradScaler)]
        self._taken.update(recorder.optimizer for recorder in found.alive(Recorder)
                           if getattr(recorder, "writer", None) is not None)
        self._started = True
        self.patch(Recorder, "start", self._recorder_starts)
        self.patch(torch.optim.Optimizer, "__init__", self._optimizer_is_made)
        self.patch(torch.autograd, "backward", self._backward)
        self.patch(_GradScaler, "__init__", self._scaler_is_made)
        self.patch(_GradScaler, "scale", self._scaler_scales)
        for name in ("unscale_", "step"):
            self.patch(_GradScaler, name, functools.partial(self._scaler_acts, name))
        self.patch(torch.cuda.CUDAGraph, "replay", self._graph_is_replayed)
        self.patch(torch.jit._recursive, "create_script_module", self._module_is_scripted)
        for optimizer in found.alive(torch.optim.Optimizer):
            if hasattr(optimizer, "param_groups"):
                self._learn(optimizer, earlier=True)
        trainers.watch(self)
        return self

    def stop(self):
        """Ends all recorders, and removes everything that start() put in place."""
        for recorder, (process, log) in list(self._made.items()):
            if not recorder.step:
                self.tell(f"{_called(recorder.optimizer)}: took no step, so it is not recorded")
            elif recorder.loss_scale.scaled and recorder.optimizer not in self._by_scaler:
                self.tell(f"{_called(recorder.optimizer)}: stepped without the GradScaler that the program "
                          "made, so the loss scale in its log is not that of its gradients; make a Recorder")
            self.guarded(recorder.stop)
            if not recorder.step and process == os.getpid():
                self.guarded(remove_empty_log, log)
        for waiting in self._still_waiting():
            waiting.remove()
            if waiting.optimizer.state and not waiting.earlier:
                self.tell(f"{_called(waiting.optimizer)}: no call of its model was seen, so it is not "
                          f"recorded; {_UNSEEN}")
        self._started = False
        while self._patches:
            self._patches.pop().remove()
        self._watch_calls(False)
        self._waiting.clear()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def recorders(self):
        """The Recorders whose optimizers exist, in the order of the first calls of their models."""
        return list(self._made)

    @property
    def folders(self):
        """Folders of the logs, also of those that other processes of the program wrote."""
        return logs_in(self.out)

    def answer(self):
        """Returns the text of `halfscope recommend` for each log, or a line that says why there is
        none."""
        folders = self.folders
        if len(folders) > 1:
            return "\n\n".join(f"{os.path.relpath(folder)}:\n{_advice(folder)}" for folder in folders)
        reasons = [*self.notes, f"no PyTorch optimizer stepped after a call of its model; {_UNSEEN}"
                   if self._optimizers else "no PyTorch optimizer was made"]
        return _advice(folders[0]) if folders else f"nothing was recorded: {reasons[0]}"

    # The methods below are for the parts of this module and for trainers.

    def tell(self, note):
        if note not in self.notes:
            self.notes.append(note)

    def patch(self, owner, name, around):
        """Makes a ClassPatch until stop(). Does nothing after stop()."""
        if self._started:
            self._patches.append(ClassPatch(owner, name, around))

    def guarded(self, function, *args, **kwargs):
        """Calls a function. An exception becomes a note, and the result is then None."""
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.tell(f"not recorded: {type(error).__name__}: {' '.join(str(error).split())}")
            return None

    def free_folder(self, number=0, alone=True):
        """Makes and returns a folder for the log of this rank, which no other process gets: `out` for
        the first optimizer if it is alone, else optimizer-N in it, from `number` on."""
        first = [self.out] if alone and number == 0 else []
        several = (os.path.join(self.out, f"optimizer-{n}")
                   for n in itertools.count(number + len(first)))
        for folder in itertools.chain(first, several):
            log = log_folder(folder, *rank_and_world_size())
            try:
                os.makedirs(log)
                return folder
            except FileExistsError:
                if folder == self.out and self._owner == os.getpid() and not logs_in(log):
                    return folder

    def _still_waiting(self):
        waiting = [one for reference in self._waiting if (one := reference()) is not None]
        return [one for one in waiting if one.optimizer not in self._taken]

    def _watch_calls(self, on):
        """Watches the calls of modules, or ends that. Once each optimizer has a Recorder, no call of a
        module costs anything."""
        if on and self._call_patch is None:
            self._call_patch = ClassPatch(torch.nn.Module, "__call__", self._module_is_called)
        elif not on and self._call_patch is not None:
            self._call_patch.remove()
            self._call_patch = None

    def _learn(self, optimizer, earlier=False):
        if any(one.optimizer is optimizer for one in self._still_waiting()):
            return  # it called Optimizer.__init__ twice
        self._optimizers += 1
        if self._numbered >= self._most:
            return self._tell_most()
        waiting = _Waiting(optimizer, self._first_step, earlier)
        self._waiting.append(weakref.ref(waiting))
        self._looked_at.clear()
        self._watch_calls(True)

    def _recorder_starts(self, original, recorder):
        started = original(recorder)
        self._taken.add(recorder.optimizer)
        return started

    def _optimizer_is_made(self, original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        self.guarded(self._learn, optimizer)

    def _module_is_called(self, original, module, *args, **kwargs):
        if not compiled() and torch.is_grad_enabled():
            self.guarded(self._look_at, module)
        return original(module, *args, **kwargs)

    def _look_at(self, module):
        """Makes the Recorders of the optimizers that step parameters of the module. The call itself
        follows, so the first step is recorded in full."""
        if module in self._looked_at:
            return
        if any(map(torch.nn.parameter.is_lazy, module.parameters())):
            return  # they have no values before this call
        self._looked_at.add(module)
        inside = found.parameters_in(module)
        for waiting in self._still_waiting():
            if not inside.isdisjoint(found.parameters_of(waiting.optimizer)):
                self.guarded(self._record, waiting, module)
        if not self._still_waiting():
            self._watch_calls(False)

    def _first_step(self, waiting, original, *args, **kwargs):
        """Called in place of the first step of an optimizer whose model was not called before. A
        closure may call it; without one, the log begins with the next step. Later, called for a
        step() that the program kept from before."""
        if compiled():
            return original(*args, **kwargs)
        if waiting.recorder is not None:
            recorder, waiting.active = waiting.recorder(), False
            outside = recorder is not None and recorder.writer and not recorder.attempt
            try:
                return (waiting.optimizer.step if outside else original)(*args, **kwargs)
            finally:
                waiting.active = True
        closure = args[0] if args else kwargs.get("closure")
        if waiting.optimizer not in self._taken and self.guarded(self._record, waiting, None):
            if closure is not None:
                return waiting.optimizer.step(*args, **kwargs)  # the Recorder's
            self.tell(f"{_called(waiting.optimizer)}: its first step is not in the log, since no call of its "
                      "model was seen before")
        else:
            waiting.remove()
        return original(*args, **kwargs)

    def _record(self, waiting, called):
        """Makes and starts the Recorder of an optimizer. Returns True if it records."""
        waiting.remove()
        if not self._started:
            return False
        optimizer = waiting.optimizer
        alone = self._number(waiting)
        self._waiting = [one for one in self._waiting if one() is not waiting]
        if waiting.number >= self._most:
            return self._tell_most()
        model = found.model_of(optimizer, called)
        if model is None:
            self.tell(f"{_called(optimizer)}: no module has them, so it is not recorded")
            return False
        scaler = None if self.settings.get("loss_scale") else self._scaler_of()
        folder = self.free_folder(waiting.number, alone)
        recorder = Recorder(model, found.wrapper_of(optimizer), folder, **{
            "scaler": scaler, "on_error": lambda text: self.tell(f"{_called(optimizer)}: {text}"),
            **self.settings})
        recorder.start()
        self._made[recorder] = os.getpid(), log_folder(folder, *rank_and_world_size())
        waiting.recorder, waiting.active = weakref.ref(recorder), True
        return recorder.writer is not None

    def _tell_most(self):
        self.tell(f"optimizer {self._most + 1} and later ones are not recorded")

    def _number(self, waiting):
        """Numbers this optimizer and those that wait beside it. Returns True if it is alone so far."""
        gc.collect()  # optimizers that were replaced; a Recorder and its optimizer refer to each other
        beside = [one for one in self._still_waiting() if one is waiting or not one.earlier]
        for one in beside:
            if one.number is None:
                one.number = self._numbered
                self._numbered += 1
        return len(beside) == 1 and not self._made or self._most == 1

    def _scaler_of(self):
        """Returns an enabled GradScaler, if possible one that no Recorder has; None if there is none.
        _bind() corrects a wrong one."""
        enabled = [scaler for reference in self._scalers
                   if (scaler := reference()) is not None and scaler.is_enabled()]
        bound = {id(recorder.loss_scale.scaler) for recorder in self.recorders}
        free = [scaler for scaler in enabled if id(scaler) not in bound]
        return next(iter(free or enabled), None)

    def _scaler_is_made(self, original, scaler, *args, **kwargs):
        original(scaler, *args, **kwargs)
        self._scalers.append(weakref.ref(scaler))

    def _scaler_scales(self, original, scaler, outputs):
        scaled = original(scaler, outputs)
        if self._optimizers > 1 and scaled is not outputs and isinstance(scaled, torch.Tensor):
            scaled.halfscope_loss = outputs.detach()  # for _backward()
        return scaled

    def _scaler_acts(self, name, original, scaler, optimizer, *args, **kwargs):
        """Called in place of a scaler's step() and unscale_()."""
        if optimizer not in self._by_scaler and scaler.is_enabled():
            for recorder in self.recorders:
                if recorder.optimizer is optimizer:
                    self._by_scaler.add(optimizer)
                    if self.guarded(self._bind, recorder, scaler):
                        return getattr(scaler, name)(optimizer, *args, **kwargs)
        return original(scaler, optimizer, *args, **kwargs)

    def _bind(self, recorder, scaler):
        """Gives a Recorder the scaler that steps its optimizer. Returns True if it had another."""
        if recorder.loss_scale.scaler is scaler:
            return False
        if not isinstance(recorder.loss_scale, WatchedScaler):
            self.tell(f"{_called(recorder.optimizer)}: the loss scale is not in its log, since the program "
                      "made the GradScaler after the first call of the model")
            return False
        recorder.loss_scale.watch(scaler)
        recorder.writer.replace_about({"loss_scaling": as_json(recorder.loss_scale.about())})
        return True

    def _graph_is_replayed(self, original, graph):
        self.tell("a CUDA graph was replayed, and what it computes is not seen")
        return original(graph)

    def _module_is_scripted(self, original, module, *args, **kwargs):
        """Called in place of the part of torch.jit.script that would try to compile the hooks."""
        with lifted(module):
            return original(module, *args, **kwargs)

    def _backward(self, original, *args, **kwargs):
        """Notes the loss in the logs of the optimizers whose parameters this pass reaches."""
        if compiled() or backward_runs():  # a checkpoint computes a part of the outer pass
            return original(*args, **kwargs)
        before = {id(recorder): recorder.modules.passes for recorder in self.recorders}
        for recorder in self.recorders:
            if recorder.writer:
                self.guarded(recorder.modules.hook_parameters)  # some were frozen at the first call
        original(*args, **kwargs)
        loss = args[0] if args else kwargs.get("tensors")
        if isinstance(loss, (list, tuple)) and len(loss) == 1:
            loss = loss[0]
        for recorder in self.recorders if isinstance(loss, torch.Tensor) and loss.numel() == 1 else ():
            noted = getattr(loss, "halfscope_loss", None) if recorder.loss_scale.scaled else loss
            if recorder.modules.passes != before.get(id(recorder), 0) and noted is not None:
                recorder.loss(noted)


def _called(optimizer):
    number = len(found.parameters_of(optimizer))
    return f"{type(optimizer).__name__} of {number} parameter{'s' if number > 1 else ''}"


def _advice(folder):
    try:
        return str(recommend(folder))
    except BadInput as error:
        return f"no answer: {error}"
