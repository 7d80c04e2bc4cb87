# SPDX-License-Identifier: Apache-2.0
"""Quantises the same tensors with released libraries and with `halfscope quantise`, and counts codes
and scales that differ: drive_formats.py PROGRAM. Exit code 1 if one that should be equal is not."""

import importlib
import json
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import types

import numpy as np
import torch

ELEMENTS = {"e4m3": "mxfp8-e4m3", "e5m2": "mxfp8-e5m2", "e2m3": "mxfp6-e2m3", "e3m2": "mxfp6-e3m2",
            "e2m1": "mxfp4"}


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    dtypes = {"U8": np.uint8, "F32": np.float32}
    out = {}
    for name, tensor in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            out[name] = np.frombuffer(data[begin:end], dtypes[tensor["dtype"]]).reshape(tensor["shape"])
    return out


class Ours:
    """Runs the program on NumPy arrays of binary32."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, recipe, x):
        np.save(self.folder / "x.npy", x)
        out = self.folder / "q.safetensors"
        subprocess.run([self.program, "quantise", str(self.folder / "x.npy"), "--recipe", recipe,
                        "--out", str(out)], check=True)
        return read_safetensors(out)


class Table:
    """Counts differences, and prints a line for each comparison."""

    def __init__(self):
        self.elements = self.wrong = 0

    def add(self, what, ours, codes, scales, may_differ=False):
        wrong = int((ours["codes"] != codes).sum())
        wrong_scales = int((ours["scales"].view(scales.dtype) != scales).sum()) if scales is not None else 0
        self.elements += codes.size
        if not may_differ:
            self.wrong += wrong + wrong_scales
        note = "  (a known deviation)" if may_differ and wrong + wrong_scales else ""
        size = 0 if scales is None else scales.size
        print(f"{what:58} {wrong_scales:6} of {size:8} scales, {wrong:8} of {codes.size:10} codes{note}",
              flush=True)


def unpacked(bytes_):
    """The codes of bytes with two each, the first in the low half."""
    packed = np.asarray(bytes_.view(torch.uint8)).reshape(bytes_.shape[0], -1)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)


def samples(kind, shape, generator, dtype):
    x = torch.randn(shape, generator=generator)
    if kind == "rows":
        x = x * torch.pow(2.0, torch.randint(-18, 2, (shape[0], 1), generator=generator).float())
    if kind == "bits":  # every exponent, no infinities or NaN
        bits = torch.randint(0, 0x7F800000, shape, generator=generator, dtype=torch.int32)
        sign = torch.where(torch.rand(shape, generator=generator) < 0.5, 1.0, -1.0)
        x = bits.view(torch.float32) * sign
    return x.to(dtype)


def plus_zeros(codes, x):
    """Codes in which the zeros of `x` are positive: Transformer Engine's reference drops the sign."""
    return np.where(x == 0, 0, codes)


def transformer_engine():
    """Imports the wheel's references, which need stand-ins for the classes of its extension."""
    root = sysconfig.get_paths()["purelib"]
    for name in ("transformer_engine", "transformer_engine.pytorch",
                 "transformer_engine.pytorch.custom_recipes"):
        module = types.ModuleType(name)
        module.__path__ = [str(pathlib.Path(root, *name.split(".")))]
        sys.modules[name] = module

    def stand_in(name, *classes):
        module = types.ModuleType(name)
        for made in classes:
            setattr(module, made.__name__, made)
        sys.modules[name] = module

    class Quantizer:
        def __init__(self, rowwise=True, columnwise=True):
            self.rowwise_usage, self.columnwise_usage = rowwise, columnwise

    stand_in("transformer_engine.pytorch.quantized_tensor", Quantizer,
             type("QuantizedTensorStorage", (), {}))
    stand_in("transformer_engine.pytorch.custom_recipes.gemm", type("GEMMType", (), {"FPROP": 0}),
             type("MMParams", (), {}))
    recipes = "transformer_engine.pytorch.custom_recipes."
    return (importlib.import_module(recipes + "reference_nvfp4"),
            importlib.import_module(recipes + "reference_current_scaling"))


