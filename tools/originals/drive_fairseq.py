# SPDX-License-Identifier: Apache-2.0
"""fairseq: its scaler, from the one file that holds it (the package imports torch and Hydra),
called as FP16Optimizer calls it: by the binary32 norm of the gradients."""

import importlib.metadata

import drive
import numpy

scaler = drive.module_of("fairseq", "optim.dynamic_loss_scaler")


class Fairseq:
    WHAT = "optim.dynamic_loss_scaler.DynamicLossScaler"

    def __init__(self, **options):
        self.scaler = scaler.DynamicLossScaler(**options)

    def scale(self):
        return self.scaler.loss_scale

    def step(self, gradients):
        with numpy.errstate(all="ignore"):
            norm = numpy.linalg.norm(gradients(self.scale()).astype(numpy.float32))
        try:
            self.scaler.check_overflow(float(norm))
        except OverflowError:  # the trainer then drops the batch
            return False
        self.scaler.update()
        return True


drive.main({"fairseq": Fairseq}, f"fairseq {importlib.metadata.version('fairseq')}")
