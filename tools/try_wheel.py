# SPDX-License-Identifier: Apache-2.0
"""Tries the installed package: ./run wheel. Arguments: package, readme or beside."""

import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
IMPORT_SECONDS = 0.1


def passed(what):
    print("passed:", what, flush=True)


def import_seconds():
    """Returns the seconds that `import halfscope` needs: the least of ten starts of Python."""
    code = ("import sys, time; start = time.perf_counter(); import halfscope; "
            "print(time.perf_counter() - start); assert 'torch' not in sys.modules")
    return min(float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                                    text=True).stdout) for _ in range(10))


def package():
    """Tests with nothing but Python: the program, a page, an import, the error without torch."""
    program = pathlib.Path(sys.executable).with_name("halfscope")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
    passed(f"Python {sys.version.split()[0]}, halfscope --version: {version.stdout.splitlines()[0]}")
    subprocess.run([program, "report", HERE / "log", "--out", "program.html"], check=True)
    assert pathlib.Path("program.html").read_text().rstrip().endswith("</html>")
    passed("halfscope report")
    seconds = import_seconds()
    assert seconds < IMPORT_SECONDS, f"import halfscope takes {seconds:.3f} s"
    passed(f"import halfscope in {seconds:.3f} s, without torch")
    try:
        import halfscope.torch
        raise AssertionError(f"{halfscope.torch} is there without PyTorch")
    except ImportError as error:
        assert "pip install 'halfscope[torch]'" in str(error), error
    passed("a missing PyTorch is named with what installs it")


def readme():
    """Runs the README's example in Python, on the shipped log."""
    text = (HERE / "README.md").read_text()
    (example,) = re.findall(r"```python\n(import halfscope\n.*?)```", text, re.DOTALL)
    exec(example.replace("runs/mine", str(HERE / "log")))
    assert pathlib.Path("report.html").read_text().rstrip().endswith("</html>")
    passed("the README's example")


def beside():
    """Tests in one process with libraries that also contain protobuf, oneTBB and a C++ library."""
    import tensorflow
    import torch

    import halfscope

    log = HERE.parent / "data/digits-cnn/log"
    begin = time.perf_counter()
    total = int(tensorflow.reduce_sum(tensorflow.ones(1000)))
    assert total == int(torch.ones(1000).sum()) == halfscope.binade_table(torch.ones(1000)).total
    advice = halfscope.recommend(log)
    assert advice.static_scale == 32768, advice
    (event, *_) = tensorflow.data.TFRecordDataset(str(next(log.glob("events*"))))
    assert tensorflow.compat.v1.Event.FromString(event.numpy()).file_version
    try:
        halfscope.analyze(HERE / "nothing")
        raise AssertionError("a file that is not there was read")
    except halfscope.BadInput:
        pass
    passed(f"TensorFlow {tensorflow.__version__}, PyTorch {torch.__version__} and halfscope in one "
           f"process, in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    {"package": package, "readme": readme, "beside": beside}[sys.argv[1]]()