NVFP4 = {"nvfp4": {}, "nvfp4-2d": {"tile": 16}, "nvfp4-row-scaled": {"row_scaled_nvfp4": True},
         "nvfp4-hadamard": {"hadamard": True},
         "nvfp4-four-over-six": {"nvfp4_use_4over6": True, "nvfp4_e4m3_max": 256},
         "nvfp4-four-over-six-2d": {"nvfp4_use_4over6": True, "nvfp4_e4m3_max": 256, "tile": 16},
         "nvfp4-four-over-six-square": {"nvfp4_use_4over6": True, "nvfp4_e4m3_max": 256,
                                        "nvfp4_4over6_err_mode": "MSE"},
         "nvfp4-four-over-six-448": {"nvfp4_use_4over6": True, "nvfp4_e4m3_max": 448}}


def compare_nvfp4(ours, table, generator):
    reference = transformer_engine()[0].NVFP4QuantizerRef
    for kind in ("normal", "rows"):
        x = samples(kind, (1024, 2048), generator, torch.bfloat16)
        for name, options in NVFP4.items():
            options = dict(options)
            tile, hadamard = options.pop("tile", 1), options.pop("hadamard", False)
            own = reference(dtype=None, with_rht=True)._apply_rht(x.float()) if hadamard else x
            largest = own.abs().float()
            largest = largest.amax(dim=1) if "row_scaled_nvfp4" in options else largest.max().view(1)
            codes, scales = reference._quantize_blockwise_reference(
                own, largest, 16, tile, pow_2_scales=False, eps=0.0, **options)
            made = ours(name, x.float().numpy())
            values = own.float().numpy()
            made["codes"] = plus_zeros(made["codes"], values)
            table.add(f"Transformer Engine 2.20.2, {name}, {kind}", made,
                      plus_zeros(unpacked(codes), values),
                      np.asarray(scales.view(torch.uint8))[::tile])


def compare_dialects(ours, table, generator):
    from compressed_tensors.quantization.lifecycle.forward import quantize
    from compressed_tensors.quantization.quant_scheme import PRESET_SCHEMES
    from compressed_tensors.quantization.utils.helpers import calculate_qparams, generate_gparam
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

    args = PRESET_SCHEMES["NVFP4"]["weights"]
    for kind in ("normal", "rows"):
        x = samples(kind, (1024, 2048), generator, torch.bfloat16).float()
        scales, codes = nvfp4_quantize(x, 16, per_tensor_amax_to_scale(x.abs().max()))
        scales = np.asarray(scales.view(torch.uint8)).reshape(1024, 128)
        for recipe in ("nvfp4-torchao", "nvfp4"):
            table.add(f"torchao 0.18.0 NVFP4 as {recipe}, {kind}", ours(recipe, x.numpy()),
                      unpacked(codes), scales, may_differ=recipe == "nvfp4")
        blocks = x.view(1024, 128, 16)
        of_tensor = generate_gparam(x.min(), x.max())
        scales, zero = calculate_qparams(blocks.amin(-1), blocks.amax(-1), args, global_scale=of_tensor)
        values = quantize(x=x, scale=scales, zero_point=zero, args=args, global_scale=of_tensor).numpy()
        sizes = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
        codes = np.searchsorted(sizes, np.abs(values)).astype(np.uint8) | np.signbit(values) << 3
        scales = np.asarray(scales.to(torch.float8_e4m3fn).view(torch.uint8))
        for recipe in ("nvfp4-compressed-tensors", "nvfp4"):
            table.add(f"compressed-tensors 0.20.0 NVFP4 as {recipe}, {kind}",
                      ours(recipe, x.numpy()), codes.astype(np.uint8), scales,
                      may_differ=recipe == "nvfp4")


def compare_mx(ours, table, generator):
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx

    dtypes = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m3": DTYPE_FP6_E2M3,
              "e3m2": DTYPE_FP6_E3M2, "e2m1": torch.float4_e2m1fn_x2}
    for mode in ScaleCalculationMode:
        rule = mode.name.lower()
        for element, dtype in dtypes.items():
            for kind in ("rows", "bits"):
                x = samples(kind, (2048, 1024), generator, torch.float32)
                scales, codes = to_mx(x, dtype, 32, mode)
                codes = unpacked(codes) if element == "e2m1" else np.asarray(codes.view(torch.uint8))
                scales = np.asarray(scales.view(torch.uint8))
                for dialect in ("", "-torchao") if element == "e4m3" else ("",):
                    recipe = f"{ELEMENTS[element]}-{rule}{dialect}"
                    # 0.18.0 gives a block that rounds up to 2^128 a scale, and loses B = 0.
                    table.add(f"torchao 0.18.0 as {recipe}, {kind}", ours(recipe, x.numpy()), codes,
                              scales, may_differ=not dialect and kind == "bits")


