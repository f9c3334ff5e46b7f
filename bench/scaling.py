"""What a step costs as one thing grows and the rest stays: sequence, width, vocabulary, batch. Runs `deltazero bench` and draws the curves.

  scaling.py DELTAZERO [--out build/scaling] [--quick]

Writes OUT/scaling.json (every line as printed) and an SVG for each curve.
"""
import argparse
import json
import pathlib
import subprocess

from plot import line_chart


def lines_of(program, *arguments):
    done = subprocess.run([program, "bench", *map(str, arguments), "--json"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def step(program, **changes):
    sets = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    return lines_of(program, "step", "--model", "nano", "--steps", 2, "--warmup", 1, *sets)[0]


def microseconds(line):
    return 1e6 / line["tokens_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltazero", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/scaling"))
    parser.add_argument("--quick", action="store_true", help="sequences to 8k only")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    program = options.deltazero.resolve()
    longest = 8192 if options.quick else 65536
    lengths = [length for length in (1024, 2048, 4096, 8192, 16384, 32768, 65536) if length <= longest]

    # The whole step of nano: 16,384 tokens or one instance, so that only the length of an instance changes.
    sequence = {"window 512": [], "every layer full": []}
    for name, window in (("window 512", 512), ("every layer full", 0)):
        for length in lengths:
            if window == 0 and length > 16384:
                continue
            tokens = max(length, 8192)
            sequence[name].append(step(program, seq_len=length, window=window, tokens_per_step=tokens, micro_batch=max(1, 8192 // length)))
    width = [step(program, d_model=d, n_heads=d // 64, d_ff=4 * d, vocab=4096, tokens_per_step=4096, micro_batch=8) for d in (128, 256, 512, 1024)]
    vocabulary = [step(program, vocab=v, tokens_per_step=4096, micro_batch=8) for v in (1024, 4096, 16384, 65536)]
    batch = [step(program, tokens_per_step=512 * n, micro_batch=min(n, 8)) for n in (1, 2, 4, 8, 16, 32)]

    record = {"sequence": sequence, "width": width, "vocabulary": vocabulary, "batch": batch}
    (options.out / "scaling.json").write_text(json.dumps(record, indent=1) + "\n")
    line_chart(options.out / "sequence.svg", "nano, one step by length of an instance", "tokens of an instance", "microseconds a token",
               {name: [(line["seq_len"], microseconds(line)) for line in lines] for name, lines in sequence.items()}, True, True)
    line_chart(options.out / "width.svg", "nano by width (d_ff = 4 d_model)", "d_model", "GFLOP/s",
               {"useful": [(d, line["gflops"]) for d, line in zip((128, 256, 512, 1024), width)]}, True, True)
    line_chart(options.out / "vocabulary.svg", "nano by vocabulary", "rows of the head", "microseconds a token",
               {"step": [(v, microseconds(line)) for v, line in zip((1024, 4096, 16384, 65536), vocabulary)],
                "head": [(v, 1e3 * line["head_ms"] / line["tokens_per_step"]) for v, line in zip((1024, 4096, 16384, 65536), vocabulary)]}, True, True)
    line_chart(options.out / "batch.svg", "nano by instances a step", "instances of 512 tokens", "tokens / s",
               {"step": [(line["tokens_per_step"] // 512, line["tokens_per_s"]) for line in batch]}, True, False)
    for name, lines in {**sequence, "width": width, "vocabulary": vocabulary, "batch": batch}.items():
        print(name, *(f"{line['tokens_per_s']:.0f}" for line in lines), "tokens/s")


if __name__ == "__main__":
    main()
