# SPDX-License-Identifier: Apache-2.0
"""PyTorch's FP8 casts on a GPU, compared with halfscope.arrays and with PyTorch's CPU; keeps their bits.

    fp8_casts.py [--device cpu] VECTORS

Inputs: all encodings of float16 and bfloat16, of float32 every sign, exponent and 10 leading bits of
the fraction, with the 13 bits below at 0, 1, half and all ones; and every FP8 encoding, back.
VECTORS receives fp8-casts.json (docs/gpu.md). Releases of PyTorch differ in what exceeds E4M3: NaN, or
the largest number ("saturating"). Exit code 1 if the results of a cast differ from halfscope's in both
modes (a NaN equals every NaN); 3 without PyTorch on a GPU.
"""

import sys

import modules
import vectors

FORMATS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",  # PyTorch's name: Halfscope's, if it has one
           "float8_e4m3fnuz": None, "float8_e5m2fnuz": None}
WIDE = {"float16": "binary16", "bfloat16": "bfloat16", "float32": "binary32"}
MODES = {"halfscope": False, "halfscope saturating": True}
NAN = dict(zip(FORMATS, (0x7F, 0x7F, 0x80, 0x80)))  # every NaN in a digest
BELOW = (0, 1, 0x1000, 0x1FFF)  # the 13 lowest bits of a float32


def inputs(torch, dtype):
    if dtype == "float32":
        upper = torch.arange(2**19)[:, None] << 13
        return vectors.binary32(torch, (upper | torch.tensor(BELOW)).flatten())
    return torch.arange(-2**15, 2**15).to(torch.int16).view(getattr(torch, dtype))


def differing(torch, a, b, bits):
    """The number of elements whose encodings differ, where one is not NaN."""
    nan = a.float().isnan() & b.float().isnan()
    return int(((a.view(bits) != b.view(bits)) & ~nan).sum())


def halfscope_cast(halfscope, values, to, saturate):
    """Returns what Halfscope computes by way of float32, which holds every value of these dtypes; None
    if it has no such format."""
    name, dtype = {**FORMATS, **WIDE}[to], str(values.dtype)[6:]
    if name is None or {**FORMATS, **WIDE}[dtype] is None:
        return None
    wide = values if dtype == "float32" else halfscope.arrays.convert(values).values
    return wide if to == "float32" else halfscope.arrays.convert(wide, name, saturate=saturate).values


def cast(torch, halfscope, values, to, given, counts):
    """Casts on the device. Adds to `counts` the results that differ from the CPU's and from
    halfscope's. Returns what is stored."""
    name = f"{str(values.dtype)[6:]} to {to}"
    result = values.to(given.device).to(getattr(torch, to)).cpu()
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[result.element_size()]
    row = counts[name] = {"elements": values.numel(),
                          "cpu": differing(torch, result, values.to(getattr(torch, to)), bits)}
    for other, saturate in MODES.items():
        ours = halfscope_cast(halfscope, values, to, saturate)
        if ours is not None:
            row[other] = differing(torch, result, ours, bits)
    print(f"{name}: {row}", flush=True)
    codes = torch.where(result.float().isnan(), NAN.get(to, 0), result.view(bits))
    stored = {"inputs": vectors.digest(values), "results": vectors.digest(codes.to(bits))}
    return name, stored | (vectors.bits(result) if values.numel() <= 2**16 else {})


def pairs(torch):
    """Yields (values, the dtype to cast to)."""
    for to in FORMATS:
        for dtype in WIDE:
            yield inputs(torch, dtype), to
        if hasattr(torch, to):
            codes = torch.arange(256).to(torch.uint8).view(getattr(torch, to))
            yield from ((codes, wide) for wide in WIDE)


def main():
    given, torch, halfscope = modules.arguments(__doc__, "vectors", needs=("torch", "halfscope"))
    counts, casts, refused = {}, {}, []
    for values, to in pairs(torch):
        try:
            name, casts[name] = cast(torch, halfscope, values, to, given, counts)
        except (AttributeError, RuntimeError) as error:  # a PyTorch or a device without this format
            refused.append(f"{str(values.dtype)[6:]} to {to}")
            print(f"{refused[-1]}: {error}")
    vectors.write(torch, given.device, given.vectors, "fp8-casts", {"counts": counts, "casts": casts})
    for other in ("cpu", *MODES):
        rows = [row for row in counts.values() if other in row]
        print(f"fact: FP8 casts that differ from {other} = {sum(row[other] for row in rows)} of "
              f"{sum(row['elements'] for row in rows)}")
    neither = [name for name, row in counts.items() if min((row[mode] for mode in MODES if mode in row), default=0)]
    print(f"fact: FP8 casts that are halfscope's in neither mode = {', '.join(neither) or 'none'}")
    print(f"fact: FP8 casts that this PyTorch refused = {', '.join(refused) or 'none'}")
    return int(bool(neither))


if __name__ == "__main__":
    sys.exit(main())
