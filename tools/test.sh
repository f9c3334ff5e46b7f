#!/usr/bin/env bash
# Runs the tests of a build directory and ends with "N passed, N failed"; exits 1 when a test failed, or none ran.
# Tests that compare with files of tools/fetch-references are left out when those are missing, and counted in a line of their own;
# so are slow tests, which DZ_SLOW_TESTS=1 runs, and tests that skipped themselves for another reason. None counts as passed.
# usage: tools/test.sh BUILD_DIR [ctest arguments]
# Counts come from GoogleTest's own records; a program that died before it wrote one counts as one failure.
set -euo pipefail

build=$1
shift
results=$(cd "$build" && pwd)/results
rm -rf "$results"
mkdir -p "$results"

code=0
GTEST_OUTPUT="json:$results/" ctest --test-dir "$build" --output-on-failure -j2 "$@" </dev/null || code=$?

# The first "tests" and "failures" of a record are the totals of its program.
count() { sed -n "s/^ *\"$1\": \([0-9]*\),\$/\1/p;" "$2" | head -n 1; }

passed=0
failed=0
left_out=0
slow=0
skipped=0
for record in "$results"/*.json; do
  [[ -e $record ]] || continue
  tests=$(count tests "$record")
  failures=$(count failures "$record")
  without=$(grep -c '^ *"left_out": "1"' "$record" || true)
  long=$(grep -c '^ *"slow": "1"' "$record" || true)
  skips=$(grep -c '^ *"result": "SKIPPED"' "$record" || true)
  passed=$((passed + tests - failures - skips))
  failed=$((failed + failures))
  left_out=$((left_out + without))
  slow=$((slow + long))
  skipped=$((skipped + skips - without - long))
done
if [[ $code -ne 0 && $failed -eq 0 ]]; then failed=1; fi
if [[ $left_out -gt 0 ]]; then echo "left out: $left_out tests need tools/fetch-references"; fi
if [[ $slow -gt 0 ]]; then echo "left out: $slow slow tests, which DZ_SLOW_TESTS=1 runs"; fi
if [[ $skipped -gt 0 ]]; then echo "skipped: $skipped tests do not apply to this build or this file system"; fi
echo "$passed passed, $failed failed"
[[ $code -eq 0 && $failed -eq 0 && $passed -gt 0 ]]
