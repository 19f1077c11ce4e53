# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads that train the same variables at once, beside others that read, assign and fail.

A step's own count lies between the steps that had ended before it began and those that have begun
when it ends: that is checked of each, and of all that others read.
"""

from __future__ import annotations

import gc
import itertools
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from updated_variables import COPIES, GPU, TABLE_ROWS, Input, Variables

# Steps that a thread runs at a time.
BLOCK = 32
# Of the calls, those by tf.function, whose results stay on the GPU; others are serving callables.
CALLED = 0.2
GIVEN = 1000  # assigned values are multiples of this
# Arguments of `fail`: good ones, matrices that do not fit, rows that are not there.
LEFT, RIGHT = np.ones([4, 3], np.float32), np.ones([3, 2], np.float32)
FAILING = {
    "good": (LEFT, RIGHT, np.arange(3)),
    "matrices": (LEFT, np.ones([5, 2], np.float32), np.arange(3)),
    "rows": (LEFT, RIGHT, np.arange(3) + TABLE_ROWS),
}


class Problems:
    """What is wrong, of which a few are kept."""

    def __init__(self) -> None:
        self.number = 0
        self.examples: list[str] = []
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        """Counts one."""
        with self._lock:
            self.number += 1
            if len(self.examples) < 10:
                self.examples.append(text)

    def take(self) -> str:
        """Removes and returns the oldest problem that is kept; empty if there is none."""
        with self._lock:
            return self.examples.pop(0) if self.examples else ""


class Callables:
    """The functions of some variables, in the ways in which they are called.

    Args:
        variables: with the functions.
        inputs: what the functions take.
    """

    def __init__(self, variables: Variables, inputs: Sequence[Input]) -> None:
        self.variables, self.inputs = variables, inputs
        functions = variables.functions
        with tf.device(GPU):
            self.serve = [tf.cuda.serving_callable(function) for function in functions]
            self.call = [function.get_concrete_function() for function in functions]
            self.fail = tf.cuda.serving_callable(variables.fail)
            self.look = tf.cuda.serving_callable(variables.look)
            self.on_gpu = [(tf.constant(each.x), tf.constant(each.ids)) for each in inputs]

    def warm_up(self) -> None:
        """Calls each function once, which optimizes its graph, and goes back to the start."""
        for serve, call in zip(self.serve, self.call, strict=True):
            with tf.device(GPU):
                serve(self.inputs[0].x, self.inputs[0].ids)
                call(*self.on_gpu[0])
        self.variables.restart(restore=False)

    def fails(self, kind: str) -> bool:
        """Calls `fail`; returns whether it has."""
        try:
            self.fail(*FAILING[kind])
        except tf.errors.InvalidArgumentError:
            return True
        return False


class Together:
    """Trains from several threads for a number of steps, and checks all that is read meanwhile.

    Args:
        callables: what is called.
        threads: how many train; one reads and one disturbs beside them.
        functions: numbers of the functions that are called.
        inputs: numbers of the inputs.
        seed: of what the threads draw.
        failing: the kinds of `FAILING` that fail without capture.
        pace: seconds between two reads, and between two disturbing actions.
    """

    def __init__(
        self,
        callables: Callables,
        threads: int,
        functions: Sequence[int],
        inputs: Sequence[int],
        seed: str,
        failing: set[str],
        pace: float,
    ) -> None:
        self.problems = Problems()
        self.counts: Counter[str] = Counter()
        self.failed_of = [0, 0]  # how often `fail` was called, and did not fail
        self._callables = callables
        self._threads = threads
        self._functions, self._inputs = functions, inputs
        self._seed = seed
        self._failing = failing
        self._pace = pace
        # Below, a row for each training thread, and one for the disturbing thread.
        self.calls = np.zeros([threads + 1, len(callables.serve), len(callables.inputs)], np.int64)
        self._begun = [0] * (threads + 1)
        self._done = [0] * (threads + 1)
        self._ended = threading.Event()
        self._kept: tuple[Any, np.ndarray] | None = None

    @property
    def done(self) -> int:
        """Steps that have ended."""
        return sum(self._done)

    def run(self, steps: int, deadline: float, watch: Callable[[], None]) -> None:
        """Runs the threads.

        Args:
            steps: of all threads together, about.
            deadline: of time.monotonic(), after which no more are begun.
            watch: is called now and then.
        """
        blocks = itertools.count()

        def trains(number: int, draw: random.Random) -> None:
            while (
                next(blocks) * BLOCK < steps
                and time.monotonic() < deadline
                and not self.problems.number
            ):
                self.train(number, draw)

        def again(action: Callable[[random.Random], None]) -> Callable[..., None]:
            def beside(_: object, draw: random.Random) -> None:
                while not self._ended.wait(self._pace):
                    action(draw)

            return beside

        def start(function: Callable[..., None], name: object) -> threading.Thread:
            def guarded() -> None:
                try:
                    with tf.device(GPU):
                        function(name, random.Random(f"{self._seed}:{name}"))
                except Exception:
                    self.problems.add(traceback.format_exc(limit=4))

            thread = threading.Thread(target=guarded, daemon=True)
            thread.start()
            return thread

        def wait(threads: Sequence[threading.Thread]) -> None:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.05)
                    watch()

        training = [start(trains, number) for number in range(self._threads)]
        others = [start(again(self.read), "reads"), start(again(self.disturb), "disturbs")]
        wait(training)
        self._ended.set()
        wait(others)
        self.check_end()

    def train(self, number: int, draw: random.Random) -> None:
        """A block of steps."""
        callables = self._callables
        for _ in range(BLOCK):
            function, given = draw.choice(self._functions), draw.choice(self._inputs)
            if draw.random() < CALLED:
                self._begun[number] += 1
                callables.call[function](*callables.on_gpu[given])
                self._count(number, function, given)
            else:
                self._serve(callables.serve[function], number, function, given)

    def _serve(self, serve: Callable[..., Any], number: int, function: int, given: int) -> None:
        """A step that returns its count, which is checked."""
        least, each = sum(self._done) + 1, self._callables.inputs[given]
        self._begun[number] += 1
        result = serve(each.x, each.ids)
        self._check("a step's count", result[:COPIES], least)
        if not np.isfinite(result[COPIES]):
            self.problems.add(f"a step gives {result[COPIES]}")
        self._count(number, function, given)

    def _count(self, number: int, function: int, given: int) -> None:
        self.calls[number, function, given] += 1
        self._done[number] += 1

    def _check(self, what: str, values: np.ndarray, least: float | None = None) -> None:
        """Checks that all numbers are the same one, and where it may be."""
        most = sum(self._begun)
        if values.tobytes() != values[:1].tobytes() * len(values):
            self.problems.add(f"{what} is torn: {values.tolist()}")
        elif least is not None and not least <= values[0] <= most:
            self.problems.add(f"{what} is {values[0]}, and has to be from {least} to {most}")
        elif values[0] != np.floor(values[0]):
            self.problems.add(f"{what} is {values[0]}, which is no whole number")

    def read(self, draw: random.Random) -> None:
        """Reads by a function, or a variable alone; one thread may call it at a time."""
        variables = self._callables.variables
        if self._kept is not None and np.any(self._kept[0].numpy() != self._kept[1]):
            self.problems.add(f"a value that was {self._kept[1]} is {self._kept[0].numpy()}")
        self._kept = None
        least = sum(self._done)
        if draw.random() < 0.8:
            self._look(least)
        elif draw.random() < 0.5:
            self._check("the count that is read alone", variables.count.numpy(), least)
        else:
            # The kept value's memory must not be given to a recording until the next read.
            value = variables.count.read_value()
            self._kept = value, value.numpy().copy()
        self.counts["reads"] += 1

    def _look(self, least: int) -> None:
        found, count64 = self._callables.look()
        self.counts["captured_reads"] += 1
        self._check("the count that is read", found[:COPIES], least)
        self._check("the 64-bit count that is read", count64, least)
        self._check("the variable that is assigned", found[COPIES:])

    def disturb(self, draw: random.Random) -> None:
        """Assigns, restores, fails or calls a new function; one thread may call it at a time."""
        variables, number = self._callables.variables, self._threads
        kind = draw.random()
        if kind < 0.4:
            variables.given.assign(tf.fill([COPIES], float(GIVEN * draw.randint(-999, 999))))
            self.counts["assigns"] += 1
        elif kind < 0.5:
            variables.restore_given()
            self.counts["restores"] += 1
        elif kind < 0.6:
            self._begun[number] += 1
            variables.count64.assign_add(tf.ones([4], tf.int64))
            variables.count.assign_add(tf.ones([COPIES]))
            self._done[number] += 1
            self.counts["assign_adds"] += 1
        elif kind < 0.99:
            self._fail(draw.choice(list(FAILING)))
        else:
            # Tracing the other functions takes long.
            name = draw.choice(("sgd", "rows", "momentum"))
            function = variables.function_names.index(name)
            serve = tf.cuda.serving_callable(variables.new_function(function))
            given = draw.choice(self._inputs)
            for _ in range(5):
                self._serve(serve, number, function, given)
            del serve
            gc.collect()
            self.counts["functions_dropped"] += 1

    def _fail(self, kind: str) -> None:
        fails = self._callables.fails(kind)
        self.failed_of[0] += 1
        self.failed_of[1] += not fails
        self.counts["errors"] += fails
        if fails != (kind in self._failing):
            says = "fails, and does not" if fails else "does not fail, and does"
            self.problems.add(f"a step with {kind} {says} without capture")

    def check_end(self) -> None:
        """Reads the variables once more, and compares them with their expected values.

        All steps have ended. Every round reads here, also one that was too short for a read beside
        its steps.
        """
        with tf.device(GPU):
            self._look(sum(self._done))
        if self.problems.number:
            return  # failed steps may or may not have counted
        calls = self.calls.sum(axis=0)
        for name, found, right in self._callables.variables.exact(
            calls, self._callables.inputs, self.failed_of, self.counts["assign_adds"]
        ):
            if not np.array_equal(found, right):
                off = np.unique(found - right)
                self.problems.add(f"{name} is off by {off[:5].tolist()} after {calls.sum()} steps")
            if name == "count":
                self.counts["lost"] += int(np.abs(right - found).max())
