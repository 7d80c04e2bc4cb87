# SPDX-License-Identifier: Apache-2.0
"""Writes the event files in this folder: what TensorFlow, too large for the tests, makes of
tests/python/tensorboard_tensors.py. Run by hand, with TensorFlow 2.21.0 and tensorboard 2.21.0:

    python tests/data/tensorboard/write_with_tensorflow.py
"""
import pathlib
import sys

import tensorflow as tf

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
import tensorboard_tensors as tensors  # noqa: E402


def write_tf2(file):
    """Tensors of shape (30, 3), as tf.summary.histogram and Keras' callback write them."""
    everything = {**tensors.finite_tensors(), **tensors.nonfinite_tensors()}
    folder = file.parent / "tmp-tf2"
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default():
        for name, values in everything.items():
            tf.summary.histogram("gradients/" + name, values, step=0)
        for step, values in enumerate((tensors.random(7), tensors.random(8))):
            tf.summary.histogram("gradients/twice", values, step=step)  # the second: no metadata
            tf.summary.scalar("loss", 0.5 - step / 4, step=step)
            tf.summary.scalar("my/scale", tf.constant(1024.0, tf.float64), step=step)
    writer.close()
    move(folder, file)


def write_legacy(file):
    """HistogramProto, as tf.compat.v1.summary.histogram writes it; it refuses NaN and infinity."""
    folder = file.parent / "tmp-legacy"
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(folder))
        with tf.compat.v1.Session() as session:
            for name, values in tensors.finite_tensors().items():
                summary = tf.compat.v1.summary.histogram("gradients/" + name, tf.constant(values))
                writer.add_summary(session.run(summary), global_step=0)
        writer.close()
    move(folder, file)


def move(folder, file):
    (written,) = folder.iterdir()
    written.replace(file)
    folder.rmdir()


if __name__ == "__main__":
    write_tf2(HERE / "tensorflow-2.tfevents")
    write_legacy(HERE / "tensorflow-1.tfevents")
