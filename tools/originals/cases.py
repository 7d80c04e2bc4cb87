# SPDX-License-Identifier: Apache-2.0
"""Environments, drivers, and the settings of each policy. A new framework needs an environment, a
file drive_X.py, and a line in DRIVERS."""

import dataclasses

from environments import Environment

# Exact versions, so that runs can be repeated. For frameworks that are no longer developed, the
# last.
_ENVIRONMENTS = (
    Environment("chainer", "3.8", ("setuptools<60", "wheel", "numpy==1.23.5", "chainer==7.8.1")),
    Environment("jax", "3.11", ("jax==0.10.2", "jmp==0.0.4", "flax==0.12.8")),
    Environment("mindspore", "3.11", ("mindspore==2.10.0", "numpy==1.26.4")),
    Environment("mxnet", "3.8", ("numpy==1.23.5", "mxnet==1.9.1")),
    Environment("nnabla", "3.10", ("nnabla==1.39.0",)),
    Environment("paddle", "3.11", ("paddlepaddle==3.3.1", "numpy==2.2.6")),
    Environment("tensorflow", "3.11", ("tensorflow-cpu==2.21.0", "tf_keras==2.21.0")),
    Environment("tensorflow1", "3.7", ("tensorflow==1.15.5", "protobuf<3.21")),
    Environment("torch", "3.11", ("numpy==2.4.6", "torch==2.15.0")),
)
# Packages that fastai 1 and 2 import, without spaCy and torchvision, which their scalers do not
# need.
_FASTAI = ("matplotlib", "pandas", "numpy", "pillow", "scipy", "pyyaml", "requests", "packaging")
_ON_TORCH = (
    Environment("colossalai", "3.11", ("psutil", "rich", "packaging"),
                ("colossalai==0.5.0",), "torch"),
    Environment("deepspeed", "3.11", ("deepspeed==0.16.9",), (), "torch",
                first=("setuptools", "wheel"), flags=("--no-build-isolation",),
                settings=(("DS_BUILD_OPS", "0"),)),
    Environment("fairseq", "3.8", ("numpy==1.23.5",), ("fairseq==0.12.2",)),
    Environment("fastai1", "3.11", (*_FASTAI, "fastprogress", "numexpr", "bottleneck",
                                    "beautifulsoup4", "nvidia-ml-py"),
                ("fastai==1.0.61",), "torch"),
    Environment("fastai2", "3.11", (*_FASTAI, "fastdownload", "fastcore", "fastprogress",
                                    "fasttransform", "plum-dispatch", "scikit-learn",
                                    "cloudpickle"),
                ("fastai==2.8.12",), "torch"),
    Environment("keras3", "3.11", ("keras==3.15.1",), (), "torch"),
    Environment("megatron", "3.11", (), ("megatron-core==0.16.1",), "torch"),
)
ENVIRONMENTS = {environment.name: environment for environment in (*_ENVIRONMENTS, *_ON_TORCH)}


@dataclasses.dataclass(frozen=True)
class Case:
    """A policy with settings, by our names; `theirs` has the original's if they differ."""

    policy: str
    settings: dict = dataclasses.field(default_factory=dict)
    theirs: dict = None
    tolerance: float = 0.0  # relative tolerance of the scale; 0 compares exactly
    runs: str = ""  # name of the original in its driver; needed if a policy has several originals

    def text(self):
        """Returns the text for halfscope policies --policy."""
        return ",".join([self.policy, *(f"{key}={value}" for key, value in self.settings.items())])

    def original_name(self):
        return self.runs or self.policy

    def original(self):
        """The options of the original."""
        return self.settings if self.theirs is None else self.theirs


@dataclasses.dataclass(frozen=True)
class Driver:
    """A file drive_X.py, with its environment and its cases."""

    file: str
    environment: str
    cases: tuple


def _torch():
    yield Case("torch")
    yield Case("torch", {"growth_interval": 4})
    yield Case("torch", {"init_scale": 2.0, "growth_interval": 37, "backoff_factor": 0.125})
    yield Case("torch", {"growth_interval": 3, "growth_factor": 1.7, "backoff_factor": 0.3})


