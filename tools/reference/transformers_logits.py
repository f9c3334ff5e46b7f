"""Loads what `deltazero convert` wrote with transformers' own loader and compares its logits with deltazero's.

usage: python3 tools/reference/transformers_logits.py DELTAZERO MODEL [--tokens 96] [--rows 2] [--limit 6e-5]

MODEL: a Hugging Face directory, a native checkpoint or a run. It is converted to native and back; transformers must find every tensor and none
that it does not know; both compute in float32 on the CPU (eager attention). Prints one JSON object; exit 1 beyond the limit, which is that of
tests/golden/model (6e-5: four times what two correct float32 programs show on the models there).
Versions that were run: transformers 4.57.3 and 5.24.0 with torch 2.15.0, safetensors 0.8.0.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def deltazero(program, *arguments):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):  # 1: parity found a difference
        sys.exit(f"deltazero {' '.join(arguments)}: exit {done.returncode}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltazero")
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--limit", type=float, default=6e-5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        native, converted = os.path.join(directory, "native"), os.path.join(directory, "hf")
        deltazero(arguments.deltazero, "convert", arguments.model, native, "--to", "native")
        deltazero(arguments.deltazero, "convert", native, converted, "--max-shard-size", "200MB")
        model, info = AutoModelForCausalLM.from_pretrained(converted, torch_dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        wrong = {key: sorted(map(str, info[key])) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[key]}
        ids = torch.randint(0, model.config.vocab_size, (arguments.rows, arguments.tokens), generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            logits = model.float().eval()(ids).logits
        golden = os.path.join(directory, "golden.safetensors")
        save_file({"T.input_ids": ids, "T.logits": logits.contiguous()}, golden)
        pair = json.loads(deltazero(arguments.deltazero, "parity", native, "--golden", golden, "--json"))["pairs"][0]
    report = {"transformers": transformers.__version__, "torch": torch.__version__, "model": arguments.model, "tokens": arguments.tokens,
              "loading": wrong or "every tensor, none left over", "logits_rms": float(logits.double().pow(2).mean().sqrt()), **pair}
    print(json.dumps(report, indent=1))
    if wrong or not pair["max_abs"] <= arguments.limit:
        sys.exit(1)


if __name__ == "__main__":
    main()
