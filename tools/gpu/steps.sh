#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# steps.sh STEP OUT: runs one step of gpu.sh, in a process of its own so that a time limit can end
# it. Lines "fact: NAME = VALUE" go into the summary. Each step is a function with its name.
# Exit code 0 if it passed, 4 if it lacks what it needs, else 1.
# shellcheck disable=SC2317  # called by name, at the end
set -uo pipefail
readonly step=$1 out=$2
readonly bundle=$HALFSCOPE_BUNDLE
readonly bin=$bundle/bin dry=${HALFSCOPE_GPU_DRY:-}
readonly few=${dry:+"~[slow]"} # tests that a dry run leaves out
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
failed=0
lacking="" # what was missing to a part of this step

# shellcheck source=tools/gpu/training.sh
source "$here/training.sh"
# shellcheck source=tools/gpu/python.sh
source "$here/python.sh"

fact() { printf 'fact: %s = %s\n' "$1" "$2"; }

# Runs a command that must succeed for the step to pass. If it fails, the step continues.
must() {
  "$@" && return 0
  local code=$?
  echo "this ended with $code: $*"
  failed=1
  return "$code"
}

# FILE COMMAND...: same as must, and also writes the command's output to a file.
must_into() {
  local code
  "${@:2}" 2>&1 | tee "$1"
  code=${PIPESTATUS[0]}
  ((code == 0)) && return 0
  echo "this ended with $code: ${*:2}"
  failed=1
  return "$code"
}

# NAME ARGUMENT...: runs a test program. A skipped test is a failure, because there is a GPU.
tests() {
  local log=$out/work/$step.txt
  must_into "$log" "$bin/$1" "${@:2}" --durations yes
  fact "$1" "$(grep -E '^(All tests passed|test cases:|No tests ran)' "$log" | tail -n 1)"
  [[ -n $dry ]] && return 0
  grep -q '^skipped:' "$log" && fact "$1 skipped" "$(grep -c '^skipped:' "$log")" && failed=1
  grep -q '^No tests ran' "$log" && failed=1
  return 0
}

# Reports versions and the device. Information that some machines lack is optional.
versions() {
  uname -srm
  sed -n 's/^PRETTY_NAME=//p' /etc/os-release
  command -v nvidia-smi >/dev/null && { nvidia-smi || true; }
  must_into "$out/work/info" "$bin/halfscope" info
  fact "cudnn backend" "$(sed -n 's/^cudnn backend  *//p' "$out/work/info")"
  fact "halfscope" "$(sed -n 's/^halfscope  *//p' "$out/work/info")"
  if ! "$bin/write_device" >"$out/device.json"; then
    [[ -s $out/device.json ]] || rm -f "$out/device.json"
    fact "properties of the device" "unknown: see this step's log"  # optional
  fi
  fact "Python" "$(python_facts)"  # PyTorch's first import may take a minute
}

# Compares every operation with the emulated one. A network in the tests needs scikit-learn's
# digits, which the machine may lack, so a temporary home contains them.
operations() {
  local home=$out/work/home
  install -D -m 644 "$bundle/data/digits/digits.csv.gz" \
    "$home/.local/lib/python3/site-packages/sklearn/datasets/data/digits.csv.gz"
  HOME=$home tests test_cudnn "[gpu]~[.]$few"
}

# Compares every convolution of the networks, at its own size, with binary64.
shapes() {
  local which='[gpu][large]'
  [[ -z $dry ]] || which='cudnn shapes: lenet on digits'
  tests test_cudnn "$which"
}

# Checks that the GPU has the CPU's results: half functions on all encodings, arrays, histograms,
# updates.
twins() {
  tests test_cuda "[gpu]~[.]$few"
  sed -n 's/^\(.*\): \(of [0-9]* inputs .*\)$/fact: \1 = \2/p' "$out/work/twins.txt"
}

# Compares the results of Tensor Cores with the model, and keeps the raw results.
tensor_core() {
  local code=0
  "$bin/probe_tensor_core" "$out/tensor_core" || code=$?
  [[ -z $dry || $code != 3 ]] || return 0 # 3: no GPU
  ((code == 0)) || failed=1
}

# Plans every convolution for this device, instead of the H100 description that was written by hand.
plans() {
  local json=$bundle/data/h100.json
  grep -qs '"cudnn_device_properties"' "$out/device.json" && json=$out/device.json
  HALFSCOPE_DEVICE_JSON=$json HALFSCOPE_PLANS=$out/plans.md tests test_cudnn 'plans:*'
  fact "properties of" "$(basename "$json")"
}

# Measures the speed of array operations and histograms, as shares of the memory's bandwidth.
bench() {
  must_into "$out/work/bench" "$bin/bench_cuda" --json "$out/bench_cuda.json"
  awk '/^(table|read device|largest and sum|updates)/ {
         name = $1
         for (i = 2; i < NF - 2; ++i) name = name " " $i
         print "fact: " name " = " $(NF - 1) " GB/s, " $NF " of reading"
       }' "$out/work/bench"
  [[ -s $out/bench_cuda.json || -n $dry ]] || failed=1
}

case $step in
  versions | operations | twins | real_runs | bench | resnet50 | recording | optimizers | fp8_casts | \
    fp8_products | tensor_core | repeat | plans | emulation | lenet | tinyssd | shapes | seeds)
    "$step"
    ((failed == 0)) || exit 1
    [[ -z $lacking ]] || exit 4
    ;;
  *)
    echo "no step '$step'"
    exit 2
    ;;
esac
