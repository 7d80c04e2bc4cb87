# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle on the CPU. GradScaler disables itself unless the place is a GPU, so the place is
faked; all else is Paddle's own code on CPU kernels. The operator is the one with which a static
graph updates its scale."""

import contextlib
import io
import types

import drive
import numpy
import paddle
from paddle.amp import grad_scaler


def pretended_gpu():
    place = types.SimpleNamespace(is_gpu_place=lambda: True)
    return types.SimpleNamespace(_expected_place=place)


class Counting(paddle.optimizer.SGD):
    """Counts the steps that the scaler did not skip."""

    steps = 0

    def _append_optimize_op(self, block, param_and_grad):
        self.steps += 1


class GradScaler:
    WHAT = "amp.GradScaler"

    def __init__(self, **options):
        tracer, grad_scaler._dygraph_tracer = grad_scaler._dygraph_tracer, pretended_gpu
        self.scaler = grad_scaler.GradScaler(**options)
        grad_scaler._dygraph_tracer = tracer
        self.weight = paddle.create_parameter([3], "float32")
        self.optimizer = Counting(0.0, parameters=[self.weight])

    def scale(self):
        return self.scaler._scale.item()

    def step(self, gradients):
        values = gradients(self.scale()).astype(numpy.float32)
        self.weight.grad = paddle.to_tensor(values)
        before = self.optimizer.steps
        with contextlib.redirect_stdout(io.StringIO()):  # the scaler prints every backoff
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return self.optimizer.steps > before


class Operator:
    WHAT = "operator update_loss_scaling"

    def __init__(self, init_loss_scaling=65536.0, incr_every_n_steps=2000,
                 decr_every_n_nan_or_inf=1, incr_ratio=2.0, decr_ratio=0.5):
        self.current = paddle.to_tensor(numpy.array([init_loss_scaling], numpy.float32))
        self.good = paddle.to_tensor(numpy.array([0], numpy.int32))
        self.bad = paddle.to_tensor(numpy.array([0], numpy.int32))
        self.settings = (incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio, False)

    def scale(self):
        return self.current.item()

    def step(self, gradients):
        values = [paddle.to_tensor(gradients(self.scale()).astype(numpy.float32))]
        _, found = paddle._C_ops.check_finite_and_unscale_(values, self.current)
        paddle._C_ops.update_loss_scaling_(
            values, found, self.current, self.good, self.bad, *self.settings
        )
        return not bool(found)


paddle.device.set_device("cpu")
drive.main({"paddle": GradScaler, "paddle-operator": Operator}, f"paddle {paddle.__version__}")
