# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers and parameter servers that die and come back, and steps that are cancelled from outside.

The other processes go on as without groups: a call gives the right result or an error of the
distributed runtime, a new session works, and no memory of a failed step is kept.
"""

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from multistream.testing import cluster, kit
from multistream.testing.kit import run_threads, same

# TensorFlow's errors for a client whose worker has died.
GONE = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)


def serve(spec: cluster.Spec, job: str, task: int, folder: str, lives: int) -> None:
    """A task that serves; in the first of two lives it is killed when the file `kill` appears.

    The last life ends with the client.
    """
    signs = Path(folder)
    for life in range(lives):
        child = os.fork()  # before TensorFlow makes devices
        if child == 0:
            status = 1
            try:
                server = cluster.make_server(spec, job, task)
                (signs / f"up{life}").touch()
                cluster.until((signs / "ended").exists, seconds=300)
                kit.check_process()
                del server
                status = 0
            finally:
                os._exit(status)
        last = life == lives - 1
        cluster.until((signs / ("ended" if last else "kill")).exists, seconds=300)
        if not last:
            os.kill(child, signal.SIGKILL)
        _, ended = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(ended) == (0 if last else -signal.SIGKILL)


class TwoWorkers:
    """A graph whose tensors go from the first worker's GPU to the second's, and back.

    The second worker can be made to wait in the middle of a step.
    """

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device("/job:worker/task:0/device:GPU:0"):
                self.x = tf.placeholder(tf.float32, [None, 32])
                w = tf.get_variable("w", initializer=cluster.numbers(1, 32, 32), use_resource=True)
                with tf.stream(1):
                    here = tf.tanh(self.x @ w)
            with tf.device("/job:worker/task:1/device:CPU:0"):
                queue = tf.FIFOQueue(100, [tf.float32], [[]])
                self.wait = queue.dequeue()
                self.go_on = queue.enqueue(tf.constant(1.0))
            with tf.device("/job:worker/task:1/device:GPU:0"):
                v = tf.get_variable("v", initializer=cluster.numbers(2, 32, 32), use_resource=True)
                with tf.stream(1):
                    there = tf.sin(here @ v)
                with tf.stream(2):
                    other = tf.cos(here @ v)
                both = there * other
                waited = (there * self.wait) * other
            with tf.device("/job:worker/task:0/device:GPU:0"), tf.stream(2):
                self.y = tf.reduce_sum(both * here, 1)
                self.y_after_wait = tf.reduce_sum(waited * here, 1)
            self.start = tf.global_variables_initializer()

    @staticmethod
    def right(feed: Any) -> Any:
        here = np.tanh(feed @ cluster.numbers(1, 32, 32))
        there = here @ cluster.numbers(2, 32, 32)
        return (np.sin(there) * np.cos(there) * here).sum(1)


def run_until_cancelled(server: Any, session: Any, model: TwoWorkers, expected: list[Any]) -> None:
    """Steps that wait in the other worker until cancelled, among steps that do not wait."""

    def waits(session: Any, k: int, **options: Any) -> None:
        result = session.run(model.y_after_wait, {model.x: cluster.FEEDS[k]}, **options)
        assert same([result], [expected[k]])

    # The first step partitions the graph, which its deadline does not limit.
    session.run(model.go_on)
    waits(session, 3)

    def client(k: int) -> None:
        for i in range(20):
            feeds = {model.x: cluster.FEEDS[(k + i) % len(cluster.FEEDS)]}
            assert same([session.run(model.y, feeds)], [expected[(k + i) % len(cluster.FEEDS)]])

    def late(k: int) -> None:
        # TensorFlow loses a deadline that passes before the step begins: docs/training.md.
        options = tf.RunOptions(timeout_in_ms=1000 + 200 * k)
        with pytest.raises(tf.errors.DeadlineExceededError):
            waits(session, k, options=options)

    run_threads([partial(client, k) for k in range(3)] + [partial(late, k) for k in range(3)])

    closed = tf.Session(server.target, graph=model.graph)

    def ends(k: int) -> None:
        with pytest.raises((tf.errors.CancelledError, tf.errors.AbortedError)):
            waits(closed, k)

    def close() -> None:
        time.sleep(1)
        closed.close()

    run_threads([close, *(partial(ends, k) for k in range(3))])
    session.run(model.go_on)
    waits(session, 2)


def works(server: Any, graph: Any, fetch: Any) -> bool:
    """Whether a new session can run the step; False if a worker has died."""
    with tf.Session(server.target, graph=graph) as session:
        try:
            session.run(fetch)
        except GONE:
            return False
        return True


def run_until_it_dies(session: Any, model: TwoWorkers, expected: list[Any], kill: Path) -> None:
    """Five clients, some in the middle of a step when the other worker is killed."""
    ended: list[Exception] = []

    def client(k: int) -> None:
        for i in range(100000):
            if k == 0 and i == 30:
                kill.touch()
            tensor = model.y_after_wait if k == 1 and i > 10 else model.y
            try:
                result = session.run(tensor, {model.x: cluster.FEEDS[k]})
            except GONE as error:
                ended.append(error)
                return
            assert same([result], [expected[k]])

    run_threads([partial(client, k) for k in range(5)])
    assert len(ended) == 5


def run_alone(server: Any) -> None:
    with tf.Graph().as_default() as graph, tf.device("/job:worker/task:0/device:GPU:0"):
        with tf.stream(2):
            y = tf.tanh(tf.constant(cluster.FEEDS[0]) @ cluster.numbers(1, 32, 32))
        cluster.until(lambda: works(server, graph, y))
        with tf.Session(server.target) as session:
            right = np.tanh(cluster.FEEDS[0] @ cluster.numbers(1, 32, 32))
            np.testing.assert_allclose(session.run(y), right, rtol=1e-2, atol=1e-3)


def survive(spec: cluster.Spec, folder: str) -> None:
    """Runs steps over both workers, which are cancelled; the second worker dies and comes back."""
    server = cluster.make_server(spec, "worker", 0)
    model = TwoWorkers()
    signs = Path(folder)
    for life in range(2):
        cluster.until((signs / f"up{life}").exists)
        cluster.until(lambda: works(server, model.graph, model.start))
        with tf.Session(server.target, graph=model.graph) as session:
            found = [session.run(model.y, {model.x: feed}) for feed in cluster.FEEDS]
            if life == 0:
                expected = found
                for feed, result in zip(cluster.FEEDS, expected, strict=True):
                    np.testing.assert_allclose(result, model.right(feed), rtol=1e-2, atol=1e-3)
                run_until_cancelled(server, session, model, expected)
                run_until_it_dies(session, model, expected, signs / "kill")
            assert same(found, expected)
        run_alone(server)
    cluster.assert_groups_were_used()


@pytest.mark.parametrize("level", [cluster.GRAPH_LEVEL, cluster.NODE_LEVEL], ids=["graph", "node"])
def test_a_worker_survives_cancelled_steps_and_the_death_of_another_worker(
    level: dict[str, str], tmp_path: Path
) -> None:
    spec = cluster.make_spec(worker=2)
    other: cluster.Task = (serve, (spec, "worker", 1, str(tmp_path), 2), level)
    cluster.run_all([other, (survive, (spec, str(tmp_path)), level)], tmp_path)


STEPS = 8


def train(spec: cluster.Spec, folder: str, kills: bool) -> None:
    """Trains, saving after each step, with a parameter server that is killed after three steps."""
    server = cluster.make_server(spec, "worker", 0)
    device = cluster.worker_device(spec, 0)
    layers = cluster.Layers(True, device)
    with layers.graph.as_default(), tf.device(device):
        step = tf.train.get_or_create_global_step()
        with tf.device("/job:ps/task:0/device:CPU:0"), tf.control_dependencies([layers.train]):
            advance = tf.assign_add(step, 1)
    with (
        layers.graph.as_default(),
        tf.train.MonitoredTrainingSession(
            server.target,
            checkpoint_dir=str(Path(folder) / "saved"),
            save_checkpoint_steps=1,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session,
    ):
        while (at := session.run(step)) < STEPS:
            if kills and at == 3:
                (Path(folder) / "kill").touch()
            session.run(advance, {layers.x: cluster.FEEDS[at % len(cluster.FEEDS)]})
        print("weights", *(w.tobytes().hex() for w in session.run(layers.weights)))
    cluster.assert_groups_were_used()


def weights_trained(folder: Path, kills: bool, **variables: str) -> str:
    folder.mkdir()
    spec = cluster.make_spec(ps=1, worker=1)
    server: cluster.Task = (serve, (spec, "ps", 0, str(folder), 2 if kills else 1), variables)
    worker: cluster.Task = (train, (spec, str(folder), kills), variables)
    line: str = cluster.line_of(cluster.run_all([server, worker], folder)[-1], "weights")
    return line


def test_training_goes_on_after_its_parameter_server_was_killed(tmp_path: Path) -> None:
    """The weights are those of uninterrupted training on one stream."""
    expected = weights_trained(tmp_path / "one", False, **cluster.ONE_STREAM)
    assert weights_trained(tmp_path / "killed", True, **cluster.NODE_LEVEL) == expected
