# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kinds of work whose results are known without one stream's: by NumPy, or by what was written."""

import os
import pathlib
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from models import GPU, Work, new_session, on_gpu, tf1
from tally import Tally

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
from foreign_cuda import GLOBAL_CAPTURES, ForeignCuda

APART = 1024  # argmax of equal numbers is the first one
# Each op on a matrix of whole floats, in TensorFlow and in NumPy.
OPS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "add": (lambda x: x + 3.0, lambda x: x + np.float32(3)),
    "multiply": (lambda x: x * x, lambda x: x * x),
    "negative": (tf.negative, np.negative),
    "relu": (tf.nn.relu, lambda x: np.maximum(x, 0)),
    "sum": (
        lambda x: tf.reduce_sum(x, axis=0, keepdims=True),
        lambda x: x.sum(axis=0, keepdims=True),
    ),
    "maximum": (
        lambda x: tf.reduce_max(x, axis=1, keepdims=True),
        lambda x: x.max(axis=1, keepdims=True),
    ),
    "transpose": (tf.transpose, lambda x: np.ascontiguousarray(x.T)),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), lambda x: x @ x.T),
    "reverse": (lambda x: tf.reverse(x, [0]), lambda x: x[::-1]),
    "concat": (lambda x: tf.concat([x, -x], axis=1), lambda x: np.concatenate([x, -x], axis=1)),
    "slice": (lambda x: x[::2, 1:] + 0.0, lambda x: x[::2, 1:]),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), lambda x: np.pad(x, [[1, 0], [0, 2]])),
    "tile": (lambda x: tf.tile(x, [2, 1]), lambda x: np.tile(x, [2, 1])),
    "where": (lambda x: tf.where(x > 0, x, -2.0 * x), lambda x: np.where(x > 0, x, -2 * x)),
    "gather": (
        lambda x: tf.gather(x, np.arange(len(x), dtype=np.int64)[::-1] // 2),
        lambda x: x[np.arange(len(x))[::-1] // 2],
    ),
    "cumsum": (lambda x: tf.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1)),
    "argmax": (
        lambda x: tf.cast(tf.argmax(x * APART - tf.range(0.0, x.shape[1]), axis=1), tf.float32)[
            :, None
        ],
        lambda x: (x * APART - np.arange(x.shape[1])).argmax(axis=1)[:, None],
    ),
    "double": (
        lambda x: tf.cast(tf.cast(x, tf.float64) * 2, tf.float32),
        lambda x: x * 2,
    ),
    "split": (lambda x: tf.add_n(tf.split(tf.tile(x, [1, 2]), 2, axis=1)), lambda x: x + x),
}


class EagerOps(Work):
    """A few ops one after another from many threads, on a matrix that is drawn.

    Numbers are whole and so small that floats hold every sum and product exactly; with more ops
    in a chain, numbers could become too large.
    """

    name = "eager_ops"
    rows, columns, chain = (1, 7, 32, 100), 24, 2

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        names = draw.choices(list(OPS), k=self.chain)
        shape = draw.choice(self.rows), self.columns
        x = np.random.default_rng(draw.randrange(2**31)).integers(-4, 5, shape)
        expected = x.astype(np.float32)
        with tf.device(GPU):
            found = tf.constant(expected)
            for name in names:
                in_tensorflow, in_numpy = OPS[name]
                tally.step()
                found = in_tensorflow(found)
                expected = np.asarray(in_numpy(expected), np.float32)
        # TensorFlow and NumPy may differ in the sign of zero.
        tally.verify(found.numpy() + 0.0, expected + np.float32(0), " of ".join(names[::-1]))


class Feeds(Work):
    """Feeds whole numbers x, no two the same; 2 x + 1 is exact, and depends on every bit of x."""

    name = "feeds"
    # Size in MiB, and how often it is drawn.
    on_gpu, emulated = ((64, 128, 256), (3, 2, 1)), ((2, 8, 64), (8, 4, 1))

    def make(self) -> None:
        with tf.Graph().as_default() as graph, tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None])
            y = x * 2.0 + 1.0
        self.session = new_session(graph)
        self.callable = self.session.make_callable(y, [x])

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        (mebi,) = draw.choices(*(self.on_gpu if self.place.gpu else self.emulated))
        first = draw.randrange(1 << 22)
        # Below 2^22 + 2^22, so that twice the number is exact, too.
        x = (np.arange(mebi << 18, dtype=np.int32) & ((1 << 22) - 1)) + first
        fed = x.astype(np.float32)
        expected = (2 * x + 1).astype(np.float32)
        tally.step()
        tally.verify(self.callable(fed), expected, f"a feed of {mebi} MiB from {first}")

    def close(self) -> None:
        self.session.close()