def _mxnet():
    yield Case("mxnet")
    yield Case("mxnet", {"scale_window": 4})
    yield Case("mxnet", {"scale_window": 33, "init_scale": 2.0**20})


def _chainer():
    for settings in ({}, {"interval": 4}, {"interval": 50}):
        yield Case("chainer", settings, tolerance=1e-12)


def _jmp():
    yield Case("jmp")
    yield Case("jmp", {"period": 4})
    yield Case("jmp", {"period": 7, "loss_scale": 2.0**100, "factor": 4,
                       "min_loss_scale": 2.0**-20})


def _flax():
    yield Case("flax")
    yield Case("flax", {"growth_interval": 4})
    yield Case("flax", {"growth_interval": 9, "scale": 1.0, "minimum_scale": 0.25})
    yield Case("flax", {"growth_interval": 3, "growth_factor": 1.7, "backoff_factor": 0.3})


def _keras(name):
    yield Case(name)
    yield Case(name, {"dynamic_growth_steps": 4})
    yield Case(name, {"dynamic_growth_steps": 21, "initial_scale": 2.0})


def _nnabla():
    yield Case("nnabla")
    yield Case("nnabla", {"N": 4})
    yield Case("nnabla", {"N": 2, "scale": 1024.0, "scaling_factor": 4.0})


def _tf1():
    yield Case("tf1")
    yield Case("tf1", {"increment_period": 4})
    yield Case("tf1", {"increment_period": 5, "initial_loss_scale": 8.0, "multiplier": 3.0})


def _paddle(runs, graph):
    for settings in (
        {},
        {"incr_every_n_steps": 4},
        {"incr_every_n_steps": 5, "decr_every_n_nan_or_inf": 2, "init_loss_scaling": 2.0},
        {"incr_every_n_steps": 6, "incr_ratio": 1.7, "decr_ratio": 0.3},
    ):
        yield Case("paddle", {**settings, **graph}, settings, runs=runs)


def _mindspore(name, initial):
    yield Case(name)
    yield Case(name, {"scale_window": 4})
    yield Case(name, {"scale_window": 6, initial: 2.0, "scale_factor": 4})
    yield Case(name, {"scale_window": 7, "scale_factor": 3})
    yield Case(name, {"scale_window": 7, initial: 1.5, "scale_factor": 3})


def _tf_contrib():
    # The class has no defaults for the first two.
    start = {"init_loss_scale": 2.0**15, "incr_every_n_steps": 2000}
    yield Case("tf-contrib", start)
    yield Case("tf-contrib", {**start, "incr_every_n_steps": 4})
    yield Case("tf-contrib", {**start, "incr_every_n_steps": 7, "decr_every_n_nan_or_inf": 3})
    yield Case("tf-contrib", {**start, "incr_every_n_steps": 5, "decr_every_n_nan_or_inf": 1,
                              "incr_ratio": 3.0, "decr_ratio": 0.3})


def _fairseq():
    command_line = {"init_scale": 2.0**7, "scale_window": 2**14}
    yield Case("fairseq", theirs=command_line)
    yield Case("fairseq", {"scale_window": 4, "init_scale": 2.0**15})
    yield Case("fairseq", {"scale_window": 4, "init_scale": 2.0**15, "tolerance": 0.3})
    yield Case("fairseq", {"scale_window": 5, "init_scale": 2.0**15, "threshold": 0.25})
    yield Case("fairseq", {"scale_window": 8, "init_scale": 2.0**10, "min_loss_scale": 2.0**-100})


def _megatron():
    # The class has no defaults; these are those of Megatron-LM's command line.
    start = {"initial_scale": 2.0**32, "min_scale": 1.0, "growth_factor": 2.0,
             "backoff_factor": 0.5, "growth_interval": 1000, "hysteresis": 2}
    for settings in (
        {},
        {"growth_interval": 4},
        {"growth_interval": 6, "hysteresis": 1, "min_scale": 0.125},
        {"growth_interval": 5, "hysteresis": 4, "growth_factor": 1.7, "backoff_factor": 0.3},
    ):
        yield Case("megatron", settings, {**start, **settings})


