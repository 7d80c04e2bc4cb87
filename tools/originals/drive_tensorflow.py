# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 2 on the CPU: Keras 2 (tf_keras), and TensorFlow's own, older loss scale."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import drive
import numpy
import tensorflow as tf
import tf_keras


# Without this, TensorFlow rewrites the division, and a backoff by 3 rounds differently.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


class Counting(tf_keras.optimizers.SGD):
    """Counts the steps that the scaler did not skip."""

    def __init__(self):
        super().__init__(0.0)
        self.steps = tf.Variable(0)

    def apply_gradients(self, *arguments, **options):
        self.steps.assign_add(1)
        return super().apply_gradients(*arguments, **options)


class Keras2:
    WHAT = f"tf_keras {tf_keras.__version__} mixed_precision.LossScaleOptimizer"

    def __init__(self, **options):
        weight = tf.Variable(numpy.zeros(3, numpy.float32))
        self.inner = Counting()
        self.inner.build([weight])
        self.optimizer = tf_keras.mixed_precision.LossScaleOptimizer(self.inner, **options)

        @tf.function
        def advance(gradient):
            gradients = self.optimizer.get_unscaled_gradients([gradient])
            self.optimizer.apply_gradients(zip(gradients, [weight]))

        self.advance = advance

    def scale(self):
        return self.optimizer.loss_scale

    def step(self, gradients):
        gradient = gradients(float(self.scale())).astype(numpy.float32)  # the variable is float32
        before = int(self.inner.steps)
        self.advance(tf.constant(gradient))
        return int(self.inner.steps) > before


class Tf1:
    WHAT = "compat.v1.mixed_precision.DynamicLossScale"

    def __init__(self, **options):
        self.scaler = tf.compat.v1.mixed_precision.DynamicLossScale(**options)

        @tf.function
        def advance(gradient):
            _, apply = self.scaler.update([gradient / self.scaler()])
            return apply

        self.advance = advance

    def scale(self):
        return self.scaler()

    def step(self, gradients):
        gradient = gradients(float(self.scale())).astype(numpy.float32)
        return bool(self.advance(tf.constant(gradient)))


drive.main({"keras2": Keras2, "tf1": Tf1}, f"tensorflow {tf.__version__}")
