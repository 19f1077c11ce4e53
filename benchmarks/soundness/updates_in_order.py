# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads that train in turn: one order of steps, whose every bit is known.

The same steps are done by one thread with functions that are not captured, on variables of their
own.
"""

from __future__ import annotations

import random
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from updated_variables import GPU
from updating_threads import FAILING, Callables, Problems

# The most steps that a thread does in its turn.
TURN = 12
# Weights of the kinds of actions: mostly steps.
KINDS = {"step": 94, "assign": 2, "fail": 2, "read": 1.5, "restore": 0.5}

Action = tuple[Any, ...]


def draw_actions(
    seed: str, steps: int, functions: Sequence[int], inputs: Sequence[int]
) -> list[Action]:
    """Draws what is done, in order.

    Args:
        seed: the same draws the same.
        steps: how many of the actions are steps of training.
        functions: numbers of the functions to draw from.
        inputs: numbers of the inputs to draw from.
    """
    draw = random.Random(seed)
    actions: list[Action] = []
    while steps:
        (kind,) = draw.choices(list(KINDS), list(KINDS.values()))
        if kind == "step":
            steps -= 1
            called = draw.random() < 0.3
            actions.append((kind, draw.choice(functions), draw.choice(inputs), called))
        elif kind == "assign":
            actions.append((kind, draw.random(), draw.randint(-3, 3)))
        elif kind == "fail":
            actions.append((kind, draw.choice(list(FAILING))))
        elif kind == "read":
            actions.append((kind, draw.random()))
        else:
            actions.append((kind,))
    return actions


class Side:
    """Variables, and the values that were read from them.

    Args:
        callables: what is called.
    """

    def __init__(self, callables: Callables) -> None:
        self._callables = callables
        self._kept: Any = None
        self.results: list[tuple[Action, Any]] = []

    def do(self, action: Action) -> None:
        """Does the action, and notes its result."""
        kind, *rest = action
        self.results.append((action, getattr(self, f"_{kind}")(*rest)))

    def values(self) -> list[np.ndarray]:
        """All variables."""
        return list(self._callables.variables.values())

    def _step(self, function: int, given: int, called: bool) -> Any:
        if called:
            result = self._callables.call[function](*self._callables.on_gpu[given])
            return result.numpy().tobytes()
        each = self._callables.inputs[given]
        return self._callables.serve[function](each.x, each.ids).tobytes()

    def _assign(self, which: float, scale: int) -> None:
        """Assigns the start times a number to one of the variables, also to a slot."""
        variables = self._callables.variables
        i = int(which * len(variables.all))
        value = variables.start[i]
        variables.all[i].assign(value * tf.cast(scale, value.dtype))

    def _fail(self, kind: str) -> bool:
        return bool(self._callables.fails(kind))

    def _read(self, which: float) -> bytes:
        """Reads a variable and keeps the value, which must be the same at the next read."""
        variables = self._callables.variables.all
        last = self._kept.numpy().tobytes() if self._kept is not None else b""
        self._kept = variables[int(which * len(variables))].read_value()
        return last

    def _restore(self) -> None:
        self._callables.variables.restart(restore=True)


def in_turn(
    actions: Sequence[Action], threads: int, seed: str, do: Callable[[Action], None]
) -> str:
    """Does all of the actions, in order, each thread some of them in its turn.

    Args:
        actions: what to do.
        threads: how many threads; whose turn it is, is drawn at random.
        seed: seed of the turns.
        do: does one.

    Returns:
        The problems found.
    """
    draw = random.Random(seed)
    turns: list[tuple[int, int]] = []  # the thread, and the first action that is no more in it
    end = 0
    while end < len(actions):
        end = min(end + draw.randint(1, TURN), len(actions))
        turns.append((draw.randrange(threads), end))
    first = [0, *(end for _, end in turns)]
    mine = [[i for i, (thread, _) in enumerate(turns) if thread == t] for t in range(threads)]
    begins = [threading.Event() for _ in [*turns, None]]
    errors: list[str] = []

    def works(number: int) -> None:
        with tf.device(GPU):
            for turn in mine[number]:
                begins[turn].wait()
                try:
                    for action in actions[first[turn] : turns[turn][1]] if not errors else ():
                        do(action)
                except Exception:
                    errors.append(traceback.format_exc(limit=4))
                begins[turn + 1].set()

    workers = [threading.Thread(target=works, args=(i,), daemon=True) for i in range(threads)]
    for worker in workers:
        worker.start()
    begins[0].set()
    for worker in workers:
        worker.join()
    return errors[0] if errors else ""


def compare(
    captured: Callables,
    plain: Callables,
    actions: Sequence[Action],
    threads: int,
    seed: str,
    problems: Problems,
) -> None:
    """Does the actions on both, from the start, and compares each result and all variables.

    Args:
        captured: done by threads in turn.
        plain: done by this thread.
        actions: what to do.
        threads: how many.
        seed: seed of the turns.
        problems: collects the differences.
    """
    captured.variables.restart(restore=False)
    plain.variables.restart(restore=False)
    sides = Side(captured), Side(plain)
    if error := in_turn(actions, threads, seed, sides[0].do):
        problems.add(f"in order: {error}")
        return
    with tf.device(GPU):
        for action in actions:
            sides[1].do(action)
    found, right = (side.results for side in sides)
    for i, ((action, result), (_, expected)) in enumerate(zip(found, right, strict=True)):
        if result != expected:
            what = (
                f"{action[0]} {captured.variables.function_names[action[1]]}"
                if (action[0] == "step")
                else str(action)
            )
            problems.add(f"in order: action {i} of {len(actions)}, {what}: another result")
            break
    for variable, value, expected in zip(
        captured.variables.all, *(side.values() for side in sides), strict=True
    ):
        if value.tobytes() != expected.tobytes():
            problems.add(
                f"in order: after {len(actions)} actions {np.sum(value != expected)} of"
                f" {value.size} elements of {variable.name} {list(value.shape)} differ"
            )
