#!/usr/bin/env bash
# Writes an invented run directory that has everything a report must show: 600 steps, two resumes, skipped steps, one that is not
# finite, held-out losses of five sources, a hostile sample, and a last line that was cut off. For `make look`; proves nothing about training.
# usage: tools/look_run.sh DIRECTORY
set -euo pipefail
run=$1
rm -rf "$run"
mkdir -p "$run"

awk 'BEGIN {
  srand(7)
  for (step = 1; step <= 600; ++step) {
    lr = step <= 40 ? 3e-3 * step / 40 : 3e-4 + 1.35e-3 * (1 + cos(3.14159265 * (step - 40) / 560))
    loss = 3.9 + 4.5 * exp(-step / 90) + (rand() - 0.5) * 0.25
    norm = 0.5 + 2.2 * exp(-step / 60) + rand() * 0.2
    extra = ""; skipped = "false"
    if (step == 233 || step == 391) { loss += 3.4; norm *= 9; skipped = "true"; extra = ",\"skip_reason\":\"loss is 7.2 sigma above the last 128\"" }
    shown = sprintf("%.9g", loss); hex = sprintf("0x1.%06xp+2", int(rand() * 16777215))
    if (step == 320) { shown = "null"; hex = "nan"; skipped = "true"; extra = ",\"skip_reason\":\"loss is not finite\"" }
    digest = ""
    if (step % 20 == 0) digest = sprintf(",\"digest\":{\"parameters\":\"%08x%024d\",\"moments\":\"%08x%024d\",\"trainer\":\"%08x%024d\"}", rand() * 4294967295, step, rand() * 4294967295, step, rand() * 4294967295, step)
    printf "{\"step\":%d,\"loss\":%s,\"loss_hex\":\"%s\",\"z_loss\":%.6g,\"grad_norm\":%.9g,\"grad_norm_hex\":\"0x1.%06xp-1\",\"lr\":%.9g,\"skipped\":%s%s,\"tokens\":4096,\"tokens_total\":%d,\"seconds\":0.35,\"tokens_per_second\":%.6g,\"mfu\":%.4g,\"data_share\":0.001,\"save_share\":0.004,\"batch_digest\":\"%08x%024d\"%s}\n", \
      step, shown, hex, loss * 1e-5, norm, int(rand() * 16777215), lr, skipped, extra, step * 4096, 11800 + rand() * 600 - (step % 100 == 0) * 3000, 0.53 + rand() * 0.02, rand() * 4294967295, step, digest
  }
  printf "{\"step\":601,\"loss\":3.8"
}' >"$run/metrics.jsonl"

sources=(perl python git postgresql anarchism)
for step in 0 100 200 300 400 500 600; do
  landmark=$run/landmarks/step-$step
  mkdir -p "$landmark"
  awk -v step="$step" -v names="${sources[*]}" 'BEGIN {
    count = split(names, name, " ")
    printf "{\"step\":%d,\"dtype\":\"bf16\",\"split\":\"held-out\",\"sources\":[", step
    for (i = 1; i <= count; ++i) {
      loss = 3.7 + 0.15 * i + (4.55 - 0.15 * i) * exp(-step / 95); total += loss
      printf "%s{\"name\":\"%s\",\"tokens\":%d,\"loss\":%.6f,\"perplexity\":%.4f}", (i > 1 ? "," : ""), name[i], 100000 * i + 37, loss, exp(loss)
    }
    printf "],\"total\":{\"tokens\":1500185,\"loss\":%.6f,\"perplexity\":%.4f}}\n", total / count, exp(total / count)
  }' >"$landmark/loss.json"
  printf 'prompt: The function\nThe function step %s returns a value in list context, and\n</pre></script><script>document.documentElement.dataset.error = "the sample ran as a script"</script>\n<img src=x onerror=alert(1)> & "quotes" \xff\xfe {{name}} caf\xc3\xa9\n' "$step" >"$landmark/sample.txt"
done

printf 'model:\n  d_model: 256\n  n_layers: 8\n  vocab: 4096\nseed: 1234\nsteps: 600\nbatch: 8\n' >"$run/recipe.yaml"
printf 'threads: 2\nmicro_batch: 8\nloader_threads: 1\n' >"$run/topology.yaml"
printf 'dir: runs/invented\ncheckpoint_every: 20\n' >"$run/run.yaml"
printf '{"version":"0.1.0","cpu":"an invented CPU, 2 cores","compiler":"g++ 12.2"}\n' >"$run/environment.json"
printf '{"step":%s,"isa":"%s","threads":%s,"micro_batch":%s}\n' 0 avx512_bf16 2 8 120 avx512_bf16 2 8 380 avx2 1 4 >"$run/starts.jsonl"
