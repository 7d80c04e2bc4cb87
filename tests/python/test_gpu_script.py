# SPDX-License-Identifier: Apache-2.0
"""`./run gpu` without a GPU: its script runs whole, on the emulated device where that was built."""
import os
import re
import subprocess
import tarfile
import time

import pytest

from gpu_bundle import EMULATED, IN_PYTHON, PASSES, WITHOUT_TORCH, gpu, made_bundle, script, summary
from program import BUILD, PROGRAM, ROOT

STEPS = ["versions", "operations", "twins", "real_runs", "bench", "resnet50", "recording", "optimizers",
         "fp8_casts", "fp8_products", "tensor_core", "repeat", "plans", "emulation", "lenet", "tinyssd",
         "shapes", "seeds"]
NO_DEVICE = f"{EMULATED} is not there: build it with the CUDA toolkit's headers"


@pytest.fixture
def bundle(tmp_path):
    return made_bundle(tmp_path / "bundle")


def test_every_step_runs_dry(bundle, tmp_path):
    out = tmp_path / "a folder"
    gpu(bundle, out, code=1, HALFSCOPE_GPU_DRY="1")
    rows = summary(out)
    assert list(rows) == STEPS
    assert {name: row["result"] for name, row in rows.items()} == {
        name: "not run" if name in IN_PYTHON else "passed" for name in STEPS}, (out / "summary.txt").read_text()
    assert rows["repeat"]["facts"]["files that differ"].startswith("0 of ")
    assert int(rows["repeat"]["facts"]["files that differ"].split()[-1]) >= 6
    assert rows["lenet"]["facts"]["lenet-mixed"].startswith("4 steps, loss ")
    assert rows["seeds"]["facts"].keys() == {"tinyssd-seed1-none", "tinyssd-seed1-torch"}
    for name, program in (("operations", "test_cudnn"), ("twins", "test_cuda"), ("plans", "test_cudnn"),
                          ("shapes", "test_cudnn")):
        assert rows[name]["facts"][program].startswith("All tests passed (")
    assert rows["tensor_core"]["facts"]["part mma"] == "as the model says"
    assert rows["bench"]["facts"]["table by parts of 1 GiB of F32"] == "2700.0 GB/s, 0.90 of reading"
    assert float(rows["resnet50"]["facts"]["mlp mixed, tables every 10 steps"].split()[0]) > 0
    zeros = {name: fact for name, fact in rows["emulation"]["facts"].items() if name.startswith("zeros of ")}
    assert len(zeros) > 30
    assert float(zeros["zeros of weight_grad/conv4.weight"].split()[0]) > 20
    assert float(rows["emulation"]["facts"]["zeros, largest difference"].split(" % of the values, in ")[0]) < 0.1
    assert rows["resnet50"]["facts"]["mlp mixed, cost of tables every 1 steps"].endswith(" %")
    assert rows["fp8_casts"]["facts"].keys() == {"fp8_casts"}
    for facts, name in ((rows["resnet50"]["facts"], "resnet50_torch"), (rows["fp8_casts"]["facts"], "fp8_casts")):
        assert facts[name].startswith("not run: /nonexistent/python lacks torch: /nonexistent/python: No such file")
    assert "torch: missing: " in rows["versions"]["facts"]["Python"]
    assert rows["real_runs"]["facts"]["cudnn-lenet"].startswith("4 steps, loss ")
    assert int(rows["real_runs"]["facts"]["bytes of data/cudnn-tinyssd"]) > 1e5
    made = out / "data/cudnn-lenet"
    assert {path.name for path in made.iterdir()} == {"README.md", "log"}
    assert {path.name[:6] for path in (made / "log").iterdir()} == {"run.js", "events"}
    assert "nothing to commit" in (made / "README.md").read_text()
    assert str(bundle) not in (made / "log/run.json").read_text()
    files = [path for path in out.iterdir() if path.is_file()]
    assert len(files) <= 8
    with tarfile.open(out / "gpu-results.tar.gz") as archive:
        names = archive.getnames()
    assert {"summary.txt", "summary.json", "device.json", "logs/lenet.txt",
            "tensor_core/mma.json", "runs/tinyssd-mixed/run.json", "pages/lenet-cpu-gpu.html",
            "data/cudnn-lenet/README.md", "data/cudnn-tinyssd/log/run.json", "pages/cudnn-tinyssd.html"} <= set(names)
    if EMULATED.exists():
        assert rows["versions"]["facts"]["cudnn backend"].startswith("cudnn: emulated device (sm_90), cuDNN ")
        assert "runs/lenet-fp16-operations/operations.json" in names
        assert "--backend cudnn" in (made / "README.md").read_text()
    assert not any("checkpoint" in name or name.startswith("work") for name in names)
    assert (out / "gpu-results.tar.gz").stat().st_size < 16 << 20


