# How far transformers' own bf16 runs of the golden models are from their float32 logits and gradients: what a bf16 run of another program may
# show. torch 2.15.0, transformers 5.24.0, CPU.  Run: python tools/reference/bf16_parity.py tests/golden/model
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

torch.set_num_threads(1)


def divergences(reference, ours):
    p, q = (x.double().flatten(0, 1).log_softmax(-1) for x in (reference, ours))
    return (p.exp() * (p - q)).sum(-1)


def gradient_error(path, expected):
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, attn_implementation="eager")
    wanted, ids = load_file(f"{path}/grads.safetensors"), expected["T48.input_ids"]
    model(ids, labels=ids, use_cache=False).loss.backward()
    far = lambda got, want: float((got.double() - want.double()).abs().max() / want.double().abs().max())
    return max((far(p.grad, wanted[name]), name) for name, p in model.named_parameters())


for name in ("base", "gqa", "head_dim", "yarn", "tied", "bias", "olmo2"):
    path = f"{sys.argv[1]}/{name}"
    expected = load_file(f"{path}/expected.safetensors")
    for backend in ("eager", "sdpa"):
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, attn_implementation=backend).eval()
        row = []
        for length in (1, 9, 48, 96):
            with torch.no_grad():
                logits = model(expected[f"T{length}.input_ids"], use_cache=False).logits
            kl = divergences(expected[f"T{length}.logits"], logits)
            row.append(f"T{length}: mean KL {kl.mean():.2e} max {kl.max():.2e} mean abs {(logits - expected[f'T{length}.logits']).abs().mean():.3f}")
        print(name, backend, "; ".join(row))
    print(name, "gradients: %.3f of the largest, %s" % gradient_error(path, expected))
