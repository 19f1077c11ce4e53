#!/usr/bin/env python3
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each two switches of stream groups together compute what stock TensorFlow does.

Runs `multistream_inference` (graph level: all results against those of stock TensorFlow or,
without a GPU, of one group) and `multistream_training` (node level: losses with groups against
those without) for combinations of `SWITCHES` that have every pair of values, or for all, under the
sanitizer. Uses the standard library alone, so that it runs wherever the programs do:

    switches_test.py --programs bazel-bin/tensorflow/examples/multistream --gpu --all
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import subprocess
import sys

GROUPS = 4
HERE = pathlib.Path("tensorflow/examples/multistream")

# Of each switch the variables that set it, each way.
SWITCHES = [
    [
        "",
        "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL=true",
        "TF_GPU_STREAM_AWARE_BFC=true",
        "TF_GPU_STREAM_AWARE_BFC=true TF_BFC_EXTEND_LIMIT_MB=4 TF_FORCE_GPU_ALLOW_GROWTH=true",
    ],
    [
        "",
        "TF_GPU_THREAD_MODE=global",
        "TF_GPU_THREAD_MODE=gpu_shared TF_GPU_THREAD_COUNT=3",
        "TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=1",
    ],
    ["", "TF_GPU_STREAM_MERGE=true"],
    ["", "TF_PER_STREAM_HOST_ALLOCATOR=true"],
    [
        "",
        "TF_SEGMENT_OWN_CONST=true TF_MULTI_STREAM_CAPTURE=auto"
        " TF_GPU_STREAM_GROUP_PRIORITIES=-1,0,0,-2",
    ],
]
# An emulated GPU has no such allocator, nothing in its contexts, and no graphs.
ON_GPU = [
    [*SWITCHES[0], "TF_GPU_ALLOCATOR=cuda_malloc_async"],
    *SWITCHES[1:],
    ["", "TF_GPU_CONTEXT_COUNT=2"],
    ["", "TF_MULTI_STREAM_CAPTURE_BRANCHES=1 TF_MULTI_STREAM_CAPTURE=auto"],
]


def combinations(switches: list[list[str]], every: bool) -> list[tuple[str, ...]]:
    """Lists combinations of values: all, or few that have every pair of values."""
    rows = list(itertools.product(*switches))
    if every:
        return rows
    pairs = {row: set(itertools.combinations(enumerate(row), 2)) for row in rows}
    missing = set().union(*pairs.values())
    chosen = []
    while missing:
        chosen.append(max(rows, key=lambda row: len(missing & pairs[row])))
        missing -= pairs[chosen[-1]]
    return chosen


class Programs:
    """The programs, and how they are run and judged."""

    def __init__(self, folder: pathlib.Path, gpu: bool, jobs: int) -> None:
        self._folder = folder
        self._count = "40" if gpu else "12"
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
        self._environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
        self._environment["TF_MULTI_STREAM_SANITIZER"] = "abort"
        if not gpu:
            self._environment["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
        elif jobs > 1:  # one run would take all memory
            self._environment["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        # The CPU's kernels are not those of an emulated GPU.
        stock = "multistream_inference_stock" if gpu else "multistream_inference"
        self._stock = self._serve(stock, {"TF_GPU_STREAM_GROUP_COUNT": "1"})

    def _run(self, name: str, arguments: list[str], environment: dict[str, str], says: str) -> str:
        """Returns what a run printed; raises RuntimeError if it failed or did not say something."""
        done = subprocess.run(
            [str(self._folder / name), *arguments],
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        if done.returncode or says not in done.stdout:
            raise RuntimeError(f"status {done.returncode}\n{done.stdout[-2000:]}")
        return done.stdout

    def _serve(self, name: str, environment: dict[str, str]) -> str:
        """Returns the fingerprint of the results."""
        model = [f"{HERE}/data/model_test.pbtxt", "1", "input0", "1", "output", "8"]
        load = [self._count, "6", f"{HERE}/data/config_proto"]
        output = self._run(name, ["--verify", *model, *load], environment, " results, 0 wrong")
        return str(re.findall("fingerprint .*", output)[0])

    def infer(self, environment: dict[str, str]) -> None:
        """Raises RuntimeError if inference gives other results than stock TensorFlow's."""
        found = self._serve("multistream_inference", environment)
        if found != self._stock:
            raise RuntimeError(f"{found}, not stock's {self._stock}")

    def train(self, environment: dict[str, str]) -> None:
        """Raises RuntimeError if training has other losses than on one stream."""
        arguments = [f"--branches={GROUPS}", "--layers=2", "--width=16", f"--steps={self._count}"]
        environment = {**environment, "TF_NODE_LEVEL_MULTISTREAM": "true"}
        output = self._run("multistream_training", arguments, environment, "the same losses")
        if "sanitizer reports: 0" not in output:
            raise RuntimeError(output)


def main() -> int:
    """Runs the combinations; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, default=HERE, help="their folder")
    parser.add_argument("--gpu", action="store_true", help="on a GPU, not an emulated one")
    parser.add_argument("--all", action="store_true", help="combinations, not only all pairs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    arguments = parser.parse_args()
    programs = Programs(arguments.programs, arguments.gpu, arguments.jobs)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = {}
        for row in combinations(ON_GPU if arguments.gpu else SWITCHES, arguments.all):
            variables = " ".join(filter(None, [f"TF_GPU_STREAM_GROUP_COUNT={GROUPS}", *row]))
            environment = dict(variable.split("=", 1) for variable in variables.split())
            for run in (programs.infer, programs.train):
                jobs[pool.submit(run, environment)] = f"{run.__name__} {variables}"
        for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            error = job.exception()
            failed += error is not None
            print(f"{number}/{len(jobs)} {jobs[job]}: {error or 'ok'}", flush=True)
    print(f"{len(jobs)} runs, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
