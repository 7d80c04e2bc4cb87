# SPDX-License-Identifier: Apache-2.0
"""Multiplies FP8 matrices by cuBLAS (torch._scaled_mm), and compares with the model of Tensor Cores.

    fp8_products.py [--device cpu] VECTORS

Each product is computed with fast accumulation and without. OUTPUTS of its elements are compared with
`halfscope mma` (HALFSCOPE_PROGRAM), as chains of 32, 64, ... or all k: each chain begins at +0, and the
results are added in binary32. VECTORS receives fp8-products.json (docs/gpu.md). How cuBLAS adds FP8
products is not known, so a difference is a fact, no failure. Exit code 1 if every product is refused,
3 without PyTorch on a GPU.
"""

import itertools
import os
import subprocess
import sys

import modules
import vectors

SHAPES = ((16, 16, 32), (64, 64, 128), (128, 128, 512), (256, 64, 1024), (64, 128, 4096), (16, 16, 160),
          (48, 80, 336), (1024, 1024, 1024))  # m, n, k
FORMATS = (("e4m3fn", "e4m3fn"), ("e5m2", "e4m3fn"))  # pairs that cuBLAS multiplies
KINDS = ("near one", "all numbers")
CHAINS = (32, 64, 128, 256, 512, "all")
OUTPUTS = 64
ARCHITECTURES = {(8, 9): "ada", (9, 0): "hopper", (10, 0): "blackwell"}
ONE = {"e4m3fn": 0x38, "e5m2": 0x3C}


def codes(torch, kind, format, count, seed):
    """"near one": the sign and the low bits of hashed(seed), an exponent of 1 or at most three less.
    "all numbers": hashed(seed) modulo the number of finite codes of a sign, and a sign."""
    words = vectors.hashed(torch, count, seed)
    sign = (words >> 8 & 1) << 7
    if kind == "near one":
        step = 8 if format == "e4m3fn" else 4
        return (sign | (ONE[format] - step * (words >> 16 & 3) + words % step)).to(torch.uint8)
    return (sign | words % (0x7F if format == "e4m3fn" else 0x7C)).to(torch.uint8)


def product(torch, a, b, device, fast):
    """a (m, k) times the transpose of b (n, k), in float32. Operands are FP8 tensors in CPU memory."""
    one = torch.tensor(1.0, device=device)
    return torch._scaled_mm(a.to(device), b.to(device).t(), scale_a=one, scale_b=one,
                            out_dtype=torch.float32, use_fast_accum=fast).cpu()


def places(torch, m, n):
    """The rows and columns of the outputs that are compared."""
    return tuple(vectors.hashed(torch, OUTPUTS, seed) % extent for seed, extent in ((7, m), (8, n)))


def predicted(torch, architecture, a, b, length):
    """Sums of each row of a with the same row of b (codes, of E4M3), in chains of `length`."""
    lines = []
    for start in range(0, a.shape[1], length):
        for row in zip(a[:, start:start + length].tolist(), b[:, start:start + length].tolist()):
            lines.append(" ".join(",".join(f"{code:02x}" for code in side) for side in row) + " 00000000")
    done = subprocess.run(
        [os.environ.get("HALFSCOPE_PROGRAM", "halfscope"), "mma", "--arch", architecture, "--accumulate", "fp32",
         "--inputs", "e4m3"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    words = torch.tensor([int(word, 16) for word in done.stdout.split()])
    total = torch.zeros(len(a))
    for chunk in vectors.binary32(torch, words).view(-1, len(a)):
        total = total + chunk
    return total


def predictions(torch, architecture, a, b):
    """{length of a chain: sums}. a and b: the rows and columns of the outputs."""
    lengths = [length for length in CHAINS if length == "all" or length < a.shape[1]]
    return {str(length): predicted(torch, architecture, a, b, a.shape[1] if length == "all" else length)
            for length in lengths}


def one_case(torch, given, architecture, shape, formats, kind):
    """Returns what is stored of a product; "predicted" counts the outputs that are the model's."""
    (m, n, k), (left, right) = shape, formats
    a, b = codes(torch, kind, left, m * k, 1).view(m, k), codes(torch, kind, right, n * k, 2).view(n, k)
    rows, columns = places(torch, m, n)
    models = predictions(torch, architecture, a[rows], b[columns]) if formats == FORMATS[0] else {}
    stored = {"shape": shape, "formats": formats, "kind": kind, "a": vectors.digest(a), "b": vectors.digest(b)}
    for name, fast in (("fast", True), ("not fast", False)):
        d = product(torch, a.view(getattr(torch, f"float8_{left}")), b.view(getattr(torch, f"float8_{right}")),
                    given.device, fast)
        outputs = d[rows, columns]
        same = {length: int((model.view(torch.int32) == outputs.view(torch.int32)).sum())
                for length, model in models.items()}
        stored[name] = {"sha256": vectors.digest(d), "outputs": vectors.bits(outputs), "predicted": same}
        print(f"{shape}, {' x '.join(formats)}, {kind}, {name}: {same}", flush=True)
    return stored


def facts(cases, architecture):
    """Prints how many outputs each hypothesis predicts, of those that it was compared with."""
    for name in ("fast", "not fast"):
        for length in map(str, CHAINS):
            found = [case[name]["predicted"][length] for case in cases if length in case[name]["predicted"]]
            if found:
                print(f"fact: FP8 products, {name}, chains of {length} = {sum(found)} of "
                      f"{OUTPUTS * len(found)} as {architecture}'s model")


def main():
    given, torch = modules.arguments(__doc__, "vectors")
    gpu = given.device == "cuda"
    architecture = ARCHITECTURES.get(torch.cuda.get_device_capability() if gpu else (9, 0), "hopper")
    cases, refused = [], 0
    for formats, shape, kind in itertools.product(FORMATS, SHAPES if gpu else SHAPES[:2], KINDS):
        try:
            cases.append(one_case(torch, given, architecture, shape, formats, kind))
        except (RuntimeError, ValueError) as error:  # a product that this cuBLAS or PyTorch does not have
            refused += 1
            print(f"{shape}, {' x '.join(formats)}: {error}")
    vectors.write(torch, given.device, given.vectors, "fp8-products",
                  {"architecture": architecture, "outputs": OUTPUTS, "cases": cases})
    facts(cases, architecture)
    print(f"fact: FP8 products that were refused = {refused} of {refused + len(cases)}")
    return int(not cases)


if __name__ == "__main__":
    sys.exit(main())
