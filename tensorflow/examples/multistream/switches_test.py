#!/usr/bin/env python3
# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Every combination of the switches of stream groups computes what one stream does.

Runs `multistream_inference` (graph level: each result against those of a process with one group)
and `multistream_training` (node level: losses with groups against those without), once for each
combination of `SWITCHES`, under the sanitizer. Uses the standard library alone, so that it runs
wherever the programs do. As a test it takes each seventh combination, which has every pair of
values:

    switches_test.py --programs bazel-bin/tensorflow/examples/multistream --gpu
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

GROUPS = 4
HERE = pathlib.Path("tensorflow/examples/multistream")

# What each switch can be: a name, and the variables that say so.
SWITCHES: dict[str, dict[str, dict[str, str]]] = {
    "memory": {
        "even": {},
        "shared": {"TF_GPU_STREAM_GROUP_SHARE_MEM_POOL": "true"},
        "aware": {"TF_GPU_STREAM_AWARE_BFC": "true"},
        "growing": {
            "TF_GPU_STREAM_AWARE_BFC": "true",
            "TF_BFC_EXTEND_LIMIT_MB": "4",
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        },
    },
    "threads": {
        "process": {},
        "global": {"TF_GPU_THREAD_MODE": "global"},
        "shared": {"TF_GPU_THREAD_MODE": "gpu_shared", "TF_GPU_THREAD_COUNT": "3"},
        "private": {"TF_GPU_THREAD_MODE": "gpu_private", "TF_GPU_THREAD_COUNT": "1"},
    },
    "streams": {
        "separate": {},
        "merged": {"TF_GPU_STREAM_MERGE": "true"},
    },
    "host": {
        "shared": {},
        "own": {"TF_PER_STREAM_HOST_ALLOCATOR": "true"},
    },
    "constants": {
        "default": {},
        "segment": {
            "TF_SEGMENT_OWN_CONST": "true",
            "TF_MULTI_STREAM_CAPTURE": "auto",
            "TF_GPU_STREAM_GROUP_PRIORITIES": "-1,0,0,-2",
        },
    },
}
# On a GPU only: an emulated one has no such allocator, nothing in its contexts, and no graphs.
ON_GPU: dict[str, dict[str, dict[str, str]]] = {
    "memory": {"async": {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}},
    "contexts": {"one": {}, "two": {"TF_GPU_CONTEXT_COUNT": "2"}},
    "branches": {
        "none": {},
        "one": {"TF_MULTI_STREAM_CAPTURE_BRANCHES": "1", "TF_MULTI_STREAM_CAPTURE": "auto"},
    },
}


def combinations(gpu: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the name of each combination and its environment."""
    switches = dict(SWITCHES)
    for switch, more in ON_GPU.items() if gpu else ():
        switches[switch] = switches.get(switch, {}) | more
    for names in itertools.product(*switches.values()):
        environment: dict[str, str] = {}
        for switch, name in zip(switches, names, strict=True):
            environment |= switches[switch][name]
        yield " ".join(f"{s}={n}" for s, n in zip(switches, names, strict=True)), environment


def pairs(names: list[str]) -> set[tuple[str, str]]:
    """All pairs of values that combinations of these names have."""
    return {pair for name in names for pair in itertools.combinations(name.split(), 2)}


class Programs:
    """The programs, and how they are run and judged."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path) -> None:
        self._programs = arguments.programs
        self._data = str(arguments.data)
        self._iterations = str(arguments.iterations)
        self._steps = str(arguments.steps)
        self._reference = str(folder / "reference")
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
        self._environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
        self._environment["TF_MULTI_STREAM_SANITIZER"] = arguments.sanitizer
        if not arguments.gpu:
            self._environment["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
        elif arguments.jobs > 1:  # one run would take all memory
            self._environment["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"

    def _run(self, name: str, arguments: list[str], environment: dict[str, str]) -> str:
        """Output of a run; what went wrong, in upper case, if anything did."""
        try:
            done = subprocess.run(
                [str(self._programs / name), *arguments],
                env={**self._environment, **environment},
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "FAILED: not done after 180 s"
        if done.returncode != 0:
            return f"FAILED: status {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
        return done.stdout

    def _infer(self, last: list[str], environment: dict[str, str], count: str) -> str:
        model = [f"{self._data}/model_test.pbtxt", "1", "input0", "1", "output"]
        load = ["8", self._iterations, count, f"{self._data}/config_proto"]
        # Warming up is verified, too, and takes most of the time of so short a run.
        more = ["--warmup=4", *last]
        return self._run("multistream_inference", [*model, *load, *more], environment)

    def make_reference(self) -> str:
        """Results of one group, in a file."""
        one = {"TF_GPU_STREAM_GROUP_COUNT": "1"}
        output = self._infer([f"--save-reference={self._reference}"], one, "1")
        return output if output.startswith("FAILED") else ""

    def infer(self, environment: dict[str, str]) -> str:
        """What is wrong with inference; empty if nothing is."""
        groups = {"TF_GPU_STREAM_GROUP_COUNT": str(GROUPS), **environment}
        output = self._infer([f"--reference={self._reference}"], groups, "6")
        return "" if " results, 0 wrong" in output else output

    def train(self, environment: dict[str, str]) -> str:
        """What is wrong with training; empty if nothing is."""
        groups = {"TF_GPU_STREAM_GROUP_COUNT": str(GROUPS), "TF_NODE_LEVEL_MULTISTREAM": "true"}
        arguments = [f"--branches={GROUPS}", "--layers=2", "--width=16", f"--steps={self._steps}"]
        output = self._run("multistream_training", arguments, {**groups, **environment})
        good = "the same losses" in output and "sanitizer reports: 0" in output
        return "" if good else output


def main() -> int:
    """Runs the table; returns how many combinations failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, default=HERE, help="folder of both")
    parser.add_argument("--data", type=pathlib.Path, default=HERE / "data", help="of the model")
    parser.add_argument("--gpu", action="store_true", help="on a GPU, not an emulated one")
    parser.add_argument("--sanitizer", default="abort", help="TF_MULTI_STREAM_SANITIZER")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th one only")
    parser.add_argument("--iterations", type=int, default=12, help="queries of a thread")
    parser.add_argument("--steps", type=int, default=12, help="of a training")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    arguments = parser.parse_args()
    if arguments.every < 1:
        parser.error(f"--every {arguments.every}: at least 1")
    rows = list(combinations(arguments.gpu))
    chosen = rows[:: arguments.every]
    if never := pairs([name for name, _ in rows]) - pairs([name for name, _ in chosen]):
        parser.error(f"--every {arguments.every}: {' and '.join(min(never))} would never meet")
    began = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(arguments, pathlib.Path(folder))
        if wrong := programs.make_reference():
            print("one group:", wrong)
            return 1
        jobs = [
            (f"{level:9} {name}", run, environment)
            for name, environment in chosen
            for level, run in (("inference", programs.infer), ("training", programs.train))
        ]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            found = pool.map(lambda job: job[1](job[2]), jobs)
            for number, ((name, _, _), wrong) in enumerate(zip(jobs, found, strict=True), 1):
                failed += bool(wrong)
                print(f"{number}/{len(jobs)} {name}: {wrong or 'ok'}", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(jobs)} runs, {failed} failed, {seconds:.0f} s")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
