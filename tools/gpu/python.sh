# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# The steps that need a Python with PyTorch on the GPU or with Halfscope's package. Sourced by steps.sh,
# which sets $out, $here, $bin, $bundle, $dry, $failed, $lacking. The Python is HALFSCOPE_GPU_PYTHON, else
# python3. Halfscope's package may be in the bundle's folder python, in the checkout, or installed.

python=${HALFSCOPE_GPU_PYTHON:-python3}
on=cuda
[[ -z $dry ]] || on=cpu
readonly python on
export HALFSCOPE_PROGRAM=${HALFSCOPE_PROGRAM:-$bin/halfscope}

# FOLDER COMMAND...: runs the Python with this folder before others, if it is not empty.
with_folder() { PYTHONPATH=$1${1:+${PYTHONPATH:+:}}${PYTHONPATH:-} "$python" -B "${@:2}"; }

# Prints a line "torch: VERSION" and one for halfscope, or why they are missing. The first folder whose
# package works is used. The Python is asked once for all steps.
python_modules() {
  local folder why file=$out/work/modules
  if [[ ! -s $file ]]; then
    for folder in "$bundle/python" "$here/../../build/python" ""; do
      [[ -z $folder || -d $folder ]] || continue
      with_folder "$folder" "$here/modules.py" "$on" >"$file.new" 2>"$file.error"
      echo "$folder" >"$file.folder"
      grep -q '^halfscope: missing' "$file.new" || break
    done
    why=$(tail -n 1 "$file.error" | sed 's/.*: line [0-9]*: //')
    [[ -s $file.new ]] || printf '%s: missing: %s\n' torch "$why" halfscope "$why" >"$file.new"
    mv "$file.new" "$file"
  fi
  cat "$file"
}

python_facts() { echo "$python; $(python_modules | paste -sd ';' | sed 's/;/; /g')"; }

# MODULES FILE ARGUMENT...: runs a Python program of this folder, which needs some of torch and
# halfscope. Its device is the first argument. If a module is missing, the facts say so.
in_python() {
  local why
  why=$(python_modules | grep -E "^(${1// /|}): missing: " | sed 's/: missing: /: /' | paste -sd ';' | sed 's/;/; /g')
  if [[ -n $why ]]; then
    fact "$(basename "$2" .py)" "not run: $python lacks $why"
    lacking=$why
    return 1
  fi
  must with_folder "$(<"$out/work/modules.folder")" "$here/$2" "${@:3}"
}

optimizers() {
  in_python "torch halfscope" optimizers.py --device "$on" "$out/optimizers.json" "$out/vectors"
}
fp8_casts() { in_python "torch halfscope" fp8_casts.py --device "$on" "$out/vectors"; }
fp8_products() { in_python torch fp8_products.py --device "$on" "$out/vectors"; }

# Runs the recorder's tests for a GPU: in a checkout, and if the Python has pytest.
recorder_tests() {
  local tests=$here/../../tests/python/test_recorder_gpu.py folder
  folder=$(<"$out/work/modules.folder")
  if [[ ! -f $tests ]] || ! with_folder "$folder" -c 'import pytest' 2>/dev/null; then
    fact "recorder's tests" "not run: they need a checkout and pytest"
    return
  fi
  must_into "$out/work/recorder" with_folder "$folder" -m pytest -q -p no:cacheprovider "$tests"
  fact "recorder's tests" "$(tail -n 1 "$out/work/recorder")"
}

# Measures what the recorder adds to a step of a GPT in PyTorch.
recording() {
  local bench=bench/bench_recording.py json=$out/recording.json
  local -a how=(--networks gpt2_small --amp --pairs 12)
  [[ -f $here/$bench ]] || bench=../../$bench
  [[ -z $dry ]] || how=(--networks perceptron --pairs 2)
  in_python "torch halfscope" "$bench" --device "$on" --json "$json" "${how[@]}" \
    --ways "not recorded" "recorded" "every tenth recorded" || return 0
  recorder_tests
  "$python" - "$json" <<'EOF' || failed=1
import json, sys
for row in json.load(open(sys.argv[1], encoding="utf-8")):
    low, high = row["interval"]
    print(f"fact: {row['name']} = {row['value']:.1f} {row['unit']} ({low:.1f} to {high:.1f}), {row['milliseconds']:.2f} ms"
          + (f" of {row['plain_milliseconds']:.1f}" if "plain_milliseconds" in row else ""))
EOF
}
