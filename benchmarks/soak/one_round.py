# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""One round: works in this process as its plan says, and writes what came of it.

    python one_round.py PLAN.json

soak.py starts it. The plan names a file for the results of one stream: where `make_reference` is
true it is written, otherwise compared with. A line of JSON each second on stdout says how far the
round is.

Exit status: 0, or 3 if a worker hangs; wrong results are in the outcome, which is a file, too.
"""

import dataclasses
import faulthandler
import gc
import json
import os
import pathlib
import random
import sys
import threading
import time
from typing import Any, NoReturn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import ending  # noqa: F401 (defines kinds of work, as the other three do)
import exact  # noqa: F401
import numpy as np
import serving  # noqa: F401
import tensorflow as tf
import training  # noqa: F401
from draw import FAULTS, KINDS
from models import WORKS, Place, Work
from tally import Tally, flip_a_bit
from tensorflow.python.multistream import loader
from watcher import Sample, Watcher, take_sample, write_stacks

HANG_STATUS = 3


class Round:
    """The workers of a round that soak.py planned, and the watcher."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.place = Place(**plan["place"])
        self.stop = threading.Event()
        self.tallies: dict[str, Tally] = {}
        self.works: dict[str, Work] = {}
        self.began = self.ended = 0.0

    def prepare(self) -> None:
        """Makes the models, and compares each with one stream's before there is load."""
        with np.load(self.plan["reference"]) as file:
            reference = {name: file[name] for name in file.files}
        for kind in self.plan["workers"]:
            spoils = self.plan["break"] == "bit" and not self.tallies
            self.tallies[kind] = Tally(spoil=flip_a_bit(100) if spoils else np.asarray)
            of_kind = {
                name.removeprefix(f"{kind}/"): value
                for name, value in reference.items()
                if name.startswith(f"{kind}/")
            }
            self.works[kind] = WORKS[kind](self.place, of_kind)
            for name, value in self.works[kind].results().items():
                self.tallies[kind].verify(value, of_kind[name], f"{kind}, {name}, before load")

    def work(self, kind: str, number: int) -> None:
        worker, tally = f"{kind} {number}", self.tallies[kind]
        draw = random.Random(f"{self.plan['seed']}:{worker}")
        hangs = self.plan["break"] == "hang" and worker == f"{next(iter(self.tallies))} 0"
        self.watcher.note(worker)
        while not self.stop.is_set():
            try:
                self.works[kind].step(number, draw, tally)
            except Exception as error:  # any error is counted and reported
                if self.place.memory_mib and isinstance(error, tf.errors.ResourceExhaustedError):
                    tally.expected_error()
                else:
                    tally.unexpected(error)
                    time.sleep(0.1)
            if hangs:
                threading.Event().wait()
            self.watcher.note(worker)
        self.watcher.ended(worker)

    def hang(self, workers: list[str]) -> NoReturn:
        """Writes the stacks and statistics of a hang, and ends the process."""
        print(f"HANG: {'; '.join(workers)}", file=sys.stderr, flush=True)
        self.write_outcome([], [f"hang: {'; '.join(workers)}"])
        write_stacks(sys.stderr, tf.cuda.stream_stats)
        os._exit(HANG_STATUS)

    def run(self) -> None:
        self.prepare()
        # Dropping a model runs the garbage collector; freeze keeps it off the objects of now.
        gc.collect()
        gc.freeze()
        threads = [
            threading.Thread(target=self.work, args=(kind, i), name=f"{kind} {i}", daemon=True)
            for kind, count in self.plan["workers"].items()
            for i in range(count)
        ]
        self.began = time.monotonic()
        self.watcher = Watcher(
            self.plan["hang_seconds"],
            lambda: take_sample(tf.cuda.stream_stats),
            self.hang,
            self.say,
        )
        for thread in threads:
            thread.start()
        if self.plan["break"] in FAULTS:
            time.sleep(2)
            if not loader.library.TFMS_InjectTestFault(FAULTS[self.plan["break"]], 1000):
                raise RuntimeError("the runtime takes no fault")
        time.sleep(self.plan["seconds"])
        self.ended = time.monotonic()
        self.stop.set()
        for thread in threads:
            thread.join()
        self.watcher.stop()
        for work in self.works.values():
            work.close()
        self.write_outcome(self.watcher.samples, self.left_behind())

    def say(self, sample: Sample) -> None:
        """Prints the round's progress, for soak.py."""
        counts = [tally.snapshot() for tally in self.tallies.values()]
        line = {
            **{n: sum(getattr(c, n) for c in counts) for n in ("results", "wrong", "unexpected")},
            "resident_mib": sample.resident_mib,
            "threads": sample.threads,
        }
        print(json.dumps(line), flush=True)

    def left_behind(self) -> list[str]:
        """Reports steps and memory that should be gone when all work has ended."""
        deadline = time.monotonic() + self.plan["hang_seconds"]
        while (
            left := [g for g in tf.cuda.stream_stats() if g.steps_running or g.tensors_held]
        ) and time.monotonic() < deadline:
            time.sleep(0.1)
        problems = [
            f"group {group.group} has {group.steps_running} steps running and holds"
            f" {group.tensors_held} tensors after all work has ended"
            for group in left
        ]
        if reports := loader.library.TFMS_SanitizerReports():
            problems.append(f"the stream sanitizer has {reports} reports")
        return problems

    def write_outcome(self, samples: list[Sample], problems: list[str]) -> None:
        groups = [group for group in tf.cuda.stream_stats() if group.gpu == 0]
        outcome = {
            "counts": {k: dataclasses.asdict(t.snapshot()) for k, t in self.tallies.items()},
            "samples": [dataclasses.asdict(sample) for sample in samples],
            "problems": problems,
            "load": (self.began, self.ended or time.monotonic()),
            "steps_of_groups": [group.steps_started for group in groups],
            "peak_bytes_of_groups": [group.peak_bytes_in_use for group in groups],
        }
        pathlib.Path(self.plan["outcome"]).write_text(json.dumps(outcome))


def make_reference(plan: dict[str, Any]) -> None:
    """Writes the results of one stream, in a process that has no other."""
    if tf.cuda.stream_group_count() != 1:
        raise RuntimeError("the process that makes the reference has several stream groups")
    place = Place(**plan["place"])
    results = {}
    for kind in plan["workers"]:
        work = WORKS[kind](place, {})
        results.update({f"{kind}/{name}": value for name, value in work.results().items()})
        work.close()
    np.savez(plan["reference"], **results)


def main() -> None:
    """Reads the plan, and does it."""
    faulthandler.enable()  # SIGABRT from soak.py shows where this process is
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    tf.get_logger().setLevel("ERROR")
    if not tf.config.list_physical_devices("GPU"):
        raise SystemExit("TensorFlow finds no GPU; leave --gpu out for an emulated one")
    if "nested_calls" in plan["workers"]:
        # A thread for each call that blocks one, and enough for the inner calls.
        tf.config.threading.set_inter_op_parallelism_threads(4 * KINDS["nested_calls"])
    if limit := plan["place"]["memory_mib"]:
        # The devices are made now, with this limit for all groups; sessions then use them.
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("GPU")[0],
            [tf.config.LogicalDeviceConfiguration(memory_limit=limit)],
        )
        tf.config.list_logical_devices("GPU")
    if plan["make_reference"]:
        make_reference(plan)
    else:
        Round(plan).run()
    # The process is not to wait for Python's clean-up of what TensorFlow's threads still use.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
