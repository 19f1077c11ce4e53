# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables that change while other threads read them: each read is one whole version."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import tensorflow as tf
from models import GPU, Place, Results, Work
from tally import Tally

ROWS, COLUMNS = 256, 64
# Versions that are saved in files, to be restored.
SAVED = (-1.0, -2.0, -3.0)
# Below the numbers that floats cannot count in steps of 1.
LARGEST = 2.0**23


class History:
    """The versions that one writer gives a variable; all elements of a version are one number."""

    def __init__(self, first: float) -> None:
        self._versions = [first]
        self._done = 0

    def begin(self, version: float) -> None:
        """Notes that the writer is about to write a version."""
        self._versions.append(version)

    def end(self) -> None:
        """Notes that the writer has written the version."""
        self._done += 1

    @property
    def latest(self) -> float:
        """The version that the writer wrote last."""
        return self._versions[-1]

    @property
    def done(self) -> int:
        """The number of the last version that has been written."""
        return self._done

    def problem(self, least: float, most: float, done_before: int) -> str:
        """Says what is wrong with a read.

        Args:
            least: the least of the numbers read.
            most: the largest.
            done_before: `done` before the read.

        Returns:
            A sentence; empty if it is one of the versions that the variable may have had.
        """
        possible = self._versions[done_before:]
        if least != most:
            return f"torn: numbers from {least} to {most}; versions written: {possible[:5]}"
        if least not in possible:
            return f"{least}, which is none of {len(possible)} versions: {possible[:5]}"
        return ""


class Variables(Work):
    """Worker 0 writes, all others read."""

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        with tf.device(GPU):
            self.dense = tf.Variable(tf.zeros([ROWS * COLUMNS]))
            self.table = tf.Variable(tf.zeros([ROWS, COLUMNS]))
        self.histories = [History(0.0), History(0.0)]
        self.files = []
        for version in SAVED:
            with tf.device(GPU):
                saved = tf.train.Checkpoint(dense=tf.Variable(tf.fill([ROWS * COLUMNS], version)))
            self.files.append(saved.write(os.path.join(place.folder, f"version{version}")))
        self.checkpoint = tf.train.Checkpoint(dense=self.dense)
        self.make_functions()

    def make_functions(self) -> None:
        """Makes the functions that read and write."""

        @tf.function
        def read() -> Any:
            with tf.device(GPU):
                dense, rows = self.dense.read_value(), tf.gather(self.table, tf.range(0, ROWS, 3))
                return [
                    tf.stack([tf.reduce_min(dense), tf.reduce_max(dense)]),
                    tf.stack([tf.reduce_min(rows), tf.reduce_max(rows)]),
                ]

        @tf.function
        def assign(version: Any) -> None:
            with tf.device(GPU):
                self.dense.assign(tf.fill([ROWS * COLUMNS], version))

        @tf.function
        def increment() -> None:
            with tf.device(GPU):
                self.dense.assign_add(tf.ones([ROWS * COLUMNS]))

        @tf.function
        def scatter(version: Any) -> None:
            with tf.device(GPU):
                self.table.scatter_nd_update(
                    tf.range(ROWS)[:, None], tf.fill([ROWS, COLUMNS], version)
                )

        @tf.function
        def increment_table() -> None:
            with tf.device(GPU):
                self.table.assign_add(tf.ones([ROWS, COLUMNS]))

        self.read, self.assign, self.increment = read, assign, increment
        self.scatter, self.increment_table = scatter, increment_table

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Writes or reads."""
        tally.step()
        if worker == 0:
            self.write(draw)
            tally.check("", "write")
        elif draw.random() < 0.2:
            done = self.histories[0].done
            value = self.dense.numpy()
            problem = self.histories[0].problem(value.min(), value.max(), done)
            tally.check(problem, "a variable, read whole")
        else:
            done_before = [history.done for history in self.histories]
            for (least, most), history, done in zip(
                (pair.numpy() for pair in self.read()), self.histories, done_before, strict=True
            ):
                tally.check(history.problem(least, most, done), "a variable, read by a function")

    def write(self, draw: random.Random) -> None:
        """Writes one of the variables, in one of the ways."""
        way = draw.randrange(6)
        history = self.histories[way // 4]
        version = history.latest + 1
        if abs(version) > LARGEST:
            version = 0.0
        if way == 0:
            saved = draw.randrange(len(SAVED))
            history.begin(SAVED[saved])
            self.checkpoint.read(self.files[saved])
        elif way == 1:
            history.begin(version)
            self.assign(tf.constant(version))
        elif way == 2:
            history.begin(history.latest + 1)
            self.increment()
        elif way == 3:
            history.begin(version)
            with tf.device(GPU):
                self.dense.assign(np.full([ROWS * COLUMNS], version, np.float32))
        elif way == 4:
            history.begin(version)
            self.scatter(tf.constant(version))
        else:
            history.begin(history.latest + 1)
            self.increment_table()
        history.end()