def test_steps_that_fail_or_hang_do_not_stop_the_rest(bundle, tmp_path):
    script(bundle / "bin/test_cuda", "echo 'test cases: 3 | 2 passed | 1 failed'\nexit 1\n")
    script(bundle / "bin/test_cudnn", "echo begun\nsleep 600 &\nwait\n")
    begun = time.monotonic()
    done = gpu(bundle, tmp_path / "out", "versions", "operations", "twins", "bench", code=1,
               HALFSCOPE_GPU_DRY="1", HALFSCOPE_GPU_LIMIT="8")
    assert time.monotonic() - begun < 100
    rows = summary(tmp_path / "out")
    assert [row["result"] for row in rows.values()] == ["passed", "timed out", "failed (1)", "passed"]
    assert rows["twins"]["facts"]["test_cuda"] == "test cases: 3 | 2 passed | 1 failed"
    assert "begun" in (tmp_path / "out/logs/operations.txt").read_text()
    assert "timed out" in done.stdout
    assert (tmp_path / "out/gpu-results.tar.gz").exists()


def test_a_run_that_is_not_repeated_fails(bundle, tmp_path):
    other = bundle / "second"
    script(bundle / "bin/halfscope",
           f'[[ $PWD == *second && $1 == simulate ]] && set -- "$@" --seed 9\nexec {PROGRAM} "$@"\n')
    gpu(bundle, tmp_path / "out", "repeat", code=1, HALFSCOPE_GPU_DRY="1")
    row = summary(tmp_path / "out")["repeat"]
    assert row["result"] == "failed (1)"
    assert int(row["facts"]["files that differ"].split()[0]) >= 4
    assert not other.exists()


def test_zeros_that_the_emulation_does_not_have_fail(bundle, tmp_path):
    """The run beside it has a tiny loss scale, so more of its gradients underflow."""
    script(bundle / "bin/halfscope",
           f'[[ "$*" != *tinyssd-gpu* || "$*" != simulate* ]] || set -- "$@" --loss-scale 2^-10\n'
           f'exec {PROGRAM} "$@"\n')
    gpu(bundle, tmp_path / "out", "emulation", code=1, HALFSCOPE_GPU_DRY="1")
    row = summary(tmp_path / "out")["emulation"]
    assert row["result"] == "failed (1)"
    assert float(row["facts"]["zeros, largest difference"].split()[0]) > 1


def test_skipped_tests_are_failures_where_there_is_a_gpu(bundle, tmp_path):
    if not EMULATED.exists():
        pytest.skip(NO_DEVICE)
    script(bundle / "bin/test_cuda", "echo 'skipped: no CUDA device'\n" + PASSES)
    out = tmp_path / "out"
    gpu(bundle, "--archive-only", out, "versions", "twins", code=1)
    assert {name: row["result"] for name, row in summary(out).items()} == {
        "versions": "passed", "twins": "failed (1)"}
    assert summary(out)["twins"]["facts"]["test_cuda skipped"] == "1"
    assert sorted(path.name for path in out.iterdir()) == ["gpu-results.tar.gz", "summary.json", "summary.txt"]
    with tarfile.open(out / "gpu-results.tar.gz") as archive:
        assert {"logs/twins.txt", "device.json"} <= set(archive.getnames())


