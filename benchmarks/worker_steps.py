# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
r"""What does a step cost that reaches its GPU through TensorFlow's distributed runtime?

The same steps, of many small kernels and a tensor that comes and goes, from client threads: to a
session of the process (direct), to a server of the process (local), and to a server of another
process (rpc); each with one stream and with stream groups.

    python benchmarks/worker_steps.py --groups 8 --threads 8 --sizes 4096,1048576,16777216

Each setting has processes of its own and gives a row of the table: steps a second, and milliseconds
of a step; the CPU time is that of the clients' process. Every result is compared with that of one
thread, and these with each other. Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times
mean nothing.

Exit status: 0; 1 if a run fails or a result is wrong; 2 if the command line is not understood.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from client_threads import Load, run_checked
from option_types import whole

MODES = ("direct", "local", "rpc")
COLUMNS = "mode,groups,threads,bytes,steps_per_second,p50_ms,p99_ms,longest_ms,cpu_us,steps"
LAYERS = 40
WIDTH = 16
INPUTS = 4


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--groups", type=whole(1, 64), default=8, help="beside one stream [8]")
    parser.add_argument("--threads", type=whole(1, 256), default=8, help="that send steps [8]")
    parser.add_argument("--sizes", default="4096,1048576", help="bytes fed and fetched, by commas")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a run [3]")
    parser.add_argument("--rounds", type=whole(1, 100), default=1, help="of all settings, in turn")
    parser.add_argument("--here", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        options.sizes = [int(size) for size in options.sizes.split(",")]
    except ValueError:
        parser.error(f"--sizes {options.sizes}: whole numbers, separated by commas")
    if not 0 < options.seconds <= 600:
        parser.error(f"--seconds {options.seconds}: above 0, at most 600")
    if min(options.sizes) < 4 * WIDTH:
        parser.error(f"--sizes: at least {4 * WIDTH}")
    return options


def make_step(tf: Any, device: str, size: int) -> tuple[Any, Callable[[Any, np.ndarray], Any]]:
    """Makes a graph.

    Args:
        tf: tensorflow.compat.v1.
        device: where it runs.
        size: of its input and of its output, in bytes.

    Returns:
        It, and what runs a step of it in a session: an input of shape [size / 64, 16] gives an
        output of the same shape.
    """
    random = np.random.RandomState(1)
    with tf.Graph().as_default() as graph, tf.device(device):
        x = tf.placeholder(tf.float32, [None, WIDTH])
        y = x[:1]
        for _ in range(LAYERS):
            y = tf.tanh(tf.matmul(y, tf.constant(random.randn(WIDTH, WIDTH).astype(np.float32))))
        output = x * y
    return graph, lambda session, rows: session.run(output, {x: rows})


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def serve(port: int) -> None:
    """Serves until standard input ends."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415

    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{port}"]})
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    print("serves", flush=True)
    sys.stdin.read()
    del server
    os._exit(0)  # a server does not end


def measure(options: argparse.Namespace, mode: str, target: str) -> tuple[Load, str]:
    """Runs steps of one size.

    Returns:
        What the clients measured, and a digest of the results.

    Raises:
        RuntimeError: a result was wrong.
    """
    import tensorflow.compat.v1 as tf  # noqa: PLC0415

    server = tf.train.Server.create_local_server() if mode == "local" else None
    if server is not None:
        target = server.target
    size = options.sizes[0]
    device = "/job:worker/task:0/device:GPU:0" if mode == "rpc" else "/device:GPU:0"
    graph, run = make_step(tf, device, size)
    inputs = [
        np.random.RandomState(i).randn(size // (4 * WIDTH), WIDTH).astype(np.float32)
        for i in range(INPUTS)
    ]
    with tf.Session(target, graph=graph) as session:
        expected = [run(session, rows).tobytes() for rows in inputs]
        for _ in range(2):  # the first of them on each group makes its kernels ready
            load, wrong = run_checked(
                lambda rows: run(session, rows),
                inputs,
                expected,
                options.threads,
                options.seconds / 2,
            )
    if wrong:
        raise RuntimeError(f"{wrong} of {load.calls} results are not those of one thread")
    return load, hashlib.sha256(b"".join(expected)).hexdigest()


def run_here(options: argparse.Namespace) -> None:
    """One setting, in this process and, for rpc, another one."""
    if options.here != "rpc":
        load, digest = measure(options, options.here, "")
    else:
        port = free_port()
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        if server.stdout.readline() != "serves\n":
            raise RuntimeError("the server did not start; it says why above")
        # The client has no GPU.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        for name in ("TF_MULTI_STREAM_EMULATED_GPUS", "TF_GPU_STREAM_GROUP_COUNT"):
            os.environ.pop(name, None)
        load, digest = measure(options, "rpc", f"grpc://127.0.0.1:{port}")
        server.communicate("")
    print(f"row {load.csv} {digest}")


def run_setting(options: argparse.Namespace, mode: str, groups: int, size: int) -> tuple[str, str]:
    """Runs a setting in a process of its own.

    Returns:
        Its row of the table, and the digest of its results.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, __file__, "--here", mode, "--sizes", str(size)]
    command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_GPU_STREAM_GROUP_COUNT": str(groups),
        "TF_NODE_LEVEL_MULTISTREAM": "false",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith("row ")]
    if done.returncode != 0 or len(rows) != 1:
        raise RuntimeError(f"{mode}, {groups} groups, {size} bytes: {done.stderr[-2000:]}")
    _, figures, digest = rows[0].split(" ")
    return f"{mode},{groups},{options.threads},{size},{figures}", digest


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program."""
    options = parse_arguments(arguments)
    if options.serve:
        serve(options.serve)
    if options.here:
        run_here(options)
        return 0
    print(COLUMNS, flush=True)
    digests: dict[int, str] = {}
    for _ in range(options.rounds):
        for size in options.sizes:
            for mode in MODES:
                for groups in sorted({1, options.groups}):
                    try:
                        row, digest = run_setting(options, mode, groups, size)
                    except RuntimeError as error:
                        print(f"error: {error}", file=sys.stderr)
                        return 1
                    print(row, flush=True)
                    if digests.setdefault(size, digest) != digest:
                        print(f"error: {row}: other results than the first", file=sys.stderr)
                        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