def _colossalai():
    yield Case("colossalai")
    yield Case("colossalai", {"growth_interval": 4})
    yield Case("colossalai", {"growth_interval": 4, "min_scale": 1.0, "max_scale": 2.0**32})
    yield Case("colossalai", {"growth_interval": 5, "hysteresis": 3, "growth_factor": 1.7,
                              "backoff_factor": 0.3})


def _deepspeed():
    yield Case("deepspeed")
    yield Case("deepspeed", {"scale_window": 4, "init_scale": 2.0**16})
    yield Case("deepspeed", {"scale_window": 4, "init_scale": 2.0**16, "delayed_shift": 2})
    yield Case("deepspeed", {"scale_window": 5, "init_scale": 2.0**16, "delayed_shift": 3,
                             "consecutive_hysteresis": True})
    yield Case("deepspeed", {"scale_window": 5, "min_scale": 0.25,
                             "raise_error_at_min_scale": False})


def _deepspeed_fused():
    # Without ZeRO the engine starts at 2^16.
    yield Case("deepspeed-fused", theirs={"init_scale": 2.0**16})
    yield Case("deepspeed-fused", {"scale_window": 4, "init_scale": 2.0**16})
    yield Case("deepspeed-fused", {"scale_window": 7, "init_scale": 2.0**32, "min_scale": 0.25})


def _fastai1():
    yield Case("fastai1")
    yield Case("fastai1", {"max_noskip": 4})
    yield Case("fastai1", {"max_noskip": 6, "loss_scale": 4.0, "max_scale": 2.0**30})


def _fastai2():
    yield Case("fastai2")
    yield Case("fastai2", {"scale_wait": 4})
    yield Case("fastai2", {"scale_wait": 5, "max_loss_scale": 2.0, "div_factor": 4.0})


DRIVERS = (
    Driver("drive_torch.py", "torch", tuple(_torch())),
    Driver("drive_tensorflow.py", "tensorflow", (*_keras("keras2"), *_tf1())),
    Driver("drive_keras3.py", "keras3", tuple(_keras("keras3"))),
    Driver("drive_jmp.py", "jax", tuple(_jmp())),
    Driver("drive_flax.py", "jax", tuple(_flax())),
    Driver("drive_paddle.py", "paddle",
           (*_paddle("paddle", {"graph": "dynamic"}), *_paddle("paddle-operator", {}))),
    Driver("drive_mindspore.py", "mindspore",
           (*_mindspore("mindspore", "init_loss_scale"),
            *_mindspore("mindspore-cell", "loss_scale_value"))),
    Driver("drive_tensorflow1.py", "tensorflow1", tuple(_tf_contrib())),
    Driver("drive_megatron.py", "megatron", tuple(_megatron())),
    Driver("drive_colossalai.py", "colossalai", tuple(_colossalai())),
    Driver("drive_deepspeed.py", "deepspeed", (*_deepspeed(), *_deepspeed_fused())),
    Driver("drive_fastai1.py", "fastai1", tuple(_fastai1())),
    Driver("drive_fastai2.py", "fastai2", tuple(_fastai2())),
    Driver("drive_fairseq.py", "fairseq", tuple(_fairseq())),
    Driver("drive_nnabla.py", "nnabla", tuple(_nnabla())),
    Driver("drive_mxnet.py", "mxnet", tuple(_mxnet())),
    Driver("drive_chainer.py", "chainer", tuple(_chainer())),
)

# Originals that are in no package of the index, or that cannot run without a GPU.
NOT_IN_THE_INDEX = (
    "apex, apex-legacy, apex-hysteresis: NVIDIA's apex is not in the index (its `apex` 0.9.10dev "
    "is another)",
    "os2s-backoff, os2s-logmax: OpenSeq2Seq is not in the index",
    "metaseq: not in the index (its `metaseq` 0.5.6 is another)",
    "als: the code of adaptive loss scaling is not in the index",
    "nvcaffe: NVIDIA's Caffe is not in the index",
    "te-delayed: transformer_engine_torch 2.20.2 has to be built with CUDA; not tried",
    "nnabla-tutorial, static, mxnet-static: no code of a package decides there",
)