@pytest.mark.parametrize("options", [[], ["--archive-only"]])
def test_the_end_of_the_script_loses_only_the_running_step(bundle, tmp_path, options):
    """SIGKILL reaches the script while a step runs: what passed before is in both summaries."""
    script(bundle / "bin/bench_cuda", f"touch {tmp_path}/begun\nexec sleep 8\n")
    begun = subprocess.Popen(["bash", bundle / "gpu.sh", *options, tmp_path / "out", "versions", "twins", "bench"],
                             stdout=subprocess.DEVNULL,
                             env={**os.environ, **WITHOUT_TORCH, "HALFSCOPE_GPU_DRY": "1", "TMPDIR": str(tmp_path)})
    seen = set()
    while begun.poll() is None:
        if (tmp_path / "out/summary.json").exists():
            seen.add(tuple(summary(tmp_path / "out")))  # whole at any time
        if (tmp_path / "begun").exists():
            begun.kill()
        time.sleep(0.01)
    assert begun.returncode == -9
    rows = summary(tmp_path / "out")
    assert {name: row["result"] for name, row in rows.items()} == {"versions": "passed", "twins": "passed"}
    assert {("versions",), ("versions", "twins")} <= seen
    assert len(re.findall("^[a-z]+ +passed", (tmp_path / "out/summary.txt").read_text(), re.MULTILINE)) == 2
    if options:
        with tarfile.open(tmp_path / "out/gpu-results.tar.gz") as archive:
            assert {"logs/twins.txt", "device.json"} <= set(archive.getnames())
    else:
        assert (tmp_path / "out/logs/twins.txt").exists()


def test_the_steps_in_their_order_are_documented_and_fit():
    """What the steps are expected to need is less than the default of HALFSCOPE_GPU_SECONDS."""
    text = (ROOT / "tools/gpu/gpu.sh").read_text()
    rows = re.findall(r'"(\w+) (\d+) (\d+)"', text)
    assert [name for name, _, _ in rows] == STEPS
    assert sum(int(expected) for _, expected, _ in rows) <= int(re.search(r"GPU_SECONDS:-(\d+)", text)[1])
    assert all(int(expected) < int(limit) for _, expected, limit in rows)
    documented = re.findall(r"^\| `(\w+)` \| (\d+) \|", (ROOT / "docs/gpu.md").read_text(), re.MULTILINE)
    assert documented == [(name, expected) for name, expected, _ in rows]


def test_steps_are_left_out_where_time_runs_out(bundle, tmp_path):
    gpu(bundle, tmp_path / "out", "versions", code=1, HALFSCOPE_GPU_DRY="1", HALFSCOPE_GPU_SECONDS="3")
    assert summary(tmp_path / "out")["versions"]["result"] == "left out"


def test_no_gpu_is_told_in_one_line(bundle, tmp_path):
    script(bundle / "bin/halfscope", "echo 'cudnn backend  no: no GPU can be used (none)'\n")
    done = gpu(bundle, tmp_path / "out", code=3)
    assert done.stderr == "gpu.sh: no GPU can be used (none)\n" and done.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments, message", [
    (["--all"], "no option '--all'"),
    (["out", "lennet"], "no step 'lennet'; there are: versions operations"),
])
def test_wrong_arguments_are_named(bundle, arguments, message):
    assert message in gpu(bundle, *arguments, code=2).stderr


@pytest.mark.parametrize("name", ["test_cuda", "test_cudnn"])
def test_gpu_tests_are_skipped_without_a_gpu(name):
    program = BUILD / "bin" / name
    if not program.exists():
        pytest.skip("built without CUDA and cuDNN")
    if "cudnn backend  no:" not in subprocess.run([PROGRAM, "info"], capture_output=True, text=True,
                                                  timeout=60).stdout:
        pytest.skip("this machine has a GPU: ctest -L gpu runs them")
    listed = subprocess.run([program, "--list-test-names-only", "[gpu]~[.]"], capture_output=True,
                            text=True, timeout=60).stdout.splitlines()
    done = subprocess.run([program, "[gpu]~[.]"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(listed) >= 3
    assert done.stdout.count("skipped: no CUDA device") >= len(listed)
