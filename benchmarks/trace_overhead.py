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
"""What does a trace cost while it is on?

Client threads query one model on stream groups, without `tf.cuda.trace` and with it, in turn.

    TF_GPU_STREAM_GROUP_COUNT=8 python benchmarks/trace_overhead.py --threads 8 --rounds 5

Prints a row for each: calls a second, the median of the rounds, with the lowest and the highest;
and what share of the calls a second is left with the trace. Results are compared with those of one
thread. Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing.

Exit status: 0; 1 if a result was wrong; 2 if the command line is not understood.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from client_threads import run_checked
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from frozen_model import MODEL, FrozenModel
from option_types import whole

COLUMNS = "trace,threads,calls_per_second,lowest,highest"
INPUTS = 8
BATCH = 16


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", default=str(MODEL), help="a frozen graph [a small recommender]")
    parser.add_argument("--threads", type=whole(1, 256), default=8, help="that query [8]")
    parser.add_argument("--rounds", type=whole(1, 100), default=5, help="of both [5]")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement [1]")
    options = parser.parse_args(arguments)
    if not 0 < options.seconds <= 600:
        parser.error(f"--seconds {options.seconds}: above 0, at most 600")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    model = FrozenModel(options.model)
    inputs = model.inputs(BATCH, INPUTS)

    def call(ids: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(tf.constant(ids)))

    expected = [call(ids).tobytes() for ids in inputs]
    run = functools.partial(run_checked, call, inputs, expected, options.threads)
    run(options.seconds)  # warms up
    rates: dict[str, list[float]] = {"off": [], "on": []}
    wrong = 0
    events = queries = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        for _ in range(options.rounds):
            for name, found in rates.items():
                with tf.cuda.trace(path) if name == "on" else contextlib.nullcontext():
                    load, bad = run_checked(
                        call, inputs, expected, options.threads, options.seconds
                    )
                found.append(load.calls_per_second)
                wrong += bad
            queries += load.calls
            events += len(json.loads(path.read_text(encoding="utf-8"))["traceEvents"])
    print(COLUMNS)
    for name, found in rates.items():
        figures = statistics.median(found), min(found), max(found)
        print(name, options.threads, *(f"{figure:.0f}" for figure in figures), sep=",")
    left = statistics.median(on / off for off, on in zip(rates["off"], rates["on"], strict=True))
    print(f"with the trace {left:.0%} of the calls a second are left")
    print(f"{events / queries:.0f} events a call")
    if wrong:
        print(f"{wrong} results are not those of one thread", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
