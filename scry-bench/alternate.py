#!/usr/bin/env python3
"""Runs two builds of a benchmark in alternation, and says whether the new one is slower.

    alternate.py OLD NEW [--rounds 3] [--] bench_cuda_compare [ARGUMENTS...]

OLD and NEW are folders with the programs. Each round runs both, in alternating order. A row's value is
our time divided by the peer's in the same run, or our time if no peer was measured. A row's ratio is the
value of the new build divided by that of the old build. The exit status is 0 if the geometric mean of
all rows' median ratios is at most 1.02 and no row is above 1.05 in two rounds, else 1. Needs only
Python's standard library.
"""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MAX_MEAN, MAX_ROW = 1.02, 1.05
# Lines of `Table`: name, our time, our rate, peer, its time, ratio (the peer's time over ours).
TIME = r"[0-9.]+ (?:µs|ms|s)"
ROW = re.compile(rf"^(.{{34}}) +({TIME}) .{{15}}  (.{{14}}) +({TIME}) +[0-9.]+(?:  .*)?$")
# Lines of `bench_cpu_compare`: name, our time, our rate if any, peer, its time, ratio.
CPU_ROW = re.compile(rf"^([a-z0-9-]+) +({TIME}) .*?([^ ].{{8}}) +({TIME}) +[0-9.]+× ")
SECONDS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text):
    number, unit = text.split()
    return float(number) * SECONDS[unit]


def rows_of_table(text):
    """Rows of the other programs. A kernel has a row for each of its peers:

    >>> rows_of_table(
    ...     "gemm f16 4096                           500.00 µs   274.9 TFLOP/s  cuBLAS            "
    ...     "  1.000 ms   2.000  ≥ 0.9 PASS\\n"
    ...     "gemm f16 4096                           500.00 µs                  Vulkan            "
    ...     "  2.000 ms   4.000  \\n"
    ... )
    {'gemm f16 4096 cuBLAS': 0.5, 'gemm f16 4096 Vulkan': 0.25}
    """
    found = {}
    for line in text.splitlines():
        if row := ROW.match(line):
            name, ours, peer, theirs = row.groups()
            found[f"{name.strip()} {peer.strip()}"] = seconds(ours) / seconds(theirs)
        elif row := CPU_ROW.match(line):
            name, ours, peer, theirs = row.groups()
            found[f"{name} {peer.strip()}"] = seconds(ours) / seconds(theirs)
    return found


def rows_of_json(lines):
    """Rows of bench_wgpu_compare, with a line for each peer: our time divided by wgpu's, or ours in
    microseconds if wgpu was not measured."""
    times = {}
    for line in lines:
        row = json.loads(line)
        if "bench" in row:
            times.setdefault((row["bench"], row["size"]), {})[row["peer"]] = row["median_us"]
    found = {}
    for (bench, size), peers in times.items():
        ours = next((time for peer, time in peers.items() if peer.startswith("scry")), None)
        theirs = next((time for peer, time in peers.items() if peer.startswith("wgpu")), 1.0)
        if ours is not None:
            found[f"{bench} {size}"] = ours / theirs
    return found


def run(program, arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        extra = ["--json", file.name] if program.name == "bench_wgpu_compare" else []
        done = subprocess.run([program, *extra, *arguments], capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: a goal was missed
            sys.exit(f"{program} failed:\n{done.stdout}\n{done.stderr}")
        json_lines = Path(file.name).read_text().splitlines()
        rows = rows_of_json(json_lines) if extra else rows_of_table(done.stdout)
    if not rows:
        sys.exit(f"{program} printed no row:\n{done.stdout}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ratios = {}
    for round_ in range(options.rounds):
        order = [options.old, options.new] if round_ % 2 == 0 else [options.new, options.old]
        try:
            rows = {build: run(build / options.program, options.arguments) for build in order}
        except KeyboardInterrupt:
            print(f"interrupted in round {round_ + 1}")
            break
        old, new = rows[options.old], rows[options.new]
        for name in old.keys() & new.keys():
            ratios.setdefault(name, []).append(new[name] / old[name])
        for name in old.keys() ^ new.keys():
            print(f"only one build has: {name}")
    if not ratios:
        sys.exit("no round was finished")
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    mean = math.exp(statistics.fmean(math.log(value) for value in medians.values()))
    slower = {name for name, values in ratios.items() if sum(v > MAX_ROW for v in values) >= 2}
    rounds = max(len(values) for values in ratios.values())
    print(f"{options.program}: {len(medians)} rows, {rounds} rounds, new over old")
    for name, value in sorted(medians.items(), key=lambda item: -item[1]):
        each = " ".join(f"{ratio:.3f}" for ratio in ratios[name])
        print(f"  {value:.3f}  {name:<44} {each}{'  SLOWER' if name in slower else ''}")
    print(f"geometric mean {mean:.4f} (at most {MAX_MEAN}), {len(slower)} rows slower (none may be)")
    sys.exit(1 if mean > MAX_MEAN or slower else 0)


if __name__ == "__main__":
    main()
