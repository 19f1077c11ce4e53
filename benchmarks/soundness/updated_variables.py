# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The variables of captured_updates.py, and the functions that train them.

A function's sums are of whole numbers that a float holds exactly, so that each variable has one
right value for a number of calls of each function, whatever their order. Layers, which floats
train, have one for an order.
"""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

GPU = "/GPU:0"
WIDTH, COPIES, TABLE_ROWS, WIDE = 16, 32, 24, 2048
BATCHES = (1, 2, 4, 8, 12, 16, 24, 32)
INPUTS = 3  # of each number of rows
RATE = 0.001
SPECS = [tf.TensorSpec([None, WIDTH], name="x"), tf.TensorSpec([None], tf.int64, name="ids")]


@dataclasses.dataclass(frozen=True)
class Input:
    """The arguments of a step."""

    x: np.ndarray  # whole numbers, of each column of which the sum is small
    ids: np.ndarray  # rows of a table, of which some may be equal


def make_inputs(seed: int) -> list[Input]:
    """Draws inputs, `INPUTS` of each of the `BATCHES`."""
    draw = np.random.default_rng(seed)
    inputs = []
    for rows in np.repeat(BATCHES, INPUTS):
        x = draw.integers(-3, 4, [rows, WIDTH])
        x[-1] += draw.integers(-2, 3, WIDTH) - x.sum(axis=0)
        inputs.append(Input(x.astype(np.float32), draw.integers(0, TABLE_ROWS, rows)))
    return inputs


def _zeros(*shape: int, dtype: Any = tf.float32) -> Any:
    return tf.Variable(tf.zeros(shape, dtype))


class Variables:
    """Variables with their start and a checkpoint, and their functions, captured by `mode`."""

    def __init__(self, mode: str, folder: str) -> None:
        self._mode = mode
        draw = np.random.default_rng(7)
        with tf.device(GPU):
            # Exact, each in the way of one function.
            self.count, self.count64 = _zeros(COPIES), _zeros(4, dtype=tf.int64)
            self.sums, self.momentum, self.squares, self.looped = (
                _zeros(WIDTH, 4) for _ in range(4)
            )
            self.table, self.wide = _zeros(TABLE_ROWS, 4), _zeros(WIDTH, WIDE)
            self.before, self.after = _zeros(COPIES), _zeros(COPIES)
            # Given other values all the time, each of which is all one number.
            self.given = _zeros(COPIES)
            # Of floats: one value for an order.
            self.moved, self.divided = _zeros(WIDTH, 4), _zeros(WIDTH, 4)
            shapes = ([WIDTH, WIDTH], [WIDTH], [WIDTH, 4])
            self.layers = [
                tf.Variable((draw.normal(size=shape) / 4).astype(np.float32)) for shape in shapes
            ]
            self.first, self.second = ([_zeros(*shape) for shape in shapes] for _ in range(2))
            self.average = _zeros(WIDTH, WIDTH)
            self.keras = [
                tf.keras.optimizers.SGD(RATE, momentum=0.9),
                tf.keras.optimizers.Adam(RATE),
            ]
            for optimizer in self.keras:
                optimizer.build(self.layers)
            self.all = [
                *(self.count, self.count64, self.sums, self.momentum, self.squares, self.table),
                *(self.looped, self.wide, self.before, self.after, self.given, self.moved),
                *(self.divided, *self.layers, *self.first, *self.second, self.average),
                *(getattr(v, "value", v) for optimizer in self.keras for v in optimizer.variables),
            ]
            self.start = [tf.identity(variable) for variable in self.all]
        self._checkpoint = tf.train.Checkpoint(variables=self.all)
        self._path = self._checkpoint.write(os.path.join(folder, f"start_{mode}"))
        self._given = tf.train.Checkpoint(given=self.given)
        self._given_path = self._given.write(os.path.join(folder, f"given_{mode}"))
        self._updates: dict[str, Callable[[Any, Any], Any]] = {
            "sgd": lambda x, _: self._sgd(x),
            # With a momentum of 1 the slot is a sum; Adagrad's is a sum of squares.
            "momentum": lambda x, _: self._raw(
                "ResourceApplyMomentum", x, self.moved, self.momentum, momentum=1.0
            ),
            "adagrad": lambda x, _: self._raw(
                "ResourceApplyAdagradV2", x, self.divided, self.squares, epsilon=1e-7
            ),
            "adam": lambda x, _: self._adam(x),
            "keras_momentum": lambda x, _: self._apply(self.keras[0], x),
            "keras_adam": lambda x, _: self._apply(self.keras[1], x),
            "rows": self._rows,
            "loop": lambda x, _: self._loop(x),
            "wide": lambda x, _: self._wide(x),
            "average": lambda x, _: self._average(x),
        }
        self.function_names = list(self._updates)
        self.functions = [self.new_function(i) for i in range(len(self.function_names))]
        matrix = tf.TensorSpec([None, None])
        self.fail = self.marked(self._fail, [matrix, matrix, SPECS[1]])
        self.look = self.marked(self._look, [])

    def restart(self, restore: bool) -> None:
        """Gives all variables their first values, by assigning them or from a checkpoint."""
        with tf.device(GPU):
            if restore:
                self._checkpoint.read(self._path).assert_consumed()
                return
            for variable, value in zip(self.all, self.start, strict=True):
                variable.assign(value)

    def restore_given(self) -> None:
        """Restores the variable that is given other values all the time."""
        self._given.read(self._given_path)

    def values(self) -> list[np.ndarray]:
        with tf.device(GPU):
            return [variable.numpy() for variable in self.all]

    def marked(self, function: Callable[..., Any], specs: Sequence[Any] = SPECS) -> Any:
        """Makes a function that is captured, or not, on the GPU."""

        @tf.function(input_signature=list(specs), autograph=False)
        def placed(*arguments: Any) -> Any:
            with tf.device(GPU):
                return function(*arguments)

        return tf.cuda.captured(mode=self._mode)(placed)

    def new_function(self, number: int) -> Any:
        """A step: an update, the counts, and the numbers that tell whether all was in order."""
        update = self._updates[self.function_names[number]]

        def step(x: Any, ids: Any) -> Any:
            loss = update(x, ids)
            self.given.assign_add(tf.ones([COPIES]))
            self.count64.assign_add(tf.ones([4], tf.int64))
            self.count.assign_add(tf.ones([COPIES]))
            return tf.concat([self.count.read_value(), [loss]], axis=0)

        return self.marked(step)

    # Each function below changes variables, and gives a number that depends on their values.

    def _whole_gradient(self, x: Any, weights: Any) -> Any:
        """A gradient of whole numbers: the sums of the columns of `x`."""
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(x @ weights)
        return tape.gradient(value, weights)

    def _gradients(self, x: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            w, b, v = self.layers
            loss = 0.01 * tf.reduce_sum(tf.square(tf.tanh(0.1 * x @ w + b) @ v - 0.5))
        return loss, tape.gradient(loss, self.layers)

    def _sgd(self, x: Any) -> Any:
        gradient = self._whole_gradient(x, self.sums)
        self.sums.assign_sub(gradient)
        return gradient[0, 0]

    def _raw(self, op: str, x: Any, variable: Any, slot: Any, **more: float) -> Any:
        """One of TensorFlow's own ops, whose slot is a sum of whole numbers."""
        gradient = self._whole_gradient(x, variable)
        getattr(tf.raw_ops, op)(
            var=variable.handle,
            accum=slot.handle,
            lr=RATE,
            grad=gradient,
            use_locking=True,
            **more,
        )
        return gradient[0, 0]

    def _adam(self, x: Any) -> Any:
        """Adam, without its correction, of assignments."""
        loss, gradients = self._gradients(x)
        for w, g, m, v in zip(self.layers, gradients, self.first, self.second, strict=True):
            m.assign(0.9 * m + 0.1 * g)
            v.assign_add(0.01 * (tf.square(g) - v))
            w.assign_sub(RATE * m / (tf.sqrt(tf.abs(v)) + 0.001))
        return loss

    def _apply(self, optimizer: Any, x: Any) -> Any:
        loss, gradients = self._gradients(x)
        optimizer.apply_gradients(zip(gradients, self.layers, strict=True))
        return loss

    def _rows(self, x: Any, ids: Any) -> Any:
        self.table.scatter_add(tf.IndexedSlices(tf.ones([tf.shape(ids)[0], 4]), ids))
        return tf.reduce_sum(x)

    def _loop(self, x: Any) -> Any:
        """A loop whose number of iterations is constant."""
        first = self._whole_gradient(x, self.looped)
        _, total = tf.while_loop(
            lambda i, _: i < 3,
            lambda i, total: (i + 1, total + first),
            (tf.constant(0), tf.zeros([WIDTH, 4])),
        )
        self.looped.assign_sub(total)
        return total[0, 0]

    def _wide(self, x: Any) -> Any:
        """A function with recordings so large that only a few are kept."""
        gradient = self._whole_gradient(x, self.wide)
        hidden = tf.tanh(x @ self.wide * 0.001)
        for _ in range(3):
            hidden = tf.tanh(hidden)
        self.wide.assign_sub(gradient)
        return tf.reduce_mean(hidden)

    def _average(self, x: Any) -> Any:
        self.average.assign(0.75 * self.average + 0.25 * self.layers[0])
        return tf.reduce_mean(self.average) + tf.reduce_sum(x)

    def _fail(self, a: Any, b: Any, ids: Any) -> Any:
        """A step that changes a variable, fails if its arguments are bad, and changes another one.

        Matrices that do not fit are an error everywhere; a row that the table does not have is one
        on an emulated GPU alone.
        """
        changed = self.before.assign_add(tf.ones([COPIES]))
        with tf.control_dependencies([changed]):
            product = tf.reduce_sum(tf.matmul(a, b)) + tf.reduce_sum(tf.gather(self.table, ids))
        self.after.assign_add(tf.ones([COPIES]) + 0.0 * product)
        return product

    def _look(self) -> Any:
        """Reads what every step counts; gives copies, which keep no variable's memory."""
        count64 = self.count64.read_value()
        return (
            tf.concat([self.count, self.given], axis=0),
            tf.concat([count64, count64], axis=0),
        )

    def exact(
        self, calls: np.ndarray, inputs: Sequence[Input], failing: Sequence[int], added: int
    ) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """What variables have to be after `calls` of each function with each input, in any order.

        `fail` was called and did not fail as often as `failing` says; the counts were increased
        `added` times beside that. Returns each variable's name, what it is and what it has to be.
        """
        sums = np.stack([each.x.sum(axis=0).astype(np.int64) for each in inputs])
        rows = np.stack([np.bincount(each.ids, minlength=TABLE_ROWS) for each in inputs])

        def total(name: str, of_input: np.ndarray) -> Any:
            return (calls[self.function_names.index(name)] @ of_input)[:, None]

        right = {
            "count": calls.sum() + added,
            "count64": calls.sum() + added,
            "sums": -total("sgd", sums),
            "momentum": total("momentum", sums),
            "squares": total("adagrad", sums**2),
            "table": total("rows", rows),
            "looped": -3 * total("loop", sums),
            "wide": -total("wide", sums),
            "before": failing[0],
            "after": failing[1],
        }
        with tf.device(GPU):
            found = {name: getattr(self, name).numpy() for name in right}
        return [
            (name, found[name], np.broadcast_to(value, found[name].shape))
            for name, value in right.items()
        ]
