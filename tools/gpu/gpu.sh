#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs everything that needs a GPU: ./run gpu, or this file in a bundle (docs/gpu.md).
#
#   gpu.sh [--archive-only] [OUT [STEP...]]
#
# Runs all or the named steps of steps.sh, each with its own time limit. OUT receives the results
# (default: build/gpu or gpu-results). After a step that fails or hangs, the next one runs. Both
# summaries are complete after every step: the end of this process loses only the running step. With
# --archive-only, OUT has three files at any time: the summaries and an archive of the rest.
# Exit code 0 if all steps passed, 1 if one did not, 3 if there is no GPU.
#
#   HALFSCOPE_BUNDLE      the folder with bin/, lib/ and data/ (default: the folder of this file)
#   HALFSCOPE_GPU_PYTHON  the Python of the steps that need PyTorch or Halfscope's package
#   HALFSCOPE_GPU_SECONDS seconds for all steps; later steps are skipped (default: 460)
#   HALFSCOPE_GPU_LIMIT   most seconds for one step
#   HALFSCOPE_GPU_DRY=1   every step with tiny settings, on the CPU if there is no GPU, to try the script
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
export HALFSCOPE_BUNDLE=${HALFSCOPE_BUNDLE:-$here} HALFSCOPE_GPU_DRY=${HALFSCOPE_GPU_DRY:-}
readonly budget=${HALFSCOPE_GPU_SECONDS:-460} most=${HALFSCOPE_GPU_LIMIT:-600}

# Of each step the name, the seconds expected on an H100, and the most seconds. The steps that decide
# most come first, in case time runs out (docs/gpu.md).
readonly -a steps=(
  "versions 10 90" "operations 40 100" "twins 45 90" "real_runs 15 60" "bench 25 60"
  "resnet50 80 150" "recording 40 110" "optimizers 15 60" "fp8_casts 10 60" "fp8_products 15 60"
  "tensor_core 35 60" "repeat 10 40" "plans 10 40" "emulation 15 60" "lenet 10 60" "tinyssd 20 60"
  "shapes 45 120" "seeds 20 120"
)

die() {
  echo "gpu.sh: ${*:2}" >&2
  exit "$1"
}

now() { date +%s; }
started=$(now)
readonly started

require_gpu() {
  local said line
  [[ -z $HALFSCOPE_GPU_DRY ]] || return 0
  said=$(timeout 60 "$HALFSCOPE_BUNDLE/bin/halfscope" info 2>&1)
  line=$(grep '^cudnn backend' <<<"$said") || die 3 "halfscope info: ${said##*$'\n'}"
  [[ ! $line =~ ^"cudnn backend"\ +no:\ (.*) ]] || die 3 "${BASH_REMATCH[1]}"
}

# Prints a text as a JSON string.
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$(tr '\000-\037' ' ' <<<"$text" | sed 's/ *$//')"
}

# Prints the lines "fact: NAME = VALUE" of a step's log.
facts_of() { sed -n 's/^fact: //p' "$out/logs/$1.txt" 2>/dev/null; }

# NAME RESULT SECONDS LIMIT: adds a row to both summaries.
write_down() {
  local fact comma=""
  local -a columns=("$1" "$2" "$3 s")
  printf '%-12s %-10s %7s\n' "${columns[@]}" >>"$out/summary.txt"
  facts_of "$1" | sed 's/^/    /' >>"$out/summary.txt"
  [[ ! -s $out/work/rows ]] || printf ',\n' >>"$out/work/rows"
  {
    printf '  {"step": %s, "result": %s, "seconds": %d, "limit": %d, "facts": {' \
      "$(quoted "$1")" "$(quoted "$2")" "$3" "$4"
    while IFS= read -r fact; do
      printf '%s%s: %s' "$comma" "$(quoted "${fact%% = *}")" "$(quoted "${fact#* = }")"
      comma=", "
    done < <(facts_of "$1")
    printf '}}'
  } >>"$out/work/rows"
  write_summary
  keep --exclude={pages,'runs/*/tensors'}
  printf '%-12s %-10s %7s\n' "${columns[@]}"
}

# NAME LIMIT: runs one step. The result is passed, failed (N), timed out, not run (if it lacks what it
# needs) or left out.
run_step() {
  local limit=$2 begun result=passed code=0 left
  left=$((budget - ($(now) - started)))
  ((limit <= most)) || limit=$most
  ((limit <= left)) || limit=$left
  if ((left < 5)); then
    write_down "$1" "left out" 0 "$2"
    return 1
  fi
  begun=$(now)
  timeout --kill-after=5 "$limit" bash "$here/steps.sh" "$1" "$out" \
    >"$out/logs/$1.txt" 2>&1 </dev/null || code=$?
  case $code in
    0) ;;
    4) result="not run" ;;
    124 | 137) result="timed out" ;;
    *) result="failed ($code)" ;;
  esac
  write_down "$1" "$result" $(($(now) - begun)) "$limit"
  [[ $result == passed ]]
}

