# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads that train the same variables, at once or in turn.

At once, beside others that read, assign and fail: a step's own count lies between the steps that
had ended before it began and those that have begun when it ends, which is checked of each, and of
all that others read.

In turn there is one order of steps, whose every bit is known: the same steps are done by one thread
with functions that are not captured, on variables of their own.
"""

import contextlib
import dataclasses
import gc
import itertools
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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

# The most steps that a thread does in its turn.
TURN = 12
# Weights of the kinds of actions: mostly steps.
KINDS = {"step": 94, "assign": 2, "fail": 2, "read": 1.5, "restore": 0.5}

Action = tuple[Any, ...]


class Callables:
    """The functions of some variables, in the ways in which they are called."""

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
        try:
            self.fail(*FAILING[kind])
        except tf.errors.InvalidArgumentError:
            return True
        return False


@dataclasses.dataclass
class Together:
    """Trains from several threads for a number of steps, and checks all that is read meanwhile.

    Attributes:
        problems: what is wrong.
        counts: of what was done, by name.
    """

    callables: Callables  # what is called
    threads: int  # how many train; one reads and one disturbs beside them
    functions: Sequence[int]  # numbers of the functions that are called
    inputs: Sequence[int]  # numbers of the inputs
    seed: str  # of what the threads draw
    failing: set[str]  # the kinds of `FAILING` that fail without capture
    pace: float  # seconds between two reads, and between two disturbing actions

    def __post_init__(self) -> None:
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.failed_of = [0, 0]  # how often `fail` was called, and did not fail
        # Below, a row for each training thread, and one for the disturbing thread.
        rows = self.threads + 1
        shape = len(self.callables.serve), len(self.callables.inputs)
        self.calls = np.zeros([rows, *shape], np.int64)
        self._begun, self._done = [0] * rows, [0] * rows
        self._ended = threading.Event()
        self._kept: tuple[Any, np.ndarray] | None = None

    @property
    def done(self) -> int:
        return sum(self._done)

    def run(self, steps: int, deadline: float, watch: Callable[[], None]) -> None:
        """Runs about so many steps; none begins after the deadline, of time.monotonic()."""
        blocks = itertools.count()

        def trains(number: int, draw: random.Random) -> None:
            while (
                next(blocks) * BLOCK < steps and time.monotonic() < deadline and not self.problems
            ):
                self.train(number, draw)

        def again(action: Callable[[random.Random], None], draw: random.Random) -> None:
            while not self._ended.wait(self.pace):
                action(draw)

        def guarded(name: object, function: Callable[..., None], what: object) -> None:
            try:
                with tf.device(GPU):
                    function(what, random.Random(f"{self.seed}:{name}"))
            except Exception:
                self.problems.append(traceback.format_exc(limit=4))

        with ThreadPoolExecutor(self.threads + 2) as executor:
            training = [executor.submit(guarded, i, trains, i) for i in range(self.threads)]
            besides = (("reads", self.read), ("disturbs", self.disturb))
            others = [executor.submit(guarded, name, again, action) for name, action in besides]
            for running in (training, others):
                while wait(running, 0.05).not_done:
                    watch()
                self._ended.set()
        self.check_end()

    def train(self, number: int, draw: random.Random) -> None:
        callables = self.callables
        for _ in range(BLOCK):
            function, given = draw.choice(self.functions), draw.choice(self.inputs)
            if draw.random() < CALLED:
                self._begun[number] += 1
                callables.call[function](*callables.on_gpu[given])
                self._count(number, function, given)
            else:
                self._serve(callables.serve[function], number, function, given)

    def _serve(self, serve: Callable[..., Any], number: int, function: int, given: int) -> None:
        """A step that returns its count, which is checked."""
        least, each = sum(self._done) + 1, self.callables.inputs[given]
        self._begun[number] += 1
        result = serve(each.x, each.ids)
        self._check("a step's count", result[:COPIES], least)
        if not np.isfinite(result[COPIES]):
            self.problems.append(f"a step gives {result[COPIES]}")
        self._count(number, function, given)

    def _count(self, number: int, function: int, given: int) -> None:
        self.calls[number, function, given] += 1
        self._done[number] += 1

    def _check(self, what: str, values: np.ndarray, least: float | None = None) -> None:
        """Checks that all numbers are the same one, and where it may be."""
        most = sum(self._begun)
        if values.tobytes() != values[:1].tobytes() * len(values):
            self.problems.append(f"{what} is torn: {values.tolist()}")
        elif least is not None and not least <= values[0] <= most:
            self.problems.append(f"{what} is {values[0]}, and has to be from {least} to {most}")
        elif values[0] != np.floor(values[0]):
            self.problems.append(f"{what} is {values[0]}, which is no whole number")

    def read(self, draw: random.Random) -> None:
        """Reads by a function, or a variable alone; one thread may call it at a time."""
        variables = self.callables.variables
        if self._kept is not None and np.any(self._kept[0].numpy() != self._kept[1]):
            self.problems.append(f"a value that was {self._kept[1]} is {self._kept[0].numpy()}")
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
        found, count64 = self.callables.look()
        self.counts["captured_reads"] += 1
        self._check("the count that is read", found[:COPIES], least)
        self._check("the 64-bit count that is read", count64, least)
        self._check("the variable that is assigned", found[COPIES:])

    def disturb(self, draw: random.Random) -> None:
        """Assigns, restores, fails or calls a new function; one thread may call it at a time."""
        variables, number = self.callables.variables, self.threads
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
            given = draw.choice(self.inputs)
            for _ in range(5):
                self._serve(serve, number, function, given)
            del serve
            gc.collect()
            self.counts["functions_dropped"] += 1

    def _fail(self, kind: str) -> None:
        fails = self.callables.fails(kind)
        self.failed_of[0] += 1
        self.failed_of[1] += not fails
        self.counts["errors"] += fails
        if fails != (kind in self.failing):
            says = "fails, and does not" if fails else "does not fail, and does"
            self.problems.append(f"a step with {kind} {says} without capture")

    def check_end(self) -> None:
        """Reads the variables once more, and compares them with their expected values.

        All steps have ended. Every round reads here, also one that was too short for a read beside
        its steps.
        """
        with tf.device(GPU):
            self._look(sum(self._done))
        if self.problems:
            return  # failed steps may or may not have counted
        calls = self.calls.sum(axis=0)
        for name, found, right in self.callables.variables.exact(
            calls, self.callables.inputs, self.failed_of, self.counts["assign_adds"]
        ):
            if not np.array_equal(found, right):
                off = np.unique(found - right)
                self.problems.append(
                    f"{name} is off by {off[:5].tolist()} after {calls.sum()} steps"
                )
            if name == "count":
                self.counts["lost"] += int(np.abs(right - found).max())


def draw_actions(
    seed: str, steps: int, functions: Sequence[int], inputs: Sequence[int]
) -> list[Action]:
    """Draws what is done, in order, with these functions and inputs; so many actions are steps."""
    draw = random.Random(seed)
    arguments: dict[str, Callable[[], Action]] = {
        "step": lambda: (draw.choice(functions), draw.choice(inputs), draw.random() < 0.3),
        "assign": lambda: (draw.random(), draw.randint(-3, 3)),
        "fail": lambda: (draw.choice(list(FAILING)),),
        "read": lambda: (draw.random(),),
        "restore": lambda: (),
    }
    actions: list[Action] = []
    while steps:
        (kind,) = draw.choices(list(KINDS), list(KINDS.values()))
        steps -= kind == "step"
        actions.append((kind, *arguments[kind]()))
    return actions


class Side:
    """Variables, and the values that were read from them."""

    def __init__(self, callables: Callables) -> None:
        self._callables = callables
        self._variables = callables.variables
        self._kept: Any = None
        self.results: list[tuple[Action, Any]] = []

    def do(self, action: Action) -> None:
        kind, *rest = action
        self.results.append((action, getattr(self, f"_{kind}")(*rest)))

    def _step(self, function: int, given: int, called: bool) -> Any:
        if called:
            result = self._callables.call[function](*self._callables.on_gpu[given])
            return result.numpy().tobytes()
        each = self._callables.inputs[given]
        return self._callables.serve[function](each.x, each.ids).tobytes()

    def _assign(self, which: float, scale: int) -> None:
        """Assigns the start times a number to one of the variables, also to a slot."""
        i = int(which * len(self._variables.all))
        value = self._variables.start[i]
        self._variables.all[i].assign(value * tf.cast(scale, value.dtype))

    def _fail(self, kind: str) -> bool:
        return bool(self._callables.fails(kind))

    def _read(self, which: float) -> bytes:
        """Reads a variable and keeps the value, which must be the same at the next read."""
        variables = self._variables.all
        last = self._kept.numpy().tobytes() if self._kept is not None else b""
        self._kept = variables[int(which * len(variables))].read_value()
        return last

    def _restore(self) -> None:
        self._variables.restart(restore=True)


def in_turn(
    actions: Sequence[Action], threads: int, seed: str, do: Callable[[Action], None]
) -> str:
    """Does all actions, in order, in turns of threads; returns the problem, empty for none."""
    draw = random.Random(seed)

    def turn(mine: Sequence[Action]) -> str:
        try:
            with tf.device(GPU):
                for action in mine:
                    do(action)
        except Exception:
            return traceback.format_exc(limit=4)
        return ""

    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(threads)]
        done = 0
        while done < len(actions):
            count = draw.randint(1, TURN)
            worker = workers[draw.randrange(threads)]
            if problem := worker.submit(turn, actions[done : done + count]).result():
                return problem
            done += count
    return ""


def compare(
    captured: Callables,
    plain: Callables,
    actions: Sequence[Action],
    threads: int,
    seed: str,
    problems: list[str],
) -> None:
    """Does the actions on both, in turns of threads on `captured`, and compares all results."""
    sides = Side(captured), Side(plain)
    for callables in (captured, plain):
        callables.variables.restart(restore=False)
    if error := in_turn(actions, threads, seed, sides[0].do):
        problems.append(f"in order: {error}")
        return
    with tf.device(GPU):
        for action in actions:
            sides[1].do(action)
    for i, ((action, found), (_, right)) in enumerate(
        zip(sides[0].results, sides[1].results, strict=True)
    ):
        if found != right:
            name = captured.variables.function_names[action[1]] if action[0] == "step" else ""
            what = f"step {name}" if name else str(action)
            problems.append(f"in order: action {i} of {len(actions)}, {what}: another result")
            break
    values = (callables.variables.values() for callables in (captured, plain))
    for variable, found, right in zip(captured.variables.all, *values, strict=True):
        if found.tobytes() != right.tobytes():
            problems.append(
                f"in order: after {len(actions)} actions {np.sum(found != right)} of"
                f" {found.size} elements of {variable.name} {list(found.shape)} differ"
            )
