#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The last step of the action: puts the report on the logs into the job's summary, and tests each
# condition. Reads LOGS, FAIL_IF, OPTIONS and TITLE (the inputs of action.yml) and GitHub's variables.
# Exit codes: 1 or 2 of the program after an error, else 4 if a condition holds or is undecided.
set -euo pipefail
readonly most_bytes=1000000  # GitHub refuses a summary above 1 MiB

# Prints an error where GitHub shows it: beside the job's other annotations.
annotate() {
  local line
  while IFS= read -r line; do
    line=${line//'%'/%25}
    echo "::error title=${title//[,:%]/ }::${line#halfscope: }"
  done
}

# test_with COMMAND [OPTION...]: tests $condition. Sets $code, and $errors to the lines on stderr.
test_with() {
  code=0 errors=$(halfscope "$1" "${logs[@]}" "${@:2}" --fail-if "$condition" 2>&1 >/dev/null) || code=$?
}

title=${TITLE:-Halfscope} logs=() options=() worst=0 errors=
read -r -d '' -a options <<<"${OPTIONS:-}" || true
while IFS= read -r pattern; do
  [[ -n $pattern ]] || continue
  found=$(compgen -G "$pattern") || {
    annotate <<<"'$pattern' (input logs) is no file or folder; expected a path or a glob on each line"
    exit 2
  }
  mapfile -t -O "${#logs[@]}" logs <<<"$found"
done <<<"${LOGS:-}"
if ((${#logs[@]} == 0)); then
  annotate <<<"input logs is empty; expected a path or a glob on each line"
  exit 2
fi

report=${RUNNER_TEMP:-/tmp}/halfscope.md
if errors=$(halfscope report "${logs[@]}" "${options[@]}" --title "$title" --out "$report" 2>&1); then
  head -c "$most_bytes" "$report" >>"$GITHUB_STEP_SUMMARY"
  echo "report=$report" >>"$GITHUB_OUTPUT"
else
  worst=$?
  annotate <<<"$errors"
fi

while IFS= read -r condition; do
  [[ -n ${condition// /} ]] || continue
  test_with analyze "${options[@]}"
  if ((code == 2)); then  # a field of recommend, or no condition at all
    refused=$errors
    test_with recommend "${options[@]}"
    ((code != 2)) || errors=$refused$'\n'$errors
  fi
  if ((code == 0)); then
    echo "Halfscope: '$condition' does not hold"
  else
    annotate <<<"$errors"
    ((code == 4 && worst != 0)) || worst=$code
  fi
done <<<"${FAIL_IF:-}"
exit "$worst"
