"""Few wide heads against many narrow ones: the same parameters and attention operations, other speed; and do they learn the same?

  head_dim.py DELTAZERO CONFIG [--steps 100] [--seeds 1 2 3] [--out build/head_dim]

Speed at the widths of nano and 190m by `bench step`; loss curves at nano's width on the data of CONFIG (configs/quickstart.yaml after `make
quickstart`). Everything is set from the command line or the configuration. Writes OUT/head_dim.json and OUT/loss.svg.
"""
import argparse
import json
import pathlib
import statistics
import subprocess

from plot import line_chart

NANO, LARGE = ((4, 64), (2, 128), (1, 256)), ((12, 64), (6, 128), (3, 256))


def speed(program, model, heads, dim, steps):
    done = subprocess.run([program, "bench", "step", "--model", model, "--steps", str(steps), "--warmup", "1", "--set", f"n_heads={heads}",
                           "--set", f"head_dim={dim}", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def losses(program, config, out, heads, dim, seed, steps):
    run = out / f"{heads}x{dim}-seed{seed}"
    settings = {"recipe.seed": seed, "recipe.steps": steps, "recipe.model.d_model": 256, "recipe.model.n_heads": heads,
                "recipe.model.head_dim": dim, "recipe.model.d_ff": 1024, "run.checkpoint_every": 0, "run.landmarks.every": 0}
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    subprocess.run([program, "train", config, "--dir", run, "--fresh", *sets], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltazero", type=pathlib.Path)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=3, help="of the speed measurement, in turn")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/head_dim"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    program = options.deltazero.resolve()

    speeds = {}
    for model, shapes, steps in (("nano", NANO, 3), ("190m", LARGE, 1)):
        for _ in range(options.rounds):
            for heads, dim in shapes:
                speeds.setdefault(f"{model} {heads}x{dim}", []).append(speed(program, model, heads, dim, steps))
    curves = {f"{heads}x{dim}": {seed: losses(program, options.config, options.out, heads, dim, seed, options.steps) for seed in options.seeds}
              for heads, dim in NANO}
    (options.out / "head_dim.json").write_text(json.dumps({"speed": speeds, "loss": curves}, indent=1) + "\n")

    for name, lines in speeds.items():
        rates = [line["tokens_per_s"] for line in lines]
        print(f"{name:14} {statistics.median(rates):9.1f} tokens/s ({min(rates):.1f} to {max(rates):.1f}), {lines[0]['parameters']} parameters")
    # The last tenth of a curve, averaged: how far seeds of one shape are apart is the measure for how far shapes are apart.
    tail = max(1, options.steps // 10)
    ends = {name: [statistics.mean(curve[-tail:]) for curve in by_seed.values()] for name, by_seed in curves.items()}
    spread = max(max(values) - min(values) for values in ends.values())
    for name, values in ends.items():
        print(f"{name:14} loss at the end {statistics.mean(values):.4f} ({', '.join(f'{value:.4f}' for value in values)})")
    means = [statistics.mean(values) for values in ends.values()]
    print(f"shapes differ by {max(means) - min(means):.4f}, seeds of one shape by up to {spread:.4f}")
    line_chart(options.out / "loss.svg", "nano's width, mean of the seeds", "step", "loss",
               {name: [(step + 1, statistics.mean(curve[step] for curve in by_seed.values())) for step in range(options.steps)]
                for name, by_seed in curves.items()})


if __name__ == "__main__":
    main()
