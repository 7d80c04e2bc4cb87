# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# The steps that train networks. Sourced by steps.sh, which sets $out, $bin, $bundle, $dry, $failed.

backend=cudnn
timed=resnet50 # the network whose steps are timed
if [[ -n $dry ]]; then
  timed=mlp
  "$bin/halfscope" info | grep -q '^cudnn backend  *cudnn: ' || backend=cpu
fi
readonly backend timed

# N: prints N, or a small number in a dry run.
steps_of() { [[ -n $dry ]] && echo 4 || echo "$1"; }

# NETWORK RUN ARGUMENT...: trains a network. The digits are in the bundle, since scikit-learn may be
# missing.
simulate() {
  local -a data=()
  [[ $1 != lenet ]] || data=(--data "$bundle/data/digits")
  must_into "$out/work/said" "$bin/halfscope" simulate "$1" "${data[@]}" --out "$2" --force "${@:3}"
}

# RUN: reports the last loss and accuracy that were printed as a fact.
loss_fact() { fact "$(basename "$1")" "$(grep -m 1 ', loss ' "$out/work/said" | sed 's/^[^:]*: //')"; }

# Trains on the GPU and reports that fact.
train() { simulate "$1" "$2" --backend "$backend" "${@:3}" && loss_fact "$2"; }

# RUN: makes its page.
page() { must "$bin/halfscope" report "$1" --out "$out/pages/$(basename "$1").html"; }

# NETWORK RUN ARGUMENT...: trains some steps and also emulates every operation with the same inputs.
check_operations() {
  local -a check=()
  [[ $backend == cpu ]] || check=(--check-operations)
  train "$1" "$2" "${check[@]}" --steps 3 --record-every 1 "${@:3}" || return 0
  [[ $backend == cpu || -s $2/operations.json ]] || failed=1
}