# OUT: the folder of the results. With --archive-only they are made elsewhere, and OUT is `kept`.
begin() {
  out=$(mkdir -p "$1" && cd "$1" && pwd) || die 1 "the folder '$1' cannot be made"
  if [[ -n $kept ]]; then
    kept=$out
    rm -f "$kept"/{summary.txt,summary.json,gpu-results.tar.gz}
    out=$(mktemp -d) || die 1 "no temporary folder could be made"
  fi
  rm -rf "$out"/{logs,runs,pages,work,data,vectors,tensor_core,summary.txt,summary.json} \
    "$out"/{device.json,plans.md,bench_cuda.json,recording.json,optimizers.json,gpu-results.tar.gz}
  mkdir -p "$out"/{logs,runs,pages,work}
  : >"$out/work/rows"
  write_summary
  [[ -z $HALFSCOPE_GPU_DRY ]] ||
    echo "A dry run with tiny settings: no number here is a result." >"$out/summary.txt"
}

# Writes summary.json from the rows so far. At any time the file is whole.
write_summary() {
  local dry=false
  [[ -z $HALFSCOPE_GPU_DRY ]] || dry=true
  {
    printf '{"schema": 1, "dry": %s, "seconds": %d, "steps": [\n' "$dry" $(($(now) - started))
    cat "$out/work/rows"
    printf '\n]}\n'
  } >"$out/work/summary.json"
  mv "$out/work/summary.json" "$out/summary.json"
}

# OPTION...: packs the results into one file of less than 16 MB, with these options of tar: no
# checkpoints, and sampled tensors only of the longest runs. If the file is larger, leaves out all
# sampled tensors, then pages, then runs.
archive() {
  local file=$out/gpu-results.tar.gz leave
  local -a names without=(--exclude='runs/*/checkpoint' --exclude='runs/*-operations/tensors'
    --exclude='runs/*-seed*/tensors' "$@")
  mapfile -t names < <(cd "$out" &&
    find . -mindepth 1 -maxdepth 1 ! -name 'gpu-results*' ! -name work -printf '%P\n')
  for leave in '' 'runs/*/tensors' pages runs; do
    [[ -z $leave ]] || without+=(--exclude="$leave")
    tar -C "$out" -czf "$file" "${without[@]}" "${names[@]}" || return 1
    (($(stat -c %s "$file") < 16 * 1024 * 1024)) && return 0
  done
  return 1
}

# OPTION...: with --archive-only, brings the results so far, archived with these options of tar.
keep() {
  local file code=0
  [[ -n $kept ]] || return 0
  archive "$@" || code=1
  for file in summary.txt summary.json gpu-results.tar.gz; do
    cp "$out/$file" "$kept/$file.new" && mv "$kept/$file.new" "$kept/$file" || code=1
  done
  return "$code"
}

main() {
  local entry name wanted failed=0
  kept=""
  [[ ${1:-} != --archive-only ]] || { kept=1 && shift; }
  [[ ${1:-} != -* ]] || die 2 "no option '$1'; gpu.sh [--archive-only] [OUT [STEP...]]"
  wanted=" ${*:2} "
  for name in "${@:2}"; do
    [[ " ${steps[*]%% *} " == *" $name "* ]] ||
      die 2 "no step '$name'; there are:$(printf ' %s' "${steps[@]%% *}")"
  done
  [[ -x $HALFSCOPE_BUNDLE/bin/halfscope ]] ||
    die 3 "no bundle in $HALFSCOPE_BUNDLE: ./run bundle makes one"
  require_gpu
  begin "${1:-gpu-results}"
  for entry in "${steps[@]}"; do
    name=${entry%% *}
    [[ $wanted =~ ^\ *$ || $wanted == *" $name "* ]] || continue
    run_step "$name" "${entry##* }" || failed=1
  done
  rm -rf "$out/work"
  if [[ -z $kept ]]; then archive; else keep && rm -rf "$out"; fi ||
    { echo "gpu.sh: the archive could not be written; what there is of it is in $out" >&2 && failed=1; }
  echo "$(($(now) - started)) s; in ${kept:-$out}: summary.txt, summary.json, gpu-results.tar.gz"
  return "$failed"
}

main "$@"
