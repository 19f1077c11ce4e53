# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""An op that blocks until another step is done leaves that step the threads that it needs.

Stock TensorFlow completes each job with as many inter-op threads.
"""

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

from multistream.testing.kit import GPU, run_job, run_threads

tf1 = tf.compat.v1

CLIENTS = 16
CALLS = 3
INTER_OP = 64
ROW = [1.0, 2.0, 3.0, 4.0]

MODES: dict[str, dict[str, str]] = {
    "graph_level": {},
    "node_level": {"TF_NODE_LEVEL_MULTISTREAM": "true"},
    "gpu_private": {"TF_GPU_THREAD_MODE": "gpu_private", "TF_GPU_THREAD_COUNT": "1"},
}


def on_gpu(function: Callable[[Any], Any]) -> Any:
    @tf.function(input_signature=[tf.TensorSpec([4])])
    def placed(x: Any) -> Any:
        with tf.device(GPU):
            return function(x)

    return placed


def python_op(function: Callable[[Any], Any], x: Any) -> Any:
    y = tf.numpy_function(function, [x], tf.float32)
    y.set_shape([4])
    return y


def nested_calls() -> None:
    """Python ops that call functions: one, several of a graph, and in loops."""
    plus_one = on_gpu(lambda x: tf.identity(x) + 1.0)

    def call(x: Any) -> Any:
        return plus_one(tf.constant(x)).numpy()

    def loop(x: Any) -> Any:
        for _ in tf.range(3):
            x = python_op(call, x)
        return x

    once = on_gpu(lambda x: python_op(call, x * 2.0))
    deeper = on_gpu(lambda x: python_op(lambda y: once(tf.constant(y)).numpy(), x))
    several = on_gpu(lambda x: tf.add_n([python_op(call, x * float(i)) for i in range(4)]))
    looped = on_gpu(loop)

    def client(k: int) -> None:
        x = tf.constant(ROW) * float(k)
        for _ in range(CALLS):
            np.testing.assert_array_equal(once(x), x * 2.0 + 1.0)
            np.testing.assert_array_equal(deeper(x), x * 2.0 + 1.0)
            np.testing.assert_array_equal(several(x), x * 6.0 + 4.0)
            np.testing.assert_array_equal(looped(x), x + 3.0)

    run_threads([partial(client, k) for k in range(CLIENTS)])


def meetings() -> None:
    """Python ops of all clients that wait for each other, sleeping or polling."""
    for looks, rounds in [(False, CALLS), (True, 1)]:
        for _ in range(rounds):
            meeting = threading.Barrier(CLIENTS)
            arrived: list[int] = []

            def meet(x: Any, looks: bool = looks) -> Any:
                if not looks:
                    meeting.wait()  # noqa: B023
                arrived.append(1)  # noqa: B023
                while len(arrived) < CLIENTS:  # noqa: B023
                    time.sleep(0)
                return x

            met = on_gpu(lambda x: python_op(meet, x) + 1.0)
            run_threads([partial(met, tf.constant(ROW)) for _ in range(CLIENTS)])


def later_steps() -> None:
    """Steps that wait for values that later steps put into a queue, barrier or staging area."""
    with tf.Graph().as_default() as graph, tf.device(GPU):
        given = tf1.placeholder(tf.float32, [4])
        key = tf1.placeholder(tf.string, [1])
        queue = tf.queue.FIFOQueue(CLIENTS, [tf.float32], shapes=[[4]])
        barrier = data_flow_ops.Barrier([tf.float32], shapes=[[4]])
        puts = [
            queue.enqueue(given * 2.0),
            barrier.insert_many(0, key, [given * 2.0]),
            tf.raw_ops.Stage(values=[given * 2.0], shared_name="area"),
        ]
        takes = [
            queue.dequeue() + 1.0,
            barrier.take_many(1)[2][0] + 1.0,
            tf.raw_ops.Unstage(dtypes=[tf.float32], shared_name="area")[0] + 1.0,
        ]
    # A barrier has no kernel for a GPU.
    config = tf1.ConfigProto(inter_op_parallelism_threads=INTER_OP, allow_soft_placement=True)
    session = tf1.Session(graph=graph, config=config)
    keys = map(str, itertools.count())

    def client(take: Any) -> None:
        np.testing.assert_array_equal(np.ravel(session.run(take)), np.array(ROW) * 2 + 1)

    def feed(put: Any) -> None:
        for _ in range(CLIENTS):
            session.run(put, {given: ROW, key: [next(keys)]})

    for put, take in zip(puts, takes, strict=True):
        for _ in range(CALLS):
            # Mostly the clients wait before the value comes.
            run_threads([*[partial(client, take)] * CLIENTS, partial(feed, put)])


def server() -> None:
    """Steps of a server whose Python ops run steps of the same server."""
    config = tf1.ConfigProto(inter_op_parallelism_threads=INTER_OP)
    target = tf.distribute.Server.create_local_server(config).target

    def call(x: Any) -> Any:
        # A copy: the result of an emulated GPU is a view of the GPU's memory.
        return np.copy(session.run(inner, {given: x}))

    with tf.Graph().as_default() as graph, tf.device(GPU):
        given = tf1.placeholder(tf.float32, [4])
        inner = given + 1.0
        outer = python_op(call, given * 2.0) * 2.0
    session = tf1.Session(target, graph=graph)

    def client(k: int) -> None:
        x = np.array(ROW, np.float32) * k
        for _ in range(CALLS):
            np.testing.assert_array_equal(session.run(outer, {given: x}), (x * 2 + 1) * 2)

    run_threads([partial(client, k) for k in range(CLIENTS)])


def all_jobs() -> None:
    # More inter-op threads than the clients block at a time.
    tf.config.threading.set_inter_op_parallelism_threads(INTER_OP)
    for job in (nested_calls, meetings, later_steps, server):
        print(job.__name__)
        job()


@pytest.mark.parametrize("mode", MODES)
def test_blocked_ops(mode: str) -> None:
    run_job(all_jobs, **{"TF_NODE_LEVEL_MULTISTREAM": None, **MODES[mode]})
