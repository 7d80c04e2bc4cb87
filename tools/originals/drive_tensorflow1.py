# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1, for its contrib, which TensorFlow 2 lacks: a graph and a session for each
scaler."""

import os
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
warnings.filterwarnings("ignore")

import drive
import numpy
import tensorflow as tf
from tensorflow.contrib.mixed_precision import (
    ExponentialUpdateLossScaleManager,
    LossScaleOptimizer,
)

tf.logging.set_verbosity(tf.logging.ERROR)


class Counting(tf.train.GradientDescentOptimizer):
    """Counts the steps that the scaler did not skip."""

    def __init__(self):
        super().__init__(0.0)
        self.steps = tf.Variable(0, trainable=False)

    def apply_gradients(self, *arguments, **options):
        with tf.control_dependencies([super().apply_gradients(*arguments, **options)]):
            return tf.assign_add(self.steps, 1).op


class Contrib:
    WHAT = "contrib.mixed_precision.ExponentialUpdateLossScaleManager"

    def __init__(self, init_loss_scale=2.0**15, incr_every_n_steps=2000, **options):
        self.graph = tf.Graph()
        with self.graph.as_default():
            inner = Counting()
            self.manager = ExponentialUpdateLossScaleManager(
                init_loss_scale, incr_every_n_steps, **options
            )
            self.given = tf.placeholder(tf.float32, (3,))
            weight = tf.Variable(numpy.zeros(3, numpy.float32))
            optimizer = LossScaleOptimizer(inner, self.manager)
            self.advance = optimizer.apply_gradients([(self.given, weight)])
            self.steps = inner.steps
            self.session = tf.Session()
            self.session.run(tf.global_variables_initializer())

    def scale(self):
        return self.session.run(self.manager.get_loss_scale())

    def step(self, gradients):
        gradient = gradients(float(self.scale())).astype(numpy.float32)
        before = self.session.run(self.steps)
        self.session.run(self.advance, {self.given: gradient})
        return self.session.run(self.steps) > before


drive.main({"tf-contrib": Contrib}, f"tensorflow {tf.__version__}")
