#!/usr/bin/env bash
# Opens reports in headless Chromium, light and dark, and fails when a script of the page failed or a chart stayed empty.
# usage: tools/look.sh [RUN...]   besides an invented run and a few steps of a real one; screenshots go to build/look
set -euo pipefail
cd "$(dirname "$0")/.."
look=build/look
mkdir -p "$look"
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

browser() {
  local sandbox=()
  if [[ $(id -u) -eq 0 ]]; then sandbox=(--no-sandbox); fi
  timeout 120 chromium --headless "${sandbox[@]}" --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars \
    --user-data-dir="$profile" --window-size=1240,3400 --virtual-time-budget=5000 "$@" 2>"$profile/log"
}

# Says "ok", or what is wrong with a page; 5 charts is what a report has.
judge() {
  local root
  root=$(browser --dump-dom "file://$1" | grep -m 1 -o '<html[^>]*>' || true)
  if [[ $root == *data-error=* ]]; then
    echo "script error: $root"
  elif [[ $root != *'data-charts="5"'* ]]; then
    echo "charts missing: ${root:-no page at all, see $profile/log}"
  else
    echo ok
  fi
}

# The judge must fail on a page whose script breaks and on one whose curves are empty, or its "ok" means nothing.
controls() {
  local page=$1 control=$look/control.html verdict
  sed 's/^  draw();$/  draw(; /' "$page" >"$control"
  verdict=$(judge "$PWD/$control")
  [[ $verdict != ok ]] || { echo "look: a page with a broken script was not noticed"; return 1; }
  sed 's/"lr":\[\[[^"]*\]\]/"lr":[]/' "$page" >"$control"
  verdict=$(judge "$PWD/$control")
  [[ $verdict != ok ]] || { echo "look: an empty chart was not noticed"; return 1; }
  rm "$control"
}

tools/look_run.sh "$look/invented"
build/deltazero train configs/contract.yaml --dir "$look/contract" --stop-after 20 >"$look/contract.log" 2>&1 || { cat "$look/contract.log"; exit 1; }
passed=0
failed=0
for run in "$look/invented" "$look/contract" "$@"; do
  build/deltazero report "$run"
  page=$(realpath "$run/report.html")
  verdict=$(judge "$page")
  name=$(basename "$run")
  browser --screenshot="$PWD/$look/$name-light.png" "file://$page"
  browser --force-dark-mode --blink-settings=preferredColorScheme=0 --screenshot="$PWD/$look/$name-dark.png" "file://$page"
  echo "look: $name: $verdict; see $look/$name-light.png and $look/$name-dark.png"
  if [[ $verdict == ok ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
if controls "$look/invented/report.html"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