class Variables(Work):
    """Worker 0 writes two variables, all others read them: each read is one number throughout."""

    name = "variables"
    shape = (256, 64)
    size = 256 * 64
    # Versions that are saved in files, to be restored.
    saved = (-1.0, -2.0, -3.0)
    # Below the numbers that floats cannot count in steps of 1.
    largest = 2.0**23

    def make(self) -> None:
        with tf.device(GPU):
            self.dense = tf.Variable(tf.zeros([self.size]))
            self.table = tf.Variable(tf.zeros(self.shape))
        # Of each variable, the versions that the writer has begun to write, and the number of the
        # last one that has been written.
        self.versions, self.done = [[0.0], [0.0]], [0, 0]
        self.files = []
        for version in self.saved:
            with tf.device(GPU):
                saved = tf.train.Checkpoint(dense=tf.Variable(tf.fill([self.size], version)))
            self.files.append(saved.write(os.path.join(self.place.folder, f"version{version}")))
        self.checkpoint = tf.train.Checkpoint(dense=self.dense)
        ids = np.arange(self.shape[0], dtype=np.int32)
        number = tf.TensorSpec([])

        @on_gpu()
        def read() -> Any:
            dense, rows = self.dense.read_value(), tf.gather(self.table, ids[::3])
            return [tf.stack([tf.reduce_min(x), tf.reduce_max(x)]) for x in (dense, rows)]

        @on_gpu(number)
        def assign(version: Any) -> None:
            self.dense.assign(tf.fill([self.size], version))

        @on_gpu()
        def increment() -> None:
            self.dense.assign_add(tf.ones([self.size]))

        @on_gpu(number)
        def scatter(version: Any) -> None:
            self.table.scatter_nd_update(ids[:, None], tf.fill(self.shape, version))

        @on_gpu()
        def increment_table() -> None:
            self.table.assign_add(tf.ones(self.shape))

        def assign_eagerly(version: float) -> None:
            with tf.device(GPU):
                self.dense.assign(np.full([self.size], version, np.float32))

        self.read = read
        # Ways to write: which variable, how, and whether to give a version rather than to add 1.
        self.ways: list[tuple[int, Callable[..., None], bool]] = [
            (0, self.restore, True),
            (0, lambda version: assign(tf.constant(version)), True),
            (0, increment, False),
            (0, assign_eagerly, True),
            (1, lambda version: scatter(tf.constant(version)), True),
            (1, increment_table, False),
        ]

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        tally.step()
        done = list(self.done)
        if worker == 0:
            self.write(draw)
            tally.check("", "write")
        elif draw.random() < 0.2:
            problem = self.problem(0, self.dense.numpy(), done[0])
            tally.check(problem, "a variable, read whole")
        else:
            for which, found in enumerate(self.read()):
                problem = self.problem(which, found.numpy(), done[which])
                tally.check(problem, "a variable, read by a function")

    def problem(self, which: int, values: np.ndarray, done_before: int) -> str:
        """Says what is wrong with a read, unless it is of a version since the `done_before`-th."""
        possible = self.versions[which][done_before:]
        least, most = values.min(), values.max()
        if least != most:
            return f"torn: numbers from {least} to {most}; versions written: {possible[:5]}"
        if least not in possible:
            return f"{least}, which is none of {len(possible)} versions: {possible[:5]}"
        return ""

    def write(self, draw: random.Random) -> None:
        which, write, given = draw.choice(self.ways)
        version = self.versions[which][-1] + 1
        if write == self.restore:
            version = draw.choice(self.saved)
        elif given and abs(version) > self.largest:
            version = 0.0
        self.versions[which].append(version)
        write(*([version] if given else []))
        self.done[which] += 1

    def restore(self, version: float) -> None:
        self.checkpoint.read(self.files[self.saved.index(version)])


class ForeignCalls(Work):
    """Calls of CUDA of each kind that other libraries make, in any order; each must succeed.

    Left out is what ends a process of stock TensorFlow, too: soundness/foreign_calls.py has that.
    cuDNN captures streams of its own, and the driver crashes where a wait for all of the GPU meets
    one.
    """

    name = "foreign_calls"
    left_out = (GLOBAL_CAPTURES, "device synchronize")

    def make(self) -> None:
        self.local = threading.local()  # CUDA binds a GPU per thread

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        if not hasattr(self.local, "cuda"):
            self.local.cuda = ForeignCuda()
        cuda = self.local.cuda
        kinds = {name: call for name, call in cuda.kinds().items() if name not in self.left_out}
        kind = draw.choice(list(kinds))
        cuda.codes.clear()
        kinds[kind]()
        tally.step()
        failed = [call for call in cuda.codes if not call.endswith(": 0")]
        tally.check(", ".join(failed), kind)