def compare_current_scaling(ours, table, generator):
    reference = transformer_engine()[1]._scale_from_amax_tensor
    for dtype, recipe in ((torch.float8_e4m3fn, "fp8-current"),
                          (torch.float8_e5m2, "fp8-current-e5m2")):
        for exponent in range(-120, 121, 30):
            x = samples("normal", (512, 1024), generator, torch.float32) * 2.0 ** exponent
            largest = torch.finfo(dtype).max
            scale, inverse, _ = reference(torch.float32, x.abs().max(), dtype, eps=0.0,
                                          pow_2_scales=False)
            codes = torch.clamp(x * scale, -largest, largest).to(dtype)
            table.add(f"Transformer Engine 2.20.2, {recipe}, 2^{exponent}", ours(recipe, x.numpy()),
                      np.asarray(codes.view(torch.uint8)), inverse.view(1, 1).numpy())


def compare_elements(ours, table):
    """HiFloat8, and elements at a scale of 1: blocks of MX whose largest magnitude sets B = 127."""
    import en_dtypes
    import gfloat
    import gfloat.formats
    import ml_dtypes

    known = {"e2m1": (ml_dtypes.float4_e2m1fn, "ocp_e2m1", 6),
             "e2m3": (ml_dtypes.float6_e2m3fn, "ocp_e2m3", 7.5),
             "e3m2": (ml_dtypes.float6_e3m2fn, "ocp_e3m2", 28),
             "e4m3": (ml_dtypes.float8_e4m3fn, "ocp_e4m3", 448),
             "e5m2": (ml_dtypes.float8_e5m2, "ocp_e5m2", 57344)}
    for element, (dtype, name, largest) in known.items():
        first = np.float32(largest * 2.0 ** -30).view(np.uint32)
        last = np.float32(largest).view(np.uint32)
        x = np.linspace(first, last, 31 * 2 ** 17, dtype=np.uint64).astype(np.uint32).view(np.float32)
        x = np.concatenate([np.full((x.size // 31, 1), largest, np.float32), x.reshape(-1, 31)], axis=1)
        x[:, 1::2] *= -1
        made = ours(f"{ELEMENTS[element]}-floor", x)
        table.add(f"ml_dtypes 0.6.0, {element}", made, x.astype(dtype).view(np.uint8), None)
        info = getattr(gfloat.formats, f"format_info_{name}")
        values = gfloat.round_ndarray(info, x.astype(np.float64), gfloat.RoundMode.TiesToEven, sat=True)
        codes = gfloat.encode_ndarray(info, values)
        table.add(f"gfloat 0.5.2, {element}", made, codes.astype(np.uint8), None)
    for start in range(0, 2 ** 32, 2 ** 29):
        bits = np.arange(start, start + 2 ** 29, 67, dtype=np.uint64).astype(np.uint32)
        x = bits.view(np.float32)[None, :]
        made = ours("hifloat8", x)
        codes = x.astype(en_dtypes.hifloat8).view(np.uint8)
        keep = ~np.isnan(x)
        made["codes"], codes = made["codes"][keep], codes[keep]
        table.add(f"en-dtypes 0.0.4, HiFloat8, bits from {start:#x}", made, codes, None)


def main():
    table, generator = Table(), torch.Generator().manual_seed(51)
    with tempfile.TemporaryDirectory(prefix="halfscope-formats-") as name:
        ours = Ours(sys.argv[1], pathlib.Path(name))
        compare_nvfp4(ours, table, generator)
        compare_dialects(ours, table, generator)
        compare_mx(ours, table, generator)
        compare_current_scaling(ours, table, generator)
        compare_elements(ours, table)
    print(f"{table.elements:,} elements, {table.wrong} differences")
    sys.exit(1 if table.wrong else 0)


if __name__ == "__main__":
    main()
