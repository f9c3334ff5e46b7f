#!/usr/bin/env bash
# Runs each libFuzzer program of a build directory for some seconds and ends with "N passed, N failed".
# usage: tools/fuzz.sh BUILD_DIR SECONDS [NAME...]
# What a program finds lies in BUILD_DIR/found/NAME-*; what it learned is kept in BUILD_DIR/corpus/NAME.
set -euo pipefail

build=$1
seconds=$2
shift 2
passed=0
failed=0
names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then for file in "$build"/seeds/*; do names+=("$(basename "$file")"); done; fi
mkdir -p "$build/found"
for name in "${names[@]}"; do
  corpus=$build/corpus/$name
  log=$build/found/$name.log
  mkdir -p "$corpus"
  if "$build/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/found/$name-" "$corpus" "$(cat "$build/seeds/$name")" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, no finding"
  else
    failed=$((failed + 1))
    echo "fuzz $name: FOUND something"
    tail -n 40 "$log"
  fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
