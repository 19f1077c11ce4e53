# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random programs, each a list of instructions drawn from a seed.

Every value is a [ROWS, COLUMNS] matrix of small numbers, so that every op may take every value.
"""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

ROWS, COLUMNS = 5, 7
SESSION_EVERY = 4  # one program in four runs in a session


def bounded(x: Any) -> Any:
    return tf.ensure_shape(tf.clip_by_value(x, -3.0, 3.0), [ROWS, COLUMNS])


def best_rows(a: Any) -> Any:
    """A row number for each row, computed from the values."""
    return tf.math.floormod(tf.cast(tf.argmax(a, 1), tf.int32), ROWS)


def weights(k: int) -> Any:
    return tf.constant(np.random.RandomState(k).randn(COLUMNS, COLUMNS).astype(np.float32) * 0.3)


def mask_rows(a: Any, b: Any) -> Any:
    rows = tf.boolean_mask(a, tf.reduce_sum(b, 1) > 0.0)
    return bounded(b + tf.reduce_sum(rows, 0))


def unique_rows(a: Any, b: Any) -> Any:
    values, index = tf.unique(best_rows(b))
    return tf.gather(tf.gather(a, values), index)


def through_python(a: Any) -> Any:
    return tf.ensure_shape(
        tf.numpy_function(lambda x: np.tanh(x[::-1]), [a], tf.float32), [ROWS, COLUMNS]
    )


def by_host_numbers(a: Any) -> Any:
    shape = tf.shape(a)
    index = tf.math.floormod(tf.range(shape[0]) * 3 + 1, shape[0])
    return tf.gather(a, index)


# Ops that take single rows as well as matrices.
ELEMENTWISE: dict[str, Callable[[Any, Any, int], Any]] = {
    "tanh": lambda a, b, k: tf.tanh(a),
    "sin": lambda a, b, k: tf.sin(a * float(k + 1)),
    "sigmoid": lambda a, b, k: tf.sigmoid(a),
    "relu": lambda a, b, k: tf.nn.relu(a) - 0.25,
    "scale": lambda a, b, k: a * (0.25 * k),
    "add": lambda a, b, k: tf.tanh(a + b),
    "sub": lambda a, b, k: tf.tanh(a - b),
    "mul": lambda a, b, k: tf.tanh(a * b),
    "max": lambda a, b, k: tf.maximum(a, b),
    "where": lambda a, b, k: tf.where(a > b, a, b * 0.5),
    "softmax": lambda a, b, k: tf.nn.softmax(a),
    "difference": lambda a, b, k: tf.clip_by_value(tf.math.squared_difference(a, b), -3.0, 3.0),
}

PLAIN: dict[str, Callable[[Any, Any, int], Any]] = {
    **ELEMENTWISE,
    "matmul": lambda a, b, k: bounded(tf.matmul(a, weights(k))),
    "outer": lambda a, b, k: bounded(tf.matmul(tf.matmul(a, b, transpose_b=True), b)),
    "reverse": lambda a, b, k: tf.reverse(a, [k % 2]),
    "roll": lambda a, b, k: tf.roll(a, k, 0),
    "cumsum": lambda a, b, k: bounded(tf.cumsum(a, k % 2)),
    "concat": lambda a, b, k: tf.concat([a, b], 0)[k : k + ROWS],
    "split": lambda a, b, k: tf.concat(tf.split(a, [2, 3, 2], 1)[::-1], 1),
    "mean": lambda a, b, k: a + tf.reduce_mean(b, k % 2, keepdims=True),
    "transpose": lambda a, b, k: tf.reshape(tf.transpose(a), [ROWS, COLUMNS]),
    "gather": lambda a, b, k: tf.gather(a, best_rows(b)),
    "segments": lambda a, b, k: bounded(tf.math.unsorted_segment_sum(a, best_rows(b), ROWS)),
    "mask": lambda a, b, k: mask_rows(a, b),
    "unique": lambda a, b, k: unique_rows(a, b),
    "text": lambda a, b, k: tf.strings.to_number(tf.strings.as_string(a, precision=4)),
    "python": lambda a, b, k: through_python(a),
    "numbers": lambda a, b, k: by_host_numbers(a),
    "random": lambda a, b, k: bounded(a + tf.random.stateless_normal([ROWS, COLUMNS], [k, 2])),
    "constant": lambda a, b, k: tf.fill([ROWS, COLUMNS], 0.5 * k) + a * 0.125,
}

NESTED = ("cond", "switch", "while", "while_until", "map", "array", "call")
STATE = ("read", "assign", "assign_add", "scatter")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One value of a program.

    Attributes:
      op: the op's name.
      inputs: numbers of earlier values.
      k: a small number; each op uses it differently.
      scopes: group (None: the next one) and include_grad, the outermost first.
      after: numbers of earlier values that control edges come from.
      bodies: programs of branches, loops and functions, whose first values are the inputs.
    """

    op: str
    inputs: tuple[int, ...]
    k: int
    scopes: tuple[tuple[int | None, bool], ...]
    after: tuple[int, ...]
    bodies: tuple["Program", ...] = ()


Program = tuple[Instruction, ...]


class Generator:
    """Makes a program from a seed, for a function or for a session.

    Equal seeds give equal programs. In a session, only the outermost program may use variables.
    """

    def __init__(self, seed: int, session: bool) -> None:
        self._random = random.Random(seed)
        self._session = session
        self._scopes: tuple[tuple[int | None, bool], ...] = ()

    def program(self, inputs: int, size: int, depth: int = 0) -> Program:
        return tuple(self._instruction(inputs + i, depth) for i in range(size))

    def _instruction(self, values: int, depth: int) -> Instruction:
        r = self._random
        kinds = [tuple(PLAIN)] * 12
        if depth < 2:
            kinds += [NESTED] * (4 - depth)
        if depth == 0 or not self._session:
            kinds.append(STATE)
        if depth == 0:
            kinds.append(("grad",))
        op = r.choice(r.choice(kinds))
        # Recent values more often, for long chains as well as wide graphs.
        inputs = tuple(values - 1 - min(r.randrange(values), r.randrange(values)) for _ in range(2))
        if op == "grad":
            inputs = (inputs[0], r.randrange(inputs[0] + 1))
        k = r.randrange(1, 5)
        scopes = self._next_scopes()
        after = tuple({r.randrange(values) for _ in range(r.choice([0, 0, 0, 1, 2]))})
        count = {"cond": 2, "switch": 3}.get(op, 1 if op in NESTED else 0)
        if op in ("map", "array"):
            bodies = tuple(self._row_program(r.randrange(1, 4)) for _ in range(count))
        else:
            bodies = tuple(self.program(2, r.randrange(1, 5), depth + 1) for _ in range(count))
        return Instruction(op, inputs, k, scopes, after, bodies)

    def _row_program(self, size: int) -> Program:
        r = self._random
        return tuple(
            Instruction(
                r.choice(tuple(ELEMENTWISE)),
                (r.randrange(i + 1), r.randrange(i + 1)),
                r.randrange(1, 5),
                self._next_scopes(),
                (),
            )
            for i in range(size)
        )

    def _next_scopes(self) -> tuple[tuple[int | None, bool], ...]:
        r = self._random
        if r.random() < 0.6:
            depth = r.choice([0, 1, 1, 1, 2])
            self._scopes = tuple(
                (r.choice([0, 1, 2, 3, 1, 2, 3, None]), r.random() < 0.8) for _ in range(depth)
            )
        return self._scopes
