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
# As stock TensorFlow runs on an emulated GPU.
ONE_STREAM = {**GRAPH_LEVEL, "TF_GPU_STREAM_GROUP_COUNT": "1"}


def numbers(seed: int, *shape: int) -> Any:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32) / 8


FIRST_PORT = 10_000
# One after the other, so that none is given twice, and far from those of other processes.
offsets = itertools.count(os.getpid() * 101)


def free_port() -> int:
    """A free port that no connection takes for its own end.

    Those that the system chooses are in the range that it takes such ends from: one of them may be
    gone by the time that a server wants it.
    """
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    for offset in itertools.islice(offsets, 1000):
        port = FIRST_PORT + offset % (end - FIRST_PORT)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"none of 1,000 ports from {FIRST_PORT} to {end} is free")


def make_spec(**tasks: int) -> Spec:
    """Addresses for that many tasks of each job."""
    return {job: [f"127.0.0.1:{free_port()}" for _ in range(count)] for job, count in tasks.items()}


def run_all(tasks: Sequence[Task], folder: Path) -> list[str]:
    """Runs each task in a process of its own, all at the same time; returns what they print.

    The last one is the client. Once it has ended, those end that serve; once any has failed, all,
    which could wait for it as long as their test may take.
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
    """The line of a process that begins with a word; there is one."""
    lines = [line for line in printed.splitlines() if line.startswith(word)]
    assert len(lines) == 1, printed
    return lines[0]


def assert_groups_were_used() -> None:
    """By this process, if it has more than one."""
    assert len(kit.groups_used()) > 1 or tf.cuda.stream_group_count() == 1


def make_server(spec: Spec, job: str, task: int, config: Any = None) -> Any:
    """A server of the cluster, in this process, for as long as it lives."""
    cluster = tf.train.ClusterSpec(spec)
    return tf.train.Server(cluster, job_name=job, task_index=task, config=config)


def serve_until_the_client_ends(spec: Spec, job: str, task: int, folder: str) -> None:
    """A task that only serves."""
    server = make_server(spec, job, task)
    until((Path(folder) / "ended").exists, seconds=300)
    del server


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