# NETWORK STEPS [PRECISION...]: trains in these precisions, or in three.
in_every_precision() {
  local precision
  local -a scale precisions=("${@:3}")
  ((${#precisions[@]})) || precisions=(fp32 mixed fp16)
  for precision in "${precisions[@]}"; do
    scale=()
    [[ $precision != mixed ]] || scale=(--loss-scale torch)
    train "$1" "$out/runs/$1-$precision" --precision "$precision" "${scale[@]}" \
      --steps "$(steps_of "$2")" --record-every 20 && page "$out/runs/$1-$precision"
    check_operations "$1" "$out/runs/$1-$precision-operations" --precision "$precision" \
      "${scale[@]}"
  done
}

lenet() { in_every_precision lenet 600; }
tinyssd() { in_every_precision tinyssd 600 ${dry:+mixed}; }

# NAME ARGUMENT...: prints the README of a folder of data/, whose run was made by these arguments.
about_run() {
  local where="on an NVIDIA GPU" words
  [[ -z $dry ]] || where="in a dry run, which is nothing to commit,"
  words=$(grep -m 1 ', loss ' "$out/work/said" | sed 's/^[^:]*: //')
  cat <<EOF
# A real run: $1

\`$2\` trained $where in mixed precision, with PyTorch's dynamic loss scaling: $words

* **Made by** \`./run gpu\` ([docs/gpu.md](../../docs/gpu.md#commit-what-it-made)), Halfscope $("$bin/halfscope" --version), $(date -u +%F).
* **Device**: $("$bin/halfscope" info | sed -n 's/^cudnn backend  *//p').
* **Command**: \`halfscope simulate ${*:2} --out log\`.

\`log/\` is a [run log](../../docs/run-log.md): scalars of all steps, and histograms of weights, activations, their gradients and updates of the recorded ones. It has no whole tensors and no checkpoint. \`log/run.json\` names the versions and the algorithm of every convolution.
EOF
}

# NETWORK STEPS EVERY: trains one of the runs of data/ and puts it there, without this machine's paths.
real_run() {
  local name=cudnn-$1
  local made=$out/work/made/$name
  local -a how=(--backend "$backend" --precision mixed --loss-scale torch --steps "$(steps_of "$2")"
    --record-every "$3" --sample-every 1000000 --checkpoint-every 1000000)
  mkdir -p "$out/work/made" "$out/data"
  train "$1" "$out/work/$name" "${how[@]:2}" || return 0
  rm -rf "$out/work/$name"/{tensors,checkpoint}
  sed -i "s|\"$bundle/|\"|" "$out/work/$name/run.json"
  mkdir -p "$made"
  mv "$out/work/$name" "$made/log"
  about_run "$name" "$1" "${how[@]}" >"$made/README.md"
  mv "$made" "$out/data"
}

# Trains the runs that are committed in data/, each below 1.5 MB, then makes their pages.
real_runs() {
  local name bytes
  real_run lenet 600 60
  real_run tinyssd 400 80
  for name in cudnn-lenet cudnn-tinyssd; do
    bytes=$(find "$out/data/$name" -type f -printf '%s\n' | awk '{ all += $1 } END { print all + 0 }')
    fact "bytes of data/$name" "$bytes"
    ((bytes > 0 && bytes < 1500000)) || failed=1
    must "$bin/halfscope" report "$out/data/$name/log" --out "$out/pages/$name.html"
  done
}

# Trains a detector in mixed precision, with and without its loss scale, from the same seeds.
seeds() {
  local seed scale
  local -a seeds=(1 2 3)
  [[ -z $dry ]] || seeds=(1)
  for seed in "${seeds[@]}"; do
    for scale in none torch; do
      train tinyssd "$out/runs/tinyssd-seed$seed-$scale" --precision mixed --loss-scale "$scale" \
        --seed "$seed" --steps "$(steps_of 600)" --record-every 100
    done
  done
}

# FOLDER: trains a run in it, and runs other commands on its log.
run_in() (
  cd "$1" || exit
  simulate lenet run --backend "$backend" --precision mixed --loss-scale torch \
    --steps "$(steps_of 50)" --record-every 1 &&
    "$bin/halfscope" analyze run --json analysis.json >said &&
    "$bin/halfscope" policies run --json policies.json >>said
)

# Trains the same run twice and compares byte by byte: final weights and optimizer state, sampled
# tensors, all histograms and scalars. Event files also hold times, so their contents are compared
# as read.
repeat() {
  local first=$out/work/first second=$out/work/second file all=0 differ=0
  mkdir -p "$first" "$second"
  run_in "$first" || failed=1
  run_in "$second" || failed=1
  while IFS= read -r file; do
    all=$((all + 1))
    cmp "$first/$file" "$second/$file" || differ=$((differ + 1))
  done < <(cd "$first" && find . -type f ! -name '*tfevents*' | sort)
  fact "files that differ" "$differ of $all"
  ((all > 0 && differ == 0)) || failed=1
}

# COMPARISON: reports each gradient's shares of zeros, emulated (A) and by cuDNN (B), as facts.
# Fails if they differ by more than 1 % of the values.
zero_facts() {
  local said
  said=$(sed 's/{"name":/\n&/g' "$1" | sed -n -E \
    's/^\{"name":"((weight|activation)_grad[^"]*)".*"a":\{"total":([0-9]+),"zero":([0-9]+).*"b":\{"total":[0-9]+,"zero":([0-9]+).*/\3 \4 \5 \1/p' |
    awk '{
      emulated = 100 * $2 / $1; run = 100 * $3 / $1; apart = run < emulated ? emulated - run : run - emulated
      printf "fact: zeros of %s = %.3f %%, emulated %.3f %%\n", $4, run, emulated
      if (apart >= largest) { largest = apart; where = $4 }
    }
    END {
      if (NR == 0) exit 1
      printf "fact: zeros, largest difference = %.3f %% of the values, in %s\n", largest, where
      exit largest > 1
    }') || failed=1
  printf '%s\n' "$said"
}

# Trains a detector whose gradients underflow, without a loss scale: three steps from the same
# weights.
underflow() {
  local -a same=(--precision mixed --steps 3 --record-every 1 --sample-every 1)
  train tinyssd "$out/runs/tinyssd-gpu" "${same[@]}"
  simulate tinyssd "$out/runs/tinyssd-cpu" --backend cpu "${same[@]}"
  must "$bin/halfscope" compare "$out/runs/tinyssd-cpu" "$out/runs/tinyssd-gpu" \
    --json "$out/work/zeros.json" >"$out/work/said"
  zero_facts "$out/work/zeros.json"
}

# Trains an emulated run and a real one with the same network, seed and data.
emulation() {
  local -a same=(--precision mixed --loss-scale torch --steps "$(steps_of 200)" --record-every 20)
  train lenet "$out/runs/lenet-gpu" "${same[@]}"
  simulate lenet "$out/runs/lenet-cpu" --backend cpu "${same[@]}"
  loss_fact lenet-cpu
  must "$bin/halfscope" compare "$out/runs/lenet-cpu" "$out/runs/lenet-gpu" \
    --out "$out/pages/lenet-cpu-gpu.html" \
    --title "lenet in mixed precision: emulated, and by cuDNN"
  underflow
}

# NAME FILE: prints a number of a flat JSON file.
number() { sed -n "s/.*\"$1\": *\\([0-9.e+-]*\\).*/\\1/p" "$2"; }

# PRECISION EVERY: sets `took` to the milliseconds of a step if every EVERYth one has histograms.
# Removes the log.
time_of_step() {
  local times=$out/work/times.json run=$out/work/timed
  took=0
  simulate "$timed" "$run" --backend "$backend" --precision "$1" --steps "$(steps_of 40)" \
    --record-every "$2" --sample-every 1000000 --checkpoint-every 1000000 --times "$times" ||
    return 0
  took=$(awk -v s="$(number mean_seconds "$times")" 'BEGIN { printf "%.3f", s * 1000 }')
  cp "$times" "$out/logs/$timed-$1-tables-every-$2.json"
  rm -rf "$run"
}

# A B: prints how much longer A is than B, in percent.
percent_more() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.1f %%", (a / b - 1) * 100 }'; }

# PRECISION EVERY...: reports the milliseconds of a step for each EVERY, and what histograms cost. The
# first EVERY is that of a run without them.
time_of_precision() {
  local every
  for every in "${@:2}"; do
    time_of_step "$1" "$every"
    ms[$1$every]=$took
    fact "$timed $1, tables every $every steps" "$took ms a step"
    [[ $every == "$2" ]] ||
      fact "$timed $1, cost of tables every $every steps" "$(percent_more "$took" "${ms[$1$2]}")"
  done
}

# Measures the speed of mixed, the cost of recording each step, each tenth, only the first, PyTorch's
# speed on the same card, and the speed of fp32.
resnet50() {
  local took
  local -A ms=()
  time_of_precision mixed 1000 10 1
  in_python torch resnet50_torch.py --device "$on"
  lacking="" # the fact says so; the step is about ours
  time_of_precision fp32 1000 10
  fact "$timed, fp32 more than mixed" "$(percent_more "${ms[fp321000]}" "${ms[mixed1000]}")"
}
