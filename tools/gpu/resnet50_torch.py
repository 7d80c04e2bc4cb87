# SPDX-License-Identifier: Apache-2.0
"""Milliseconds of a ResNet-50 step in PyTorch: resnet50_torch.py [--device cpu].

64 images of 224 x 224, channels_last, FP16 autocast with a GradScaler, SGD with momentum. Prints the
median of 30 steps after 10, by CUDA's events, once with cuDNN's benchmark mode and once with
deterministic algorithms alone. Exit code 3 without PyTorch on a GPU. On a CPU: one tiny step.
"""

import os
import statistics
import sys
import time

import modules

PARAMETERS = 25_557_032
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride
MODES = {"cudnn.benchmark": (True, False), "deterministic": (False, True)}


def resnet50(torch):
    """The network of 1000 classes; the stride is in the 3 x 3 convolutions, as in torchvision."""
    nn = torch.nn

    def convolution(inputs, outputs, size, stride=1):
        return (nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            self.body = nn.Sequential(*convolution(inputs, width, 1), nn.ReLU(inplace=True),
                                      *convolution(width, width, 3, stride), nn.ReLU(inplace=True),
                                      *convolution(width, outputs, 1))
            self.shortcut = nn.Sequential(*convolution(inputs, outputs, 1, stride)) \
                if stride > 1 or inputs != outputs else nn.Identity()

        def forward(self, x):
            return torch.relu_(self.body(x) + self.shortcut(x))

    layers, channels = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in STAGES:
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    found = sum(parameter.numel() for parameter in model.parameters())
    assert found == PARAMETERS, f"found {found} parameters, expected {PARAMETERS}"
    return model


def training(torch, device, images, size):
    """Returns a function that trains one step and returns the loss."""
    torch.manual_seed(0)
    model = resnet50(torch).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(device)
    x = torch.randn(images, 3, size, size, device=device).to(memory_format=torch.channels_last)
    y = torch.arange(images, device=device) % 1000

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.float16 if device == "cuda" else torch.bfloat16):  # CPUs are slow in FP16
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return step


def timed(torch, device, step, warm, steps):
    """Returns the milliseconds of each step after `warm` others, and the last loss."""
    for _ in range(warm):
        step()
    if device == "cpu":
        times = [time.perf_counter()]
        for _ in range(steps):
            loss = step()
            times.append(time.perf_counter())
        return [1000 * (after - before) for before, after in zip(times, times[1:])], loss
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    events[0].record()
    for event in events[1:]:
        loss = step()
        event.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in zip(events, events[1:])], loss


def main():
    given, torch = modules.arguments(__doc__)
    images, size, warm, steps = (64, 224, 10, 30) if given.device == "cuda" else (2, 32, 0, 1)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS's deterministic algorithms
    torch.utils.deterministic.fill_uninitialized_memory = False  # would only cost time
    cudnn = torch.backends.cudnn
    for name, (cudnn.benchmark, deterministic) in MODES.items():
        torch.use_deterministic_algorithms(deterministic, warn_only=True)
        cudnn.deterministic = deterministic
        step = training(torch, given.device, images, size)
        times, loss = timed(torch, given.device, step, warm, steps)
        print(f"fact: PyTorch's resnet50, mixed, channels_last, {name} = {statistics.median(times):.3f} ms a step "
              f"({min(times):.3f} to {max(times):.3f}), last loss {loss.item():.3f}", flush=True)
    print(f"fact: PyTorch = {torch.__version__}, cuDNN {cudnn.version()}, {images} images of {size} x {size}")


if __name__ == "__main__":
    sys.exit(main())
