# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# ./run fuzz: runs libFuzzer on every reader, or on the named readers. Sourced by ./run, which sets
# $system_python.

readonly fuzz_folder=build-fuzz fuzz_inputs=65536  # bytes of the longest input

# fuzz [SECONDS] [TARGET...]
fuzz() {
  local seconds=60 failed=0 target
  local -a targets=() running=()
  if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
  fi
  mapfile -t targets < <(fuzz_targets)
  for target in "$@"; do
    [[ " ${targets[*]} " == *" $target "* ]] ||
      die 2 "fuzz: unknown target '$target'; give a number of seconds, then targets of ${targets[*]}"
  done
  (($# == 0)) || targets=("$@")
  ensure build fuzz
  configure fuzz "$fuzz_folder"
  compile "$fuzz_folder" "${targets[@]/#/--target=fuzz_}"
  rm -rf "$fuzz_folder/seeds"
  "$system_python" -B tests/fuzz/make_seeds.py "$fuzz_folder/seeds"
  say "fuzz: ${#targets[@]} targets, $seconds seconds each, $(nproc) at a time"
  for target in "${targets[@]}"; do
    while ((${#running[@]} >= $(nproc))); do
      wait "${running[0]}" || failed=1
      running=("${running[@]:1}")
    done
    fuzz_one "$target" "$seconds" &
    running+=($!)
  done
  for target in "${running[@]}"; do wait "$target" || failed=1; done
  ((failed == 0)) || die 1 "fuzz: something was found, see above"
  say "fuzz: nothing found"
}

fuzz_targets() {
  find tests/fuzz -name 'fuzz_*.cpp' -printf '%f\n' | sed 's/^fuzz_//; s/\.cpp$//' | sort
}

# fuzz_one TARGET SECONDS: prints one line, and how to replay a failure. Keeps the corpus for the
# next run. An input fails if it needs 256 MiB in one allocation, 1 GiB in all, or 10 seconds.
fuzz_one() {
  local target=$1 seconds=$2 status=0 input
  local log=$fuzz_folder/$1.log found=$fuzz_folder/found/$1
  local -a words=() corpus=("$fuzz_folder/corpus/$1" "$fuzz_folder/seeds/$1")
  mkdir -p "${corpus[@]}" "$found"
  [[ ! -d tests/fuzz/regressions/$target ]] || corpus+=("tests/fuzz/regressions/$target")
  for input in tests/fuzz/dictionaries/*.dict; do  # "a+b.dict" is for the targets a and b
    [[ +$(basename "$input" .dict)+ != *"+$target+"* ]] || words=(-dict="$input")
  done
  "$fuzz_folder/bin/fuzz_$target" -max_total_time="$seconds" -print_final_stats=1 \
    -max_len="$fuzz_inputs" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
    "${words[@]}" -artifact_prefix="$found/" "${corpus[@]}" >"$log" 2>&1 || status=$?
  fuzz_line "$target" "$log"
  ((status != 0)) || return 0
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  grep -m 1 -E 'SUMMARY|ERROR: libFuzzer|runtime error' "$log" || tail -n 3 "$log"
  echo "  input:  ${input:-none written}; what was printed: $log"
  echo "  replay: $fuzz_folder/bin/fuzz_$target $input"
  echo "  when it is fixed, keep the input in tests/fuzz/regressions/$target"
  return 1
}

# fuzz_line TARGET LOG
fuzz_line() {
  local last runs
  last=$(grep -E '\bcov: ' "$2" | tail -n 1) || true
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$2")
  printf '%-18s %10s runs  %s\n' "$1" "${runs:-?}" \
    "$(sed -nE 's/.*cov: ([0-9]+) ft: ([0-9]+) corp: ([0-9]+)\/([0-9A-Za-z]+).*/\1 edges, \2 features, corpus of \3 inputs (\4)/p' <<<"$last")"
}
