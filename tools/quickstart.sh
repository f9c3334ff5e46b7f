#!/usr/bin/env bash
# From text to a trained model and the proof that its bits do not depend on what carried the run. Every command is shown before it runs.
#   make quickstart              about 35 MB of documentation from Debian packages, which are unpacked, not installed
#   make quickstart TEXT=dir     your own text
# Run it again whenever you like: what is finished is kept. Data goes to data/quickstart, runs to runs/quickstart and runs/quickstart-check.
set -euo pipefail
cd "$(dirname "$0")/.."

config=configs/quickstart.yaml
data=data/quickstart
run=runs/quickstart
check=runs/quickstart-check
steps=200
check_steps=40
started=$SECONDS

title() { printf '\n== %s\n' "$*"; }
# As one would type it: words with spaces in quotes.
show() {
  local word line='$'
  for word in "$@"; do
    if [[ $word == *' '* && $# -gt 1 ]]; then line+=" \"$word\""; else line+=" $word"; fi
  done
  printf '%s\n' "$line"
}
deltazero() { build/deltazero "$@"; }
do_it() { show "$@"; "$@"; }
steps_done() { deltazero inspect "$1" --json 2>/dev/null | field step || true; }
# The first value of a key in JSON that arrives on standard input.
field() { grep -o "\"$1\": *[^,}]*" | head -n 1 | sed 's/^[^:]*: *//; s/"//g'; }

title "1. Text"
mkdir -p "$data" runs
inputs=()
if [[ -n ${TEXT:-} ]]; then
  [[ -d $TEXT ]] || { echo "quickstart: TEXT=$TEXT is not a directory" >&2; exit 66; }
  inputs+=(--input "$TEXT")
  identity="$TEXT $(find "$TEXT" -type f -printf '%P %s %T@\n' | LC_ALL=C sort | sha256sum)"
else
  tools/quickstart_text.sh "$data"
  for source in "$data"/text/*; do inputs+=(--input "$(basename "$source")=$source"); done
  identity=$(tail -n 1 "$data/SOURCES")
fi
fresh=()
if [[ -e $data/INPUTS && $(cat "$data/INPUTS") != "$identity" ]]; then
  echo "the text is another than last time: new tokenizer, new shards, new runs"
  rm -rf "$data/tokenizer.json" "$data/shards"
  fresh=(--fresh)
fi
echo "$identity" >"$data/INPUTS"

title "2. Tokenizer and token shards"
if [[ -e $data/tokenizer.json && -e $data/shards/manifest.json ]]; then
  echo "already there: $data/tokenizer.json, $data/shards"
else
  do_it deltazero tokenizer-train "${inputs[@]}" --vocab 4096 --out "$data/tokenizer.json"
  rm -rf "$data/shards"
  do_it deltazero tokenize --tokenizer "$data/tokenizer.json" "${inputs[@]}" --out "$data/shards" --held-out 0.01
fi

# Starts the training, kills it when it has done a random number of steps, and compares what is computed twice because of that.
train_with_a_kill() {
  local before after pid first saved lines=0 stale=-1 target
  if [[ ${#fresh[@]} -gt 0 ]]; then do_it deltazero train "$config" --dir "$run" --fresh --stop-after 0; fi
  first=$(steps_done "$run")
  target=$((${first:-0} + 1 + RANDOM % (steps - ${first:-0})))
  if [[ -e $run/metrics.jsonl ]]; then lines=$(wc -l <"$run/metrics.jsonl"); fi
  if [[ $lines -gt ${first:-0} ]]; then stale=$lines; fi
  show deltazero train "$config" --dir "$run" "&"
  build/deltazero train "$config" --dir "$run" </dev/null &
  pid=$!
  # Lines behind the checkpoint that it resumes from are of an earlier kill; the trainer cuts them off.
  while [[ $lines -lt $target || $lines -eq $stale ]] && kill -0 "$pid" 2>/dev/null; do
    sleep 0.1
    lines=$(wc -l 2>/dev/null <"$run/metrics.jsonl" || echo 0)
  done
  sleep "0.$((RANDOM % 10))"
  show kill -KILL "$pid"
  kill -KILL "$pid" 2>/dev/null || true
  { wait "$pid" || true; } 2>/dev/null
  saved=$(steps_done "$run")
  before=$(proofs "$run/metrics.jsonl")
  echo "killed after step $(tail -n 1 <<<"$before" | cut -d ' ' -f 1); the newest complete checkpoint is step $saved"
  do_it deltazero train "$config" --dir "$run"
  after=$(proofs "$run/metrics.jsonl")
  compare_twice "$before" "$after" "$saved"
}

# Of each whole line: step, batch digest, and the bits of loss and gradient norm.
proofs() {
  sed -n 's/.*"step": *\([0-9]*\),.*"loss_hex": *"\([^"]*\)".*"grad_norm_hex": *"\([^"]*\)".*"batch_digest": *"\([^"]*\)".*}$/\1 \4 \2 \3/p' "$1"
}

compare_twice() {
  local twice different
  twice=$(awk -v saved="$3" '$1 > saved' <<<"$1")
  if [[ -z $twice ]]; then
    echo "the kill came right after a save: no step was computed twice"
    return
  fi
  different=$(grep -vxFf <(printf '%s\n' "$2") <<<"$twice" || true)
  if [[ -n $different ]]; then
    echo "quickstart: steps that were computed before and after the kill differ: $different" >&2
    exit 1
  fi
  echo "$(wc -l <<<"$twice") steps were computed twice, before and after the kill: same batches, losses and norms, bit for bit"
}

title "3. Training, with a SIGKILL in the middle"
if [[ ${#fresh[@]} -eq 0 && $(steps_done "$run") == "$steps" ]]; then
  echo "already trained: $run (move it away to train again)"
else
  train_with_a_kill
fi

# The best vector form after the one that the run used; the same one when there is no other.
next_isa() {
  local used after=0 isa
  used=$(field isa <"$run/environment.json")
  for isa in amx avx512_bf16 avx512 avx2; do
    if [[ $after -eq 1 ]]; then echo "$isa"; return; fi
    if [[ $isa == "$used" ]]; then after=1; fi
  done
  echo "$used"
}

title "4. The same first $check_steps steps on another instruction set, another number of threads, another micro-batch, nobody killed"
if [[ ${#fresh[@]} -eq 0 && $(steps_done "$check") == "$check_steps" ]]; then
  echo "already there: $check"
else
  threads=$(($(nproc) == 1 ? 2 : $(nproc) - 1))
  isa=$(next_isa)
  arguments=(train "$config" --dir "$check" --stop-after "$check_steps" "${fresh[@]}"
    --set "topology.threads=$threads" --set topology.micro_batch=2 --set run.landmarks.every=0)
  show "DZ_ISA=$isa deltazero ${arguments[*]}"
  DZ_ISA=$isa deltazero "${arguments[@]}"
fi
show deltazero verify "$run" "$check"
verdict=$(deltazero verify "$run" "$check")
echo "$verdict"

title "5. What it read"
do_it deltazero audit "$run" --tokens

title "6. What it learned"
do_it deltazero eval loss "$run" --tokens "$data/shards" --split held-out
do_it deltazero generate "$run" --prompt "The following options are" --max-tokens 60 --temperature 0.7 --seed 1
do_it deltazero report "$run"

total_loss() { tr -d '\n' <"$1" | sed 's/.*"total"//' | field loss; }
before=$(total_loss "$run/landmarks/step-0/loss.json")
after=$(total_loss "$run/landmarks/step-$steps/loss.json")

title "Done in $((SECONDS - started)) s"
printf 'held-out loss   %.4f before training, %.4f after\n' "$before" "$after"
echo "$verdict"
echo "report          $PWD/$run/report.html"
