"""PyTorch's matrix products alone, at the shapes of a step: the ceiling of anything that is built on them."""
import peer

options, size = peer.read_options(__doc__)

import json
import statistics
import time

import torch

torch.set_num_threads(options.threads)
dtype = torch.bfloat16 if options.dtype == "bf16" else torch.float32
rows, d, heads = size["micro_batch"] * size["seq_len"], size["d_model"], size["n_heads"] * size["head_dim"]
layers = size["n_layers"]
linears = {"attention": (d, heads, 4 * layers), "gate_up": (d, size["d_ff"], 2 * layers), "down": (size["d_ff"], d, layers),
           "head": (d, size["vocab"], 1)}


def seconds(product):
    product()
    times = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        product()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


line, total = {}, 0.0
for name, (inputs, outputs, count) in linears.items():
    x, dy = torch.randn(rows, inputs).to(dtype), torch.randn(rows, outputs).to(dtype)
    weight = (torch.randn(outputs, inputs) / inputs ** 0.5).to(dtype)
    for product_name, product in {"forward": lambda: x @ weight.T, "dx": lambda: dy @ weight, "dw": lambda: dy.T @ x}.items():
        took = seconds(product)
        total += took * count
        line[f"{name}_{product_name}"] = round(2e-9 * rows * inputs * outputs / took, 1)
print(json.dumps({"peer": "torch matmul", "model": options.model, "dtype": options.dtype, "threads": options.threads,
                  "tokens_per_s": round(rows / total, 1), "gflops": round(6e-9 * peer.matrix_parameters(size) * rows / total, 1),
                  "torch": torch.__version__, **line}))
