# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kinds of work that end: sessions and models dropped, calls cancelled, full memory.

Calls that have to fail must fail with the right error, and later calls must be right.
"""

import contextlib
import gc
import os
import pathlib
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from models import (
    CASES,
    GPU,
    ROWS,
    WIDTH,
    Results,
    Work,
    branch_weights,
    branches,
    cases_of,
    matrix,
    new_session,
    on_gpu,
    random_of,
    tf1,
)
from tally import Tally
from tensorflow.python.eager import cancellation, context, execute

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
from served import save_layers


class SessionsComeAndGo(Work):
    """A session is made, initialized, run and closed."""

    name = "sessions_come_and_go"

    def make(self) -> None:
        self.cases = cases_of(self.place, self.name)
        with tf.Graph().as_default() as self.graph, tf.device(GPU):
            layers = [
                [tf1.Variable(w, use_resource=True) for w in row]
                for row in branch_weights(self.place, self.name)
            ]
            self.x = tf1.placeholder(tf.float32, [None, WIDTH])
            self.y = branches(self.place, self.x, layers, scoped=True)
            self.initializer = tf1.global_variables_initializer()

    def outputs(self, cases: list[int]) -> list[np.ndarray]:
        """The outputs for some inputs, of a session of their own."""
        with new_session(self.graph) as session:
            session.run(self.initializer)
            return [session.run(self.y, {self.x: self.cases[case]}) for case in cases]

    def results(self) -> Results:
        return {str(case): y for case, y in enumerate(self.outputs(list(range(CASES))))}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        cases = [draw.randrange(CASES) for _ in range(3)]
        tally.step()
        for case, y in zip(cases, self.outputs(cases), strict=True):
            tally.verify(y, self.reference[str(case)], f"a new session, input {case}")


class ModelsComeAndGo(Work):
    """A SavedModel is loaded, called until it is replayed, and dropped."""

    name = "models_come_and_go"
    calls = 4  # on each group, the most of a model that is loaded: one is recorded, one replayed

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        self.x = draw.normal(0, 1, (8, WIDTH)).astype(np.float32)
        self.folder = os.path.join(self.place.folder, self.name)
        save_layers(self.folder, [matrix(draw, WIDTH, WIDTH) for _ in range(3)])

    def outputs(self, calls: int) -> list[np.ndarray]:
        """The results of the model, loaded for these calls only."""
        with tf.device(GPU):
            loaded = tf.saved_model.load(self.folder)
            call = tf.cuda.serving_callable(loaded.signatures["serving_default"])
            return [call(x=self.x)["y"] for _ in range(calls)]

    def results(self) -> Results:
        return {"y": self.outputs(1)[0]}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        tally.step()
        for y in self.outputs(draw.randint(1, self.calls * self.place.groups)):
            tally.verify(y, self.reference["y"], "a model that was just loaded")
        gc.collect()


class Cancellations(Work):
    """Steps that wait for a queue are cancelled: by a timeout, a closed session, a manager."""

    name = "cancellations"

    def make(self) -> None:
        self.cases = cases_of(self.place, self.name)
        layers = branch_weights(self.place, self.name)
        with tf.Graph().as_default() as self.graph:
            with tf.device("/CPU:0"):
                queue = tf1.FIFOQueue(100, tf.float32, shapes=[[]])
                one = queue.dequeue()
                self.enqueue = queue.enqueue(1.0)
            with tf.device(GPU):
                self.x = tf1.placeholder(tf.float32, [None, WIDTH])
                self.y = branches(self.place, self.x, layers, scoped=True) * one
        self.session = new_session(self.graph)
        with tf.device("/CPU:0"):
            self.queue = tf.queue.FIFOQueue(100, tf.float32, shapes=[[]])

        @on_gpu(ROWS)
        def waits(x: Any) -> Any:
            with tf.device("/CPU:0"):
                one = self.queue.dequeue()
            return branches(self.place, x, layers, scoped=True) * one

        self.function = waits.get_concrete_function()

    def results(self) -> Results:
        """The outputs of the steps that are not cancelled."""
        self.queue.enqueue(1.0)
        return {
            **{str(i): self.served(self.session, i) for i in range(CASES)},
            "function": self.function(tf.constant(self.cases[2])).numpy(),
        }

    def served(self, session: Any, case: int) -> np.ndarray:
        session.run(self.enqueue)
        return np.asarray(session.run(self.y, {self.x: self.cases[case]}))

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        case = draw.randrange(CASES)
        tally.step()
        way = draw.choice((self.time_out, self.close_session, self.cancel_function))
        way(draw.uniform(0.0, 0.03), tally)
        found = self.served(self.session, case)
        tally.verify(found, self.reference[str(case)], f"after {way.__name__}, input {case}")

    def time_out(self, seconds: float, tally: Tally) -> None:
        options = tf1.RunOptions(timeout_in_ms=1 + int(1000 * seconds))
        with expected(tally, tf.errors.DeadlineExceededError):
            self.session.run(self.y, {self.x: self.cases[0]}, options=options)

    def close_session(self, seconds: float, tally: Tally) -> None:
        session = new_session(self.graph)
        tally.verify(self.served(session, 1), self.reference["1"], "before a session is closed")
        timer = threading.Timer(seconds, session.close)
        timer.start()
        # A step that starts after the close finds a closed session.
        with expected(tally, (tf.errors.CancelledError, RuntimeError)):
            session.run(self.y, {self.x: self.cases[1]})
        timer.join()

    def cancel_function(self, seconds: float, tally: Tally) -> None:
        manager = cancellation.CancellationManager()
        timer = threading.Timer(seconds, manager.start_cancel)
        timer.start()
        x = tf.constant(self.cases[2])
        with expected(tally, tf.errors.CancelledError):
            call(self.function, x, manager)
        timer.join()
        self.queue.enqueue(1.0)
        found = self.function(x).numpy()
        tally.verify(found, self.reference["function"], "a function after one is cancelled")

    def close(self) -> None:
        self.session.close()


class FullMemory(Work):
    """Steps that ask for more memory than their group has, and small steps between them."""

    name = "full_memory"

    def make(self) -> None:
        with tf.device(GPU):
            row = tf.constant(np.linspace(-1, 1, 1 << 18, dtype=np.float32)[None])  # 1 MiB

        @on_gpu(tf.TensorSpec([], tf.int32))
        def tiles(mebi: Any) -> Any:
            return tf.reduce_max(tf.tile(tf.tanh(row), tf.stack([mebi, 1])), axis=1)

        self.tiles = tiles

    def results(self) -> Results:
        return {"small": self.tiles(tf.constant(4)).numpy()}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        tally.step()
        # On a GPU, TensorFlow waits 10 s for memory before it gives up.
        if draw.random() < (0.02 if self.place.gpu else 0.2):
            most = max(group.bytes_limit for group in tf.cuda.stream_stats())
            mebi = tf.constant(most // (1 << 20) + draw.randint(1, 1000))
            with expected(tally, tf.errors.ResourceExhaustedError, "Stream group"):
                self.tiles(mebi)
        found = self.tiles(tf.constant(4)).numpy()
        tally.verify(found, self.reference["small"], "a step of 4 MiB")


def call(function: Any, x: Any, manager: Any) -> Any:
    """Calls a function so that a manager cancels this call, and not those of all threads."""
    here = context.context()
    return execute.execute_with_cancellation(
        function.name,
        num_outputs=1,
        inputs=[x, *function.captured_inputs],
        attrs=(
            *("executor_type", ""),
            *("config_proto", here.function_call_options.config_proto_serialized),
        ),
        ctx=here,
        cancellation_manager=manager,
    )


@contextlib.contextmanager
def expected(tally: Tally, kinds: Any, text: str = "") -> Iterator[None]:
    """The block has to fail with one of these errors, whose message contains the text."""
    names = getattr(kinds, "__name__", str(kinds))
    try:
        yield
    except kinds as error:
        if text in str(error):
            tally.expected_error()
        else:
            tally.unexpected(f"{names} does not say '{text}': {error}")
    else:
        tally.unexpected(f"no {names}")
