# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains the same variables from many threads with captured steps: is any update lost?

Each round draws from the seed 2 to 8 threads, functions (gradient descent, momentum, Adagrad, Adam,
Keras's optimizers, scattered updates, loops) and numbers of rows, all on the same variables. Beside
them variables are read, assigned and restored from checkpoints, values are kept, steps fail,
functions are made and dropped, and recordings are evicted. All counts have to be exact, each value
that is read whole and in order. A part of each round has one order of steps, done by threads in
turn: results and variables have the bits of one thread's without capture.

    python benchmarks/soundness/captured_updates.py             # an emulated GPU: a few seconds
    python benchmarks/soundness/captured_updates.py --gpu --steps 10000000 --seed 1

Variables of TensorFlow's that are not set are drawn from the seed. Prints a line of JSON at the
end; runs with other seeds add up.

Exit status: 0; 1 if anything is wrong, fails or hangs; 2 if the command line is not understood.
"""

import argparse
import faulthandler
import gc
import json
import os
import pathlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from programs import end, verdict, whole

HANG_SECONDS = 180
EXAMPLES = 10  # of what is wrong, of a round
# Switches of memory and threads; each is on in a fourth of the runs.
SWITCHES = (
    "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL",
    "TF_GPU_STREAM_AWARE_BFC",
    "TF_PER_STREAM_HOST_ALLOCATOR",
)
# Pause between two disturbing actions: often, so that hardly a step is replayed, or rarely.
PACES = (0.002, 0.02, 0.05, 0.2)
# Steps done in order, as a fraction of a round's other steps.
ORDERED, FEWEST_ORDERED, MOST_ORDERED = 0.02, 50, 3000


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--gpu", action="store_true", help="use the GPU, not an emulated one")
    add("--steps", type=whole(1, 10**9), default=4000, help="of training, in all [4000]")
    add("--minutes", type=float, default=float("inf"), help="end after them [do all steps]")
    add("--seed", type=whole(0, 10**9), default=1, help="draws everything [1]")
    add("--round-steps", type=whole(1, 10**6), default=100_000, help="of a round [100000]")
    return parser.parse_args(arguments)


def set_environment(options: argparse.Namespace) -> None:
    """Draws the variables that are not set, before TensorFlow is imported."""
    draw = random.Random(f"{options.seed}:environment")
    drawn = {
        "TF_GPU_STREAM_GROUP_COUNT": draw.choice("1248"),
        "TF_MULTI_STREAM_CAPTURE": "auto",
        # With so little memory, recordings are evicted all the time.
        "TF_MULTI_STREAM_CAPTURE_MB": draw.choice("12"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    if options.gpu:
        drawn["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    else:
        drawn["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
    drawn.update({name: "true" for name in SWITCHES if draw.random() < 0.25})
    for name, value in drawn.items():
        os.environ.setdefault(name, value)


def rates_of(of_seconds: list[float]) -> Callable[[int], None]:
    """Makes what is told how many steps of a round have been done.

    It notes the steps of each second but for the first. A process that hangs is ended, after it
    has written where its threads are.
    """
    began = progress = time.monotonic()
    counted = seen = 0
    first = True

    def watch(done: int) -> None:
        nonlocal began, progress, counted, seen, first
        now = time.monotonic()
        if done != seen:
            progress, seen = now, done
        elif now - progress > HANG_SECONDS:
            print(f"no step has ended for {HANG_SECONDS} s", file=sys.stderr, flush=True)
            faulthandler.dump_traceback()
            os._exit(1)
        if now - began >= 1.0:
            if not first:
                of_seconds.append((done - counted) / (now - began))
            began, counted, first = now, done, False

    return watch


class Run:
    """All rounds of a process, with a folder for checkpoints."""

    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        # Once the environment has been set.
        import updated_variables  # noqa: PLC0415
        import updating_threads  # noqa: PLC0415

        self._options = options
        self._deadline = time.monotonic() + 60 * options.minutes
        inputs = updated_variables.make_inputs(options.seed)
        self._inputs_of_rows = updated_variables.INPUTS
        self._captured, self._plain = (
            updating_threads.Callables(updated_variables.Variables(mode, folder), inputs)
            for mode in ("auto", "off")
        )
        self._failing = {k for k in updating_threads.FAILING if self._plain.fails(k)}
        for side in (self._captured, self._plain):
            side.warm_up()
        # Dropping a function collects garbage; freeze keeps the collector off the objects of now.
        gc.collect()
        gc.freeze()
        self._rates: list[float] = []
        self.counts: Counter[str] = Counter(lost=0, errors=0)
        self.problems: list[str] = []

    def run(self) -> None:
        """Runs rounds until all steps are done, or time is up, or something is wrong."""
        while (
            self.counts["steps"] < self._options.steps
            and (time.monotonic() < self._deadline or not self.counts["rounds"])
            and not self.problems
        ):
            self._round(self.counts["rounds"])
            self.counts["rounds"] += 1

    def _round(self, number: int) -> None:
        import updating_threads  # noqa: PLC0415

        seed = f"{self._options.seed}:{number}"
        draw = random.Random(seed)
        threads = draw.randint(2, 8)
        names = self._captured.variables.function_names
        functions = sorted(draw.sample(range(len(names)), draw.randint(3, len(names))))
        rows = len(self._captured.inputs) // self._inputs_of_rows
        chosen = draw.sample(range(rows), draw.randint(2, rows))
        inputs = [r * self._inputs_of_rows + i for r in chosen for i in range(self._inputs_of_rows)]
        restore = draw.random() < 0.5
        pace = draw.choice(PACES)
        steps = min(self._options.round_steps, self._options.steps - self.counts["steps"])
        print(
            f"round {number}: {threads} threads, {len(chosen)} batch sizes, pace {pace} s,"
            f" {', '.join(names[f] for f in functions)}",
            file=sys.stderr,
            flush=True,
        )
        self._captured.variables.restart(restore)
        together = updating_threads.Together(
            self._captured, threads, functions, inputs, seed, self._failing, pace
        )
        watch = rates_of(self._rates)
        together.run(steps, self._deadline, lambda: watch(together.done))
        self.counts.update(together.counts)
        self.counts["steps"] += int(together.calls.sum())
        problems = together.problems
        if not problems:
            ordered = max(FEWEST_ORDERED, min(MOST_ORDERED, int(ORDERED * together.done)))
            actions = updating_threads.draw_actions(seed, ordered, functions, inputs)
            updating_threads.compare(self._captured, self._plain, actions, threads, seed, problems)
            self.counts["steps_in_order"] += ordered
        self.counts["wrong"] += len(problems)
        self.problems += [f"seed {seed}: {problem}" for problem in problems[:EXAMPLES]]

    def report(self) -> dict[str, Any]:
        import tensorflow as tf  # noqa: PLC0415
        from served import least_median_most, total  # noqa: PLC0415

        replayed, made = total("steps_replayed"), total("recordings_made")
        settings = ("TF_GPU_STREAM_GROUP_COUNT", "TF_MULTI_STREAM_CAPTURE_MB", *SWITCHES)
        gpu = tf.config.list_physical_devices("GPU")[0]
        return {
            "seed": self._options.seed,
            "gpu": tf.config.experimental.get_device_details(gpu).get("device_name", "emulated"),
            "settings": {name: os.environ[name] for name in settings if name in os.environ},
            **self.counts,
            "replayed": replayed,
            "replayed_of_all_steps": round(replayed / max(1, total("steps_started")), 4),
            "replayed_training_at_least": max(0, replayed - self.counts["captured_reads"]),
            "recordings_made": made,
            "recordings_evicted": made - total("recordings"),
            "steps_per_second": least_median_most(self._rates or [0.0]),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    set_environment(options)
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        run = Run(options, folder)
        run.run()
        seconds = round(time.monotonic() - began, 1)
    print(json.dumps({"seconds": seconds, **run.report()}), flush=True)
    return int(verdict(run.problems))


if __name__ == "__main__":
    end(main())
