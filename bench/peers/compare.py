"""Our training step beside those of other systems on this machine, in turn, so that a slow spell of the machine hits all of them.

  compare.py DELTAZERO [--models nano 60m 190m] [--rounds 3] [--python PYTHON] [--out build/peers]

PYTHON has torch, transformers and ai2-olmo-core; without it a virtual environment is made under --out and they are installed there.
Writes OUT/results.json, every line as it was printed, and OUT/table.md.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).parent
PACKAGES = ("torch==2.15.0", "transformers==5.24.0", "ai2-olmo-core==2.4.0", "numpy")


def environment(folder):
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        print(f"installing {', '.join(PACKAGES)} in {folder / 'venv'}", flush=True)
        venv.create(folder / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def last_line(command, timeout):
    """The JSON line that `command` prints, or why there is none. glibc keeps large blocks, which PyTorch asks for at every step."""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
           "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(1 << 28)}
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        return {"failed": f"no end after {timeout} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return {"failed": (done.stderr or done.stdout).strip().splitlines()[-1:]}


def commands(ours, python, model, dtype, steps):
    options = ["--model", model, "--dtype", dtype, "--steps", steps]
    return {
        "deltazero": [ours, "bench", "step", *options, "--warmup", 2, "--json"],
        "torch": [python, HERE / "torch_step.py", *options],
        "torch compile": [python, HERE / "torch_step.py", *options, "--compile"],
        "OLMo-core": [python, HERE / "olmo_core_step.py", *options],
        "torch matmul alone": [python, HERE / "torch_gemm.py", *options],
        "deltazero matmul alone": [ours, "bench", "gemm", "--model", model, "--dtype", dtype, "--json"],
    }


def cell(lines, peak, key="tokens_per_s"):
    values = [line[key] for line in lines if key in line]
    if not values:
        return "-"
    share = [line["gflops"] for line in lines if "gflops" in line]
    return f"{statistics.median(values):,.0f} ({100 * statistics.median(share) / peak:.0f}%)" if peak and share else f"{statistics.median(values):,.0f}"


def ratio(lines, ours, key="tokens_per_s"):
    """Ours over theirs, within a round."""
    values = [b[key] / a[key] for a, b in zip(lines, ours) if key in a and key in b]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"


def table(results, machine):
    text = [f"{machine}. Tokens a second, median of the rounds; in brackets the share of the raw peak measured by `deltazero` in the same round;",
            "ratio: deltazero's step over that line, within a round, with its least and greatest.", ""]
    for (model, dtype), runs in results.items():
        ours = runs["deltazero"]
        peaks = [peak for line in ours for peak in line.get("peak_gflops", [])]
        peak = statistics.median(peaks) if peaks else None
        text += [f"**{model}, {dtype}** (raw peak {peak:,.0f} GFLOP/s)" if peak else f"**{model}, {dtype}**", "",
                 "| | tokens/s | ratio | peak memory, MB | first step after, s |", "| --- | --- | --- | --- | --- |"]
        for name, lines in runs.items():
            text.append(f"| {name} | {cell(lines, peak)} | {ratio(lines, ours)} | {cell(lines, None, 'peak_rss_mb')} | {cell(lines, None, 'startup_s')} |")
        text.append("")
    return "\n".join(text)


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltazero", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=["nano", "60m", "190m"])
    parser.add_argument("--dtypes", nargs="+", default=["bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--skip", nargs="*", default=[], help="lines to leave out, as they are called in the table")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run")
    parser.add_argument("--python", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/peers"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    python = options.python or environment(options.out)
    machine = f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores"
    results = {}
    for model in options.models:
        for dtype in options.dtypes:
            wanted = {name: command for name, command in commands(options.deltazero.resolve(), python, model, dtype, options.steps).items()
                      if name not in options.skip}
            runs = results[model, dtype] = {name: [] for name in wanted}
            for number in range(options.rounds):
                for name, command in wanted.items():
                    line = last_line(command, options.timeout)
                    runs[name].append(line)
                    print(f"{model} {dtype} round {number + 1}: {name}: {line.get('tokens_per_s', line.get('failed'))} tokens/s", flush=True)
            (options.out / "results.json").write_text(json.dumps(
                {"machine": machine, "runs": {f"{m} {d}": found for (m, d), found in results.items()}}, indent=1) + "\n")
            (options.out / "table.md").write_text(table(results, machine))
    print((options.out / "table.md").read_text())
    if any("failed" in line for runs in results.values() for lines in runs.values() for line in lines):
        sys.exit("some runs failed: see results.json")


if __name__ == "__main__":
    main()
