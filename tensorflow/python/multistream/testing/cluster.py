# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of TensorFlow's distributed runtime: a cluster of processes on this machine."""

import concurrent.futures
import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from multistream.testing import kit

Spec = dict[str, list[str]]
# A job and its arguments, with variables of its process.
Task = tuple[Callable[..., None], tuple[object, ...], dict[str, str]]

GRAPH_LEVEL = {"TF_NODE_LEVEL_MULTISTREAM": "false"}
NODE_LEVEL = {"TF_NODE_LEVEL_MULTISTREAM": "true"}
# The reference: stock TensorFlow on an emulated GPU.
ONE_STREAM = {**GRAPH_LEVEL, "TF_GPU_STREAM_GROUP_COUNT": "1"}


def numbers(seed: int, *shape: int) -> Any:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32) / 8


FIRST_PORT = 10_000
# A counter, so that no port is given twice; it starts far from those of other processes.
offsets = itertools.count(os.getpid() * 101)


def free_port() -> int:
    """A free port outside the system's range of ephemeral ports.

    A port that the system chooses is in that range, so an outgoing connection may take the port
    before the server binds it.
    """
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    for offset in itertools.islice(offsets, 1000):
        port = FIRST_PORT + offset % (end - FIRST_PORT)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"none of 1,000 ports from {FIRST_PORT} to {end} is free")


def make_spec(**tasks: int) -> Spec:
    """Addresses for the tasks of a cluster; `tasks` has their number by job."""
    return {job: [f"127.0.0.1:{free_port()}" for _ in range(count)] for job, count in tasks.items()}


def run_all(tasks: Sequence[Task], folder: Path) -> list[str]:
    """Runs each task in a process of its own, all at the same time; returns their output.

    The last task is the client. When the client has ended, the serving tasks end. When any task has
    failed, all end, because the others could wait for the failed task until the test's time limit.
    """
    first = f"from multistream.testing import cluster\ncluster.end_with({str(folder)!r})"
    with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
        running = [
            pool.submit(kit.run_job, job, *arguments, first=first, **variables)
            for job, arguments, variables in tasks
        ]
        for task in concurrent.futures.as_completed(running):
            if task.exception():
                (folder / "failed").touch()
                task.result()
            if task is running[-1]:
                (folder / "ended").touch()
        return [task.result().stdout for task in running]


def end_with(folder: str) -> None:
    """Ends this process once another of its cluster has failed."""

    def watch() -> None:
        while not (Path(folder) / "failed").exists():
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def line_of(printed: str, word: str) -> str:
    """The only line of a process's output that begins with a word."""
    lines = [line for line in printed.splitlines() if line.startswith(word)]
    assert len(lines) == 1, printed
    return lines[0]


def assert_groups_were_used() -> None:
    """Asserts that this process used several groups, if it has several."""
    assert len(kit.groups_used()) > 1 or tf.cuda.stream_group_count() == 1


def make_server(spec: Spec, job: str, task: int, config: Any = None) -> Any:
    """A server of the cluster, in this process; deleting the object ends the server."""
    cluster = tf.train.ClusterSpec(spec)
    return tf.train.Server(cluster, job_name=job, task_index=task, config=config)


def worker_device(spec: Spec, task: int) -> Any:
    """Puts variables on the parameter server, and all else on a worker's GPU."""
    return tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(spec),
        worker_device=f"/job:worker/task:{task}/device:GPU:0",
        ps_device="/job:ps/device:CPU:0",
    )


def serve_until_the_client_ends(spec: Spec, job: str, task: int, folder: str) -> None:
    """A task that only serves."""
    server = make_server(spec, job, task)
    until((Path(folder) / "ended").exists, seconds=300)
    del server


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for a condition that another process fulfils."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


class Layers:
    """Some layers, with the loss and its training step, in a graph of their own."""

    def __init__(self, scoped: bool = False, device: str = "/GPU:0") -> None:
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(device):
            self.x = tf.placeholder(tf.float32, [None, 32], "x")
            weights = [
                tf.get_variable(f"w{i}", initializer=numbers(i, 32, 32), use_resource=True)
                for i in range(4)
            ]
            branches = []
            for i in range(2):
                with tf.stream(i + 1) if scoped else contextlib.nullcontext():
                    y = tf.tanh(self.x @ weights[2 * i])
                    branches.append(tf.sin(y @ weights[2 * i + 1]))
            self.y = tf.reduce_sum(branches[0] * branches[1], axis=1)
            self.loss = tf.reduce_mean(tf.square(self.y - 1.0))
            self.train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(self.loss)
            self.start = tf.global_variables_initializer()
            self.weights = weights


FEEDS = [numbers(100 + i, 8 + i, 32) for i in range(8)]
