#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares halfscope with real FP16 training on a GPU: docs/gpu.md#against-real-fp16-training
#
#   run.sh OUT [PART...]      parts: the tasks of tasks.py, and tests (default: all)
#
# Runs three tasks at a time, each with its own time limit, then the judge. Writes judge.txt,
# judge.json, summary.txt, tests.txt and results.tar.gz (in pieces if it is large) to OUT.
#
#   PYTHON             Python with PyTorch and halfscope (default: python3)
#   HALFSCOPE_PROGRAM  (default: halfscope)
#   TRUTH_LIMIT        seconds of one task (default: 210)
#   TRUTH_DRY=1        tiny tasks on the CPU
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd) || exit 1
readonly here out parts=" ${*:2} "
readonly python=${PYTHON:-python3} program=${HALFSCOPE_PROGRAM:-halfscope} limit=${TRUTH_LIMIT:-210}
readonly most=$((15 * 1024 * 1024))
work=$(mktemp -d)
readonly work
export HALFSCOPE_PROGRAM=$program OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}

wanted() { [[ $parts =~ ^\ *$ || $parts == *" $1 "* ]]; }

# NAME LIMIT COMMAND...: writes the command's output to NAME.txt, and its result to the summary.
part() {
  local begun=$SECONDS code=0
  wanted "$1" || return 0
  timeout --kill-after=5 "$2" "${@:3}" >"$work/$1.txt" 2>&1 </dev/null || code=$?
  printf '%-10s exit %3d  %4d s\n' "$1" "$code" $((SECONDS - begun)) | tee -a "$out/summary.txt"
}

# TASK...: runs tasks one after the other.
lane() {
  local task dry=()
  [[ -z ${TRUTH_DRY:-} ]] || dry=(--dry)
  for task; do
    part "$task" "$limit" "$python" "$here/train.py" "$task" "$work/runs" --program "$program" "${dry[@]}"
  done
}

tests() {
  cd "$here/../.." || return
  part tests 240 "$python" -m pytest -rsfE --tb=short -p no:cacheprovider \
    --continue-on-collection-errors \
    tests/python/test_{recorder,emulate}*.py tests/python/test_{truth,snippets,recording_lines,torch_files}.py \
    tests/python/test_{sharded_checkpoints,swamped,package,tensorboard}.py
}

versions() {
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  "$program" --version
  "$python" -c 'import platform, torch, halfscope; print(platform.python_version(), torch.__version__,
    torch.version.cuda, torch.backends.cudnn.version())'
}

# Keeps whole tensors only of the smallest network.
archive() {
  rm -rf "$work"/runs/{clip,resnet,lm,lstm,detector}/*/tensors
  tar -C "$work" -czf "$out/results.tar.gz" .
  (($(stat -c %s "$out/results.tar.gz") < most)) && return
  split --bytes "$most" --numeric-suffixes "$out/results.tar.gz" "$out/results.tar.gz."
  rm "$out/results.tar.gz"
}

main() {
  : >"$out/summary.txt"
  mkdir -p "$work/runs"
  versions >>"$out/summary.txt" 2>&1 || { cat "$out/summary.txt" && exit 1; }
  lane lm clip & lane resnet cnn & lane detector lstm & tests &
  wait
  cp "$work/tests.txt" "$out" 2>/dev/null
  "$python" "$here/judge.py" "$work/runs"
  cp "$work"/runs/judge.{txt,json} "$out"
  archive
  rm -rf "$work"
  cat "$out/summary.txt"
}

main
