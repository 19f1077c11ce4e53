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
    """Variables, and the values that were read from them.

    Args:
        callables: what is called.
    """

    def __init__(self, callables: Callables) -> None:
        self._callables = callables
        self._variables = callables.variables
        self._kept: Any = None
        self.results: list[tuple[Action, Any]] = []

    def do(self, action: Action) -> None:
        """Does the action, and notes its result."""
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
    # Of each turn the thread and the actions.
    turns: list[tuple[int, Sequence[Action]]] = []
    done = 0
    while done < len(actions):
        count = draw.randint(1, TURN)
        turns.append((draw.randrange(threads), actions[done : done + count]))
        done += count
    begins = [threading.Event() for _ in [*turns, None]]
    errors: list[str] = []

    def works(number: int) -> None:
        with tf.device(GPU):
            for turn, (thread, mine) in enumerate(turns):
                if thread != number:
                    continue
                begins[turn].wait()
                try:
                    for action in mine if not errors else ():
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
    sides = Side(captured), Side(plain)
    for callables in (captured, plain):
        callables.variables.restart(restore=False)
    if error := in_turn(actions, threads, seed, sides[0].do):
        problems.add(f"in order: {error}")
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
            problems.add(f"in order: action {i} of {len(actions)}, {what}: another result")
            break
    values = (callables.variables.values() for callables in (captured, plain))
    for variable, found, right in zip(captured.variables.all, *values, strict=True):
        if found.tobytes() != right.tobytes():
            problems.add(
                f"in order: after {len(actions)} actions {np.sum(found != right)} of"
                f" {found.size} elements of {variable.name} {list(found.shape)} differ"
            )
