# SPDX-License-Identifier: Apache-2.0
"""Records a training run of Keras 3 on JAX, PyTorch or TensorFlow: docs/jax.md."""

import functools

from halfscope._arguments import interval
from halfscope._arrivals import Arrivals
from halfscope._parts import part
from halfscope._run_log import RunLog
from halfscope.jax import send

keras = part("keras", "halfscope.keras", "'halfscope[keras]'")


class RecorderCallback(keras.callbacks.Callback):
    """Writes the log of what fit() trains into the folder `out`. every: steps between histograms of
    weights and gradients. sample_every: steps between steps whose full tensors are saved; None:
    never. about: keys for run.json.

    Gradients are those that the optimizer's apply() receives: before clipping, with the loss scale
    of a LossScaleOptimizer or of loss_scale_factor. A folder that holds a log is an error when
    training begins. An error while recording gives one warning.
    """

    def __init__(self, out, every=10, sample_every=None, about=None):
        super().__init__()
        self._out, self._about = out, about
        self._every, self._sample_every = interval("every", every), interval("sample_every", sample_every)
        self.log = None  # the RunLog, once the training has begun
        self._undo = []  # functions that undo what on_train_begin() did

    def on_train_begin(self, logs=None):
        self.on_train_end()
        model, optimizer, backend = self.model, self.model.optimizer, keras.backend.backend()
        self._count = getattr(optimizer, "inner_optimizer", optimizer)._iterations  # calls of apply()
        self.log = RunLog(self._out, scaled=_scale(optimizer) is not None, first_step=int(self._count),
                          about={"framework": f"keras on {backend}", **(self._about or {})})
        settle = part("jax", "Keras", "jax").effects_barrier if backend == "jax" else lambda: None
        self._arrivals = Arrivals(
            self.log, "halfscope.keras.RecorderCallback", self._every, self._sample_every,
            "a model that returns to an older state needs a new log", settle, backend == "jax")
        self._replace(optimizer, "stateless_apply" if backend == "jax" else "apply", self._apply)
        self._replace(optimizer, "scale_loss", self._scale_loss)
        if backend == "tensorflow":
            self._undo.append(lambda was=model.jit_compile: setattr(model, "jit_compile", was))
            model.jit_compile = False  # XLA cannot call back
        self._undo.append(lambda: setattr(model, "train_function", None))  # to be compiled again
        type(model).make_train_function(model, force=True)
        # An exception ends fit() without a callback: the next call for the model ends the recording.
        self._replace(model, "make_train_function", lambda make, *given, **named: (
            self.on_train_end(), make(*given, **named)))

    def on_train_end(self, logs=None):
        while self._undo:
            self._undo.pop()()
        if self.log is not None:
            self.log.close()

    def _replace(self, owner, name, function):
        """Replaces a method of an object by a function of the method and its arguments."""
        own, method = vars(owner), getattr(owner, name)
        own[name] = lambda *args, **named: function(method, *args, **named)
        self._undo.append(lambda: own.pop(name, None))

    def _scale_loss(self, scale_loss, loss):
        if keras.backend.backend() == "jax":  # the loss is traced by another transformation
            part("jax", "Keras", "jax").debug.callback(functools.partial(
                self._arrivals.guarded, self._arrivals.add_loss), self._count.value, loss)
        else:
            self._loss = loss
        return scale_loss(loss)

    def _apply(self, apply, *args, **named):
        result = []  # that of apply(), once it has run
        step = getattr(self, f"_on_{keras.backend.backend()}")(result, *args, **named)
        self._arrivals.guarded(next, step, None)
        result.append(apply(*args, **named))
        self._arrivals.guarded(next, step, None)
        return result[0]

    # Each backend's function yields where the update of the weights follows.

    def _on_jax(self, result, optimizer_variables, grads, weights):
        yield
        with keras.StatelessScope(list(zip(self.model.optimizer.variables, optimizer_variables))):
            count, numbers = self._count.value, self._numbers()
        trees = self._trees(self.model.trainable_variables, grads, weights, result[0][0])
        send(self._arrivals, count, numbers, trees)

    def _on_torch(self, _, grads, trainable_variables=None):
        count, largest = int(self._count.value), _largest(grads)
        numbers = {name: float(number) for name, number in self._numbers().items()}
        variables = list(trainable_variables or self.model.trainable_variables)
        weights = [variable.value.detach() for variable in variables]
        trees = self._trees(variables, grads, weights) if self._arrivals.chosen(count) else {}
        if not self._arrivals.samples(count):
            return self._arrivals.receive(count, largest, numbers, trees)
        trees = {role: {path: tensor.clone() for path, tensor in tree.items()}
                 for role, tree in trees.items()}
        yield
        self._arrivals.receive(count, largest, numbers, {**trees, **self._trees(variables, after=weights)})

    def _on_tensorflow(self, _, grads, trainable_variables=None):
        import tensorflow as tf

        variables = list(trainable_variables or self.model.trainable_variables)
        weights = [variable.value for variable in variables]
        count, numbers, before = tf.nest.map_structure(  # read before the update
            tf.identity, (self._count.value, self._numbers(), weights))
        grads = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        yield
        trees = self._trees(variables, grads, before, tf.nest.map_structure(tf.identity, weights))

        def deliver(trees):
            step = (count, _largest(grads), numbers, trees)
            return lambda: tf.py_function(lambda *values: self._arrivals.guarded(
                lambda: self._arrivals.receive(*tf.nest.pack_sequence_as(
                    step, [value.numpy() for value in values]))) or 0, tf.nest.flatten(step), tf.int32)

        tf.cond(tf.convert_to_tensor(self._arrivals.chosen(count)), deliver(trees), deliver({}))

    def _numbers(self):
        """Returns the learning rate and the loss scale, and the loss unless it arrives on its own."""
        optimizer = self.model.optimizer
        numbers = {"learning_rate": optimizer.learning_rate, "loss_scale": _scale(optimizer),
                   "loss": self.__dict__.pop("_loss", None)}
        return {name: keras.ops.convert_to_tensor(number) for name, number in numbers.items()
                if number is not None}

    def _trees(self, variables, grads=(), weights=(), after=()):
        """Returns {role: {path of the variable: tensor}}; `after` only if there are samples."""
        paths = [getattr(variable, "path", variable.name).replace("/", ".") for variable in variables]
        roles = {"weight_grad": grads, "weight": weights, "weight_after": after if self._sample_every else ()}
        return {role: {path: tensor for path, tensor in zip(paths, tensors) if tensor is not None}
                for role, tensors in roles.items() if tensors}


def _scale(optimizer):
    """Returns the loss scale that gradients carry in apply(), None without one."""
    if hasattr(optimizer, "inner_optimizer"):  # a LossScaleOptimizer
        return optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale
    return optimizer.loss_scale_factor


def _largest(grads):
    """Returns the largest magnitude; NaN if a value is NaN."""
    largest = [keras.ops.max(keras.ops.abs(grad)) for grad in grads if grad is not None]
    wide = "float64" if any("float64" in str(value.dtype) for value in largest) else "float32"
    return keras.ops.max(keras.ops.stack([keras.ops.cast(value, wide) for value in largest]))
