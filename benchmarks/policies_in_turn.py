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
"""Times the stream policies on branchy models in one process, in turn.

The models are those of benchmark_policies.py, with the same setups but the stock library. Each
setup is a copy of the model with the same weights. Once they have warmed up, and the runtime has
chosen its plans, one step of each is timed after the other, in an order drawn anew each time, so
that what disturbs, disturbs all. All results must be the same bits.

    export TF_GPU_STREAM_GROUP_COUNT=4 TF_NODE_LEVEL_MULTISTREAM=true
    python benchmarks/policies_in_turn.py --models nasnet --modes training

Exit status: 0, 1 if a result differed or there is no GPU, 2 if the command line is not understood.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import benchmark_policies
import branchy_models
import numpy as np
import process_groups
import tensorflow as tf
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated

# One is a copy of another, to see how much of a ratio is noise.
SETUPS = ("one_stream", "one_stream_again", "hand_marks", "embedding", "full_graph", "cost")


@dataclasses.dataclass
class Timed:
    """A setup and the times of its steps, in ms."""

    setup: str
    step: Callable[[], np.ndarray]
    results: list[bytes] = dataclasses.field(default_factory=list)
    times: list[float] = dataclasses.field(default_factory=list)
    waits: int = 0
    groups: set[int] = dataclasses.field(default_factory=set)

    def run(self) -> float:
        """Runs a step; returns its time in ms."""
        began = time.perf_counter()
        result = self.step()
        took = 1000.0 * (time.perf_counter() - began)
        self.results.append(result.tobytes())
        return took

    def time(self) -> None:
        """Runs a step that counts."""
        before = tf.cuda.stream_stats()
        self.times.append(self.run())
        waits, groups = branchy_models.work_between(before, tf.cuda.stream_stats())
        self.waits += waits
        self.groups |= groups


def compare(model: str, mode: str, options: argparse.Namespace) -> tuple[list[str], bool]:
    """Times all setups of a model.

    Args:
        model: of `branchy_models.MODELS`.
        mode: `training` or `inference`.
        options: as of `branchy_models.make`, with `warmup` and `steps`.

    Returns:
        The rows of a table, and whether all results are the same bits.
    """
    timed = []
    for setup in SETUPS:
        marks = setup == "hand_marks"
        policy = setup if setup in ("embedding", "full_graph", "cost") else "none"
        decorate: Any = tf.cuda.auto_stream(policy)
        step, _ = branchy_models.make(model, mode, options, marks, decorate)
        timed.append(Timed(setup, step))
        for _ in range(options.warmup):
            timed[-1].run()
        print(f"{model}, {mode}: {setup} is warm", file=sys.stderr)
    # So that no setup always follows the same one.
    order = random.Random(20260)
    for _ in range(options.steps):
        for one in order.sample(timed, len(timed)):
            one.time()
    reference = statistics.median(timed[0].times)
    rows = []
    for one in timed:
        median = statistics.median(one.times)
        rows.append(
            f"| {model} | {mode} | {one.setup} | {median:.3f} | {reference / median:.2f} | "
            f"{one.waits / len(one.times):.1f} | {len(one.groups)} | "
            f"{'yes' if one.results == timed[0].results else 'NO'} |"
        )
    return rows, all(one.results == timed[0].results for one in timed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    options = benchmark_policies.parse_arguments(arguments)
    try:
        process_groups.check_environment()
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    tf.config.experimental.enable_op_determinism()
    rows = ["| model | mode | setup | ms | ratio | waits | groups | same bits |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    same = True
    for model in options.models:
        for mode in options.modes:
            more, equal = compare(model, mode, options)
            rows += more
            same &= equal
    print("\n".join(rows))
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
