# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
r"""How many queries a second does the model server answer?

Starts examples/serving/model_server.py with SavedModels, sends gRPC queries from threads of client
processes, and compares every answer with what the model gives on one stream: stock (none of our
variables), with stream groups, and with groups and captured steps.

    python benchmarks/model_server_load.py --models recommender,bert --clients 16 --seconds 5

Prints a row for each model, setup and number of server processes: queries a second, latencies in
milliseconds, CPU time of the servers for a query, the cores that all processes of the machine kept
busy, how much of the time the GPU ran kernels, and wrong answers. Client processes take the servers
in turn; several servers share a GPU well if the daemon of MPS runs (nvidia-cuda-mps-control -d).

Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing, and what
examples/serving/requirements.txt lists.

Exit status: 0; 1 if an answer is wrong or a server fails; 2 if the command line is not understood.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from bench.workloads import SIZES, WORKLOADS
from programs import names_of, whole, wholes

FOLDER = pathlib.Path(__file__).resolve().parent
SERVER = FOLDER.parent / "examples" / "serving" / "model_server.py"
SETUPS = ("stock", "groups", "captured")
MODELS = tuple(name for name, workload in WORKLOADS.items() if not workload.training)
START_SECONDS = 180
GPU_BUSY = (
    *("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"),
    *("--id=0", "--loop=1"),
)
COLUMNS = (
    "model,setup,servers,groups,clients,queries_per_second,p50_ms,p99_ms,longest_ms,cpu_us,"
    "cores_busy,gpu_busy_percent,wrong"
)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--models", type=names_of(MODELS), default=["recommender"], help=f"of {', '.join(MODELS)}")
    add("--setups", type=names_of(SETUPS), default=SETUPS, help=f"of {', '.join(SETUPS)}")
    add("--groups", type=whole(2, 64), default=8, help="stream groups [8]")
    add("--servers", type=wholes(1, 64), default=[1], help="processes [1]")
    add("--clients", type=whole(1, 1024), default=16, help="threads [16]")
    add("--processes", type=whole(1, 64), default=4, help="that they are in [4]")
    add("--seconds", type=whole(1, 600), default=5, help="of a run [5]")
    add("--size", choices=SIZES, default="full", help="of the models [full]")
    add("--save", nargs=3, help=argparse.SUPPRESS)
    add("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if max(options.servers) > min(options.processes, options.clients):
        parser.error("--servers: more than --processes or --clients leave servers without a client")
    return options


def variables_of(setup: str, groups: int) -> dict[str, str]:
    """The environment of a server."""
    inherited = {k: v for k, v in os.environ.items() if k != "TF_GPU_STREAM_GROUP_COUNT"}
    if setup != "stock":
        inherited["TF_GPU_STREAM_GROUP_COUNT"] = str(groups)
        inherited["TF_MULTI_STREAM_CAPTURE"] = "auto" if setup == "captured" else "off"
    return {"TF_FORCE_GPU_ALLOW_GROWTH": "true", **inherited, "TF_CPP_MIN_LOG_LEVEL": "2"}


def save(name: str, size: str, folder: str) -> None:
    """Saves a model as version 1, and inputs with what it answers to them, one at a time."""
    import tensorflow as tf  # noqa: PLC0415
    from bench import tensorflow_program  # noqa: PLC0415

    workload = WORKLOADS[name]
    tensorflow_program.save(workload, size, f"{folder}/model/1")
    inputs = workload.inputs(size, workload.batches[0])
    with tf.device("/GPU:0"):
        loaded = tf.saved_model.load(f"{folder}/model/1")
        answers = [loaded.signatures["serving_default"](x=x)["y"].numpy() for x in inputs]
    np.savez(f"{folder}/queries.npz", x=np.stack(inputs), y=np.stack(answers))


def run_client(options: argparse.Namespace, address: str, folder: str) -> None:
    """Sends queries from threads, once standard input says so; writes their times."""
    import grpc  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415
    from client_threads import run_checked  # noqa: PLC0415
    from tensorflow_serving.apis import (  # noqa: PLC0415
        predict_pb2,
        prediction_service_pb2_grpc,
    )

    queries = np.load(f"{folder}/queries.npz")
    requests = []
    for x in queries["x"]:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "model"
        request.inputs["x"].CopyFrom(tf.make_tensor_proto(x))
        requests.append(request)
    with grpc.insecure_channel(address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def call(request: Any) -> Any:
            return tf.make_ndarray(service.Predict(request, timeout=60).outputs["y"])

        expected = [y.tobytes() for y in queries["y"]]
        run_checked(call, requests, expected, options.clients, 1)  # kernels and recordings
        print("ready", flush=True)
        sys.stdin.readline()
        load, wrong = run_checked(call, requests, expected, options.clients, options.seconds)
    np.save(f"{folder}/times{os.getpid()}.npy", load.milliseconds)
    print(f"done {load.seconds} {wrong}", flush=True)


def cpu_seconds(process: int) -> float:
    """CPU time that a process has used."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def core_seconds() -> float:
    """CPU time that all processes of the machine have used."""
    words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq = (int(word) for word in words[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(command: Sequence[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the context."""
    process = subprocess.Popen(command, text=True, **more)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_clients(
    stack: contextlib.ExitStack, options: argparse.Namespace, addresses: Sequence[str], folder: str
) -> list[subprocess.Popen[str]]:
    """Starts processes that will query the servers, each one of them."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    processes = min(options.processes, options.clients)
    command = [sys.executable, __file__, "--seconds", str(options.seconds)]
    command += ["--clients", str(max(1, options.clients // processes)), "--client"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return [
        stack.enter_context(
            running([*command, addresses[i % len(addresses)], folder], env=environment, **pipes)
        )
        for i in range(processes)
    ]


def load_servers(
    clients: Sequence[subprocess.Popen[str]], servers: Sequence[int], folder: str, seconds: int
) -> str:
    """Loads servers from client processes; returns the figures of the row."""
    for client in clients:
        assert client.stdout is not None
        if client.stdout.readline() != "ready\n":
            raise RuntimeError("a client failed; it says why above")
    cpu, cores, start = sum(map(cpu_seconds, servers)), core_seconds(), time.monotonic()
    with contextlib.ExitStack() as stack:
        gpu = None
        with contextlib.suppress(OSError):
            gpu = stack.enter_context(
                running(GPU_BUSY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
        done = [client.communicate(timeout=seconds + 120)[0].split() for client in clients]
        cpu = sum(map(cpu_seconds, servers)) - cpu
        cores = (core_seconds() - cores) / (time.monotonic() - start)
    samples: list[int] = []
    if gpu is not None:
        samples = [int(word) for word in gpu.communicate()[0].split() if word.isdigit()]
    if any(len(words) != 3 for words in done):
        raise RuntimeError("a client failed; it says why above")
    files = list(pathlib.Path(folder).glob("times*.npy"))
    times = np.concatenate([np.load(file) for file in files])
    for file in files:
        file.unlink()
    longest = max(float(words[1]) for words in done)
    p50, p99 = np.percentile(times, [50, 99])
    wrong = sum(int(words[2]) for words in done)
    busy = f"{np.mean(samples):.0f}" if samples else ""
    return (
        f"{len(times) / longest:.0f},{p50:.3f},{p99:.3f},{times.max():.3f},"
        f"{cpu / len(times) * 1e6:.0f},{cores:.1f},{busy},{wrong}"
    )


def address_of(server: subprocess.Popen[str], log: pathlib.Path) -> str:
    """Waits until a server serves; raises RuntimeError if it does not start."""
    end = time.monotonic() + START_SECONDS
    while not (found := re.search(r"ready: gRPC on ([^\s,]+)", log.read_text())):
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
        time.sleep(0.1)
    return found[1]


def run_setup(options: argparse.Namespace, setup: str, servers: int, folder: str) -> str:
    """Starts servers and loads them; returns the figures of its row."""
    command = [sys.executable, str(SERVER), "--port=0", "--rest-port=0"]
    command += [f"--model=model={folder}/model", f"--threads={options.clients}"]
    command += ["--lock-free"] if setup == "captured" else []
    own = {"env": variables_of(setup, options.groups), "stderr": subprocess.STDOUT}
    logs = [pathlib.Path(folder) / f"server{number}.log" for number in range(servers)]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(log.open("w")) for log in logs]
        started = [stack.enter_context(running(command, stdout=file, **own)) for file in files]
        addresses = [address_of(*server) for server in zip(started, logs, strict=True)]
        clients = start_clients(stack, options, addresses, folder)
        return load_servers(clients, [each.pid for each in started], folder, options.seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program."""
    options = parse_arguments(arguments)
    if options.save:
        save(*options.save)
        return 0
    if options.client:
        run_client(options, *options.client)
        return 0
    print(COLUMNS, flush=True)
    status = 0
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--save", model, options.size, folder]
            subprocess.run(command, env=variables_of("stock", 1), check=True)
            for setup, servers in itertools.product(options.setups, options.servers):
                groups = 1 if setup == "stock" else options.groups
                try:
                    figures = run_setup(options, setup, servers, folder)
                except RuntimeError as error:
                    print(f"error: {model}, {setup}: {error}", file=sys.stderr)
                    return 1
                print(f"{model},{setup},{servers},{groups},{options.clients},{figures}", flush=True)
                status |= not figures.endswith(",0")
    return status


if __name__ == "__main__":
    sys.exit(main())
