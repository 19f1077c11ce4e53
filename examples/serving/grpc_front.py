# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The ports of gRPC and REST in a process of its own, whose calls of Predict Python does not see.

clients -> front (front/main.cc) -> lanes, a thread each -> C++ (served_models.h) -> TensorFlow
               |
               +-> the servers in Python: other methods, and requests that are not plain
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import grpc
from batching import Batching
from tensorflow.python.multistream.serving.served_models import ServedModels

# Upper bounds of the histogram's buckets, in seconds.
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_LOOK_SECONDS = 0.1
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class Figures(NamedTuple):
    """What a front says of its calls, those that Python answers left out.

    `open` calls run or wait; `unsent` are those whose answer is not with gRPC, of all methods, and
    after `close` only those that had begun. `batched` calls may share steps, and were `batches` so
    far. `answers` has, by model and status, the sum of their
    seconds, and the counts of the buckets of SECONDS and of what is above them.
    """

    running: int = 0
    waiting: int = 0
    open: int = 0
    unsent: int = 0
    batches: int = 0
    batched: int = 0
    answers: tuple[tuple[str, str, float, list[int]], ...] = ()


class Share(NamedTuple):
    """What a model may take from others: steps at once, calls that wait; and its priority."""

    steps: int = 1_000_000
    queue: int = 1_000_000
    priority: int = 0


class Front:
    """The process. Raises OSError if it cannot be started, or cannot listen.

    `sockets` is the folder in which the servers in Python listen, on the files `grpc` and `rest`;
    `arguments` are more of main.cc's.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        sockets: str,
        models: ServedModels,
        model_names: Sequence[str],
        arguments: dict[str, int],
    ) -> None:
        self._lock = threading.Lock()
        self._figures = Figures()
        control, far_control = socket.socketpair()
        lanes = [socket.socketpair() for _ in range(options.threads)]
        far = [far_control, *(far_lane for _, far_lane in lanes)]
        given: dict[str, Any] = {
            "host": options.host,
            "port": options.port,
            "rest-port": options.rest_port,
            "python": f"unix:{sockets}/grpc",
            "python-rest": f"{sockets}/rest",
            "control": far_control.fileno(),
            "lanes": ",".join(str(far_lane.fileno()) for _, far_lane in lanes),
            "queue": options.queue,
            "call-timeout": options.call_timeout,
            "most-bytes": options.most_bytes,
            "max-connections": options.max_connections,
            "tls-key": options.tls_key or "",
            "tls-certificate": options.tls_certificate or "",
            "models": ",".join(model_names),
            "seconds": ",".join(map(str, SECONDS)),
            **arguments,
        }
        self._process = subprocess.Popen(
            [options.front, *(f"--{name}={value}" for name, value in given.items())],
            pass_fds=[connection.fileno() for connection in far],
            stdin=subprocess.DEVNULL,
            # Of broken clients gRPC would write lines, with the bytes that they have sent.
            env={"GRPC_VERBOSITY": "NONE", **os.environ},
        )
        for connection in far:
            connection.close()
        self._control = control
        self._lines = control.makefile("r")
        word, _, rest = self._lines.readline().strip().partition(" ")
        if word != "listening":
            raise OSError(rest or f"{options.front} ended with {self._process.wait()}")
        port, rest_port, frames = rest.split(" ")
        if frames != str(models.frames()):
            self._process.kill()
            raise OSError(
                f"{options.front} (--front) is not of the same build as the installed TensorFlow: "
                "scripts/build_front.sh builds it anew"
            )
        self.port = int(port)
        self.rest_port = int(rest_port)
        for near, _ in lanes:
            threading.Thread(target=models.answer, args=(near,), name="lane", daemon=True).start()

    def process(self) -> int:
        """Its number."""
        return self._process.pid

    async def ended(self) -> None:
        """Returns when the process has ended."""
        while self._process.poll() is None:
            await asyncio.sleep(_LOOK_SECONDS)

    def drain(self) -> None:
        """Has it answer new calls of Predict with UNAVAILABLE."""
        self.say("drain")

    def close(self) -> None:
        """Has it answer all calls of Predict with UNAVAILABLE, also those that run."""
        self.say("close")

    def name_models(self, names: Sequence[str]) -> None:
        """Says which models its figures may name; calls of others count with an empty name."""
        self.say(f"models {','.join(names)}")

    def batch(self, model: str, signature: str, batching: Batching) -> None:
        """Has calls of a model's signature share steps from now on, or not."""
        limits = f"{batching.sizes[-1]} {batching.wait_us} {batching.steps}"
        self.say(f"batch {model} {signature} {limits}")

    def serve(
        self, model: str, version: int, signatures: Mapping[str, Mapping[str, int]] | None
    ) -> None:
        """Says which dtypes the inputs of a version's signatures have; None: it is not served."""
        said: dict[str, Any] = {"model": model, "version": version}
        if signatures is not None:
            said["signatures"] = signatures
        self.say(f"version {json.dumps(said)}")

    def share(self, model: str, share: Share) -> None:
        """Limits a model from now on, and has calls of the highest priority go first."""
        self.say(f"share {model} {share.steps} {share.queue} {share.priority}")

    def sample(self, model: str, share: float) -> None:
        """Has it pass a share of a model's calls to Python, with the metadata x-sampled."""
        self.say(f"sample {model} {share:.9g}")

    def trace(self) -> None:
        """Has it pass to Python the calls whose `traceparent` says that they are sampled."""
        self.say("trace 1")

    def figures(self) -> Figures:
        """What it says now; if it has ended, what it has said last, without calls that are open."""
        with self._lock:
            self._say("stats")
            try:
                found = json.loads(self._lines.readline())
                found["answers"] = tuple((m, _CODES[c], *rest) for m, c, *rest in found["answers"])
                self._figures = Figures(**found)
            except (OSError, ValueError):
                self._figures = self._figures._replace(running=0, waiting=0, open=0, unsent=0)
            return self._figures

    def say(self, line: str) -> None:
        """Says a line that main.cc knows."""
        with self._lock:  # a long line in one piece
            self._say(line)

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self._control.sendall(f"{line}\n".encode())
