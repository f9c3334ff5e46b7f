"""What the measured systems share: sizes, text, the timed loop, the line that is printed. Imported first: start-up counts from here."""
import time

BEGAN = time.perf_counter()

import argparse
import json
import os
import pathlib
import resource
import statistics

import numpy

HERE = pathlib.Path(__file__).parent
SIZES = json.loads((HERE / "sizes.json").read_text())


def read_options(description, **flags):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=SIZES, default="smoke")
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    for name, help_text in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=help_text)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    return options, SIZES[options.model]


def window_of(size, layer):
    """Three sliding layers, then one that sees everything (None)."""
    return None if layer % 4 == 3 else size["window"]


def matrix_parameters(size):
    heads = size["n_heads"] * size["head_dim"]
    layer = size["d_model"] * (4 * heads + 3 * size["d_ff"])
    return size["n_layers"] * layer + size["d_model"] * size["vocab"]


def check_parameters(size, model):
    """The same model, to the last parameter."""
    norms = size["n_layers"] * (2 * size["d_model"] + 2 * size["n_heads"] * size["head_dim"]) + size["d_model"]
    expected = matrix_parameters(size) + size["d_model"] * size["vocab"] + norms
    found = sum(parameter.numel() for parameter in model.parameters())
    if found != expected:
        raise SystemExit(f"the model has {found} parameters, expected {expected}")


def flops_per_token(size):
    """Useful operations only: six a parameter in a matrix product, twelve times the width of the heads for each visible pair."""
    length, pairs = size["seq_len"], 0
    for layer in range(size["n_layers"]):
        reach = window_of(size, layer) or length
        pairs += length * reach - reach * (reach - 1) // 2
    return 6 * matrix_parameters(size) + 12 * size["n_heads"] * size["head_dim"] * pairs / length


def batches(size):
    """Text that can be learnt down to ln 8: int64 [micro-batches, instances, seq_len + 1] a step."""
    random = numpy.random.default_rng(1)
    instances = size["tokens_per_step"] // size["seq_len"]
    while True:
        text = numpy.empty((instances, size["seq_len"] + 1), numpy.int64)
        text[:, 0] = random.integers(0, size["vocab"], instances)
        for i in range(size["seq_len"]):
            text[:, i + 1] = (5 * text[:, i] + 1 + random.integers(0, 8, instances)) % size["vocab"]
        yield text.reshape(-1, size["micro_batch"], size["seq_len"] + 1)


def run(name, options, size, step, **facts):
    """Times step(batch) -> loss and prints one JSON line. Batches are made outside the timed part."""
    source, seconds, first = batches(size), [], None
    for number in range(options.warmup + options.steps):
        batch = next(source)
        begin = time.perf_counter()
        loss = step(batch)
        end = time.perf_counter()
        first = first or end - BEGAN
        if number >= options.warmup:
            seconds.append(end - begin)
    rate = size["tokens_per_step"] / statistics.median(seconds)
    print(json.dumps({
        "peer": name, "model": options.model, "dtype": options.dtype, "threads": options.threads,
        "tokens_per_s": round(rate, 1),
        "tokens_per_s_min": round(size["tokens_per_step"] / max(seconds), 1),
        "tokens_per_s_max": round(size["tokens_per_step"] / min(seconds), 1),
        "gflops": round(1e-9 * rate * flops_per_token(size), 1),
        "step_ms": round(1e3 * statistics.median(seconds), 1),
        "startup_s": round(first, 2), "final_loss": round(float(loss), 4), "steps": options.steps,
        "tokens_per_step": size["tokens_per_step"], "seq_len": size["seq_len"], "micro_batch": size["micro_batch"],
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, **facts}))
