# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
r"""How many queries a second does the model server answer?

Starts examples/serving/model_server.py with SavedModels, and has a load program in C++ send queries
by gRPC or REST, and compare every answer with what the model gives on one stream. Setups: stock
(none of our variables), with stream groups, with groups, captured steps and --lock-free, these with
--front, and with calls that share steps, whose answers may have other last bits.

    scripts/build_front.sh
    python benchmarks/model_server_load.py --models recommender,bert --clients 16 --seconds 5

Prints a row for each model, setup and number of server processes: queries a second, latencies in
milliseconds, CPU time of the servers for a query, the cores that all processes of the machine kept
busy, how much of the time the GPUs ran kernels, and wrong answers. Several servers share a GPU well
if the daemon of MPS runs (nvidia-cuda-mps-control -d).

Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing, and what
examples/serving/requirements.txt lists.

Exit status: 0; 1 if an answer is wrong or a server fails; 2 if the command line is not understood.
"""

import argparse
import contextlib
import itertools
import json
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
from bench.workloads import INPUTS, SIZES, WORKLOADS
from programs import names_of, whole, wholes

FOLDER = pathlib.Path(__file__).resolve().parent
SERVER = FOLDER.parent / "examples" / "serving" / "model_server.py"
# scripts/build_front.sh builds them.
FRONT = FOLDER.parent / "dist" / "front"
LOAD = FOLDER.parent / "dist" / "load"
SETUPS = ("stock", "groups", "captured", "front", "batches")
# DeepFM is the zoo's, of DeepCTR.
MODELS = (*(name for name, workload in WORKLOADS.items() if not workload.training), "deepfm")
START_SECONDS = 180
GPU_BUSY = (
    *("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"),
    "--loop=1",
)
COLUMNS = (
    "model,api,setup,servers,devices,groups,clients,rows,rate,queries_per_second,p50_ms,p99_ms,p999_ms,"
    "longest_ms,cpu_us,cores_busy,gpu_busy_percent,calls,other_bits,wrong"
)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--models", type=names_of(MODELS), default=["recommender"], help=f"of {', '.join(MODELS)}")
    add("--setups", type=names_of(SETUPS), default=SETUPS, help=f"of {', '.join(SETUPS)}")
    add("--api", choices=("grpc", "rest"), default="grpc", help="how queries come [grpc]")
    add("--groups", type=whole(2, 64), default=8, help="stream groups [8]")
    add("--servers", type=wholes(1, 64), default=[1], help="processes [1]")
    add("--clients", type=whole(1, 4096), default=16, help="connections, with a call each [16]")
    add("--threads", type=whole(1, 1024), default=16, help="of each server [16]")
    add("--devices", type=whole(1, 64), default=1, help="GPUs of each server [1]")
    add(
        "--rate",
        type=whole(0, 10**6),
        default=0,
        help="calls a second, at random times; 0: each client calls again at once [0]",
    )
    add("--rows", type=whole(0, 1 << 16), default=0, help="of a query; 0: as the model's [0]")
    add("--max-batch", type=whole(2, 4096), default=64, help="rows of a shared step [64]")
    add("--batch-steps", type=whole(1, 4096), default=4, help="shared steps at once [4]")
    add("--batch-timeout-us", type=whole(0, 10**7), default=0, help="a call's wait [0]")
    add("--seconds", type=whole(1, 600), default=5, help="of a run [5]")
    add("--size", choices=SIZES, default="full", help="of the models [full]")
    add("--save", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if max(options.servers) > options.clients:
        parser.error("--servers: more than --clients leave servers without a client")
    if not LOAD.exists():
        parser.error(f"{LOAD} is missing: scripts/build_front.sh builds it")
    return options


def variables_of(setup: str, groups: int) -> dict[str, str]:
    """The environment of a server."""
    inherited = {k: v for k, v in os.environ.items() if k != "TF_GPU_STREAM_GROUP_COUNT"}
    if setup != "stock":
        inherited["TF_GPU_STREAM_GROUP_COUNT"] = str(groups)
        inherited["TF_MULTI_STREAM_CAPTURE"] = "off" if setup == "groups" else "auto"
    return {"TF_FORCE_GPU_ALLOW_GROWTH": "true", **inherited, "TF_CPP_MIN_LOG_LEVEL": "2"}


def save(name: str, size: str, rows: int, folder: str, served_as: str) -> None:
    """Saves a model as version 1, requests, and the bytes of their answers, one at a time."""
    import tensorflow as tf  # noqa: PLC0415
    from tensorflow_serving.apis import predict_pb2  # noqa: PLC0415

    inputs = (save_deepfm if name == "deepfm" else save_workload)(name, size, rows, folder)
    with tf.device("/GPU:0"):
        signature = tf.saved_model.load(f"{folder}/model/1").signatures["serving_default"]
        for number, arrays in enumerate(inputs):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = served_as
            for key, array in arrays.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(array))
            file = pathlib.Path(folder) / str(number)
            file.with_suffix(".request").write_bytes(request.SerializeToString())
            columns = {key: array.tolist() for key, array in arrays.items()}
            file.with_suffix(".json").write_text(json.dumps({"inputs": columns}))
            file.with_suffix(".values").write_bytes(signature(**arrays)["y"].numpy().tobytes())


def save_workload(name: str, size: str, rows: int, folder: str) -> list[dict[str, np.ndarray]]:
    """Saves a model of the benchmark; returns inputs."""
    from bench import tensorflow_program  # noqa: PLC0415

    workload = WORKLOADS[name]
    tensorflow_program.save(workload, size, f"{folder}/model/1")
    return [{"x": x} for x in workload.inputs(size, rows or workload.batches[0])]


def save_deepfm(_: str, size: str, rows: int, folder: str) -> list[dict[str, np.ndarray]]:
    """Saves DeepCTR's DeepFM, with int32 ids; returns inputs."""
    import tensorflow as tf  # noqa: PLC0415
    from zoo import models  # noqa: PLC0415

    with tf.device("/GPU:0"):
        made = models.make("DeepCTR: DeepFM")
    batches = [made.inputs() for _ in range(INPUTS)]
    specs = {
        key: tf.TensorSpec([None, *x.shape[1:]], x.dtype, key) for key, x in batches[0].items()
    }

    @tf.function(input_signature=[specs])
    def serve(inputs: Any) -> Any:
        return {"y": made.keras(inputs, training=False)}

    tf.saved_model.save(made.keras, f"{folder}/model/1", signatures=serve)
    return [{key: x[: rows or 1] for key, x in batch.items()} for batch in batches]


def cpu_seconds(process: int) -> float:
    """CPU time that a process and its children have used; 0 if it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        tasks = pathlib.Path(f"/proc/{process}/task").glob("*/children")
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, children))


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


def ready_loads(
    stack: contextlib.ExitStack, commands: Sequence[Sequence[object]]
) -> list[subprocess.Popen[str]]:
    """Starts load programs, which end with the stack, and waits until they have warmed up."""
    loads = [
        stack.enter_context(
            running([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        for command in commands
    ]
    for load in loads:
        assert load.stdout is not None
        if load.stdout.readline() != "ready\n":
            raise RuntimeError("a load program failed; it says why above")
    return loads


def figures_of(loads: Sequence[subprocess.Popen[str]], seconds: float) -> list[dict[str, Any]]:
    """Has load programs measure, all at the same time, for so long; returns what they say."""
    try:
        for load in loads:
            assert load.stdin is not None
            load.stdin.write("\n")
            load.stdin.flush()
        return [json.loads(load.communicate(timeout=seconds + 120)[0]) for load in loads]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"a load program failed: {error}") from error


def load_servers(
    options: argparse.Namespace, addresses: Sequence[str], servers: Sequence[int], folder: str
) -> str:
    """Loads servers; returns the figures of the row."""
    each = str(options.clients // len(servers))
    rate = options.rate / len(servers)
    with contextlib.ExitStack() as stack:
        loads = ready_loads(
            stack,
            [[LOAD, address, folder, each, options.seconds, rate] for address in addresses],
        )
        cpu, cores, start = sum(map(cpu_seconds, servers)), core_seconds(), time.monotonic()
        gpu = None
        with contextlib.suppress(OSError):
            gpu = stack.enter_context(
                running(
                    [*GPU_BUSY, f"--id={','.join(map(str, range(options.devices)))}"],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )
        found = figures_of(loads, options.seconds)
        cpu = sum(map(cpu_seconds, servers)) - cpu
        cores = (core_seconds() - cores) / (time.monotonic() - start)
    samples: list[int] = []
    if gpu is not None:
        samples = [int(word) for word in gpu.communicate()[0].split() if word.isdigit()]
    calls, failed = (sum(figures[what] for figures in found) for what in ("calls", "failed"))
    if failed:
        raise RuntimeError(f"{failed} of {calls} calls failed, the last with {found[0]['error']}")
    busy = f"{np.mean(samples):.0f}" if samples else ""
    times = (max(figures[what] for figures in found) for what in ("p50", "p99", "p999", "longest"))
    return (
        f"{options.rows},{options.rate},{sum(x['per_second'] for x in found):.0f},"
        + ",".join(f"{milliseconds:.3f}" for milliseconds in times)
        + f",{cpu / calls * 1e6:.0f},{cores:.1f},{busy},{calls},"
        + ",".join(str(sum(x[what] for x in found)) for what in ("close", "wrong"))
    )


def address_of(api: str, server: subprocess.Popen[str], log: pathlib.Path) -> str:
    """Waits until a server serves; raises RuntimeError if it does not start."""
    end = time.monotonic() + START_SECONDS
    while not (found := re.search(r"ready: gRPC on (\S+), REST on (\S+)", log.read_text())):
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
        time.sleep(0.1)
    return found[1] if api == "grpc" else f"{found[2]}/v1/models/model:predict"


def run_setup(options: argparse.Namespace, setup: str, servers: int, folder: str) -> str:
    """Starts servers and loads them; returns the figures of its row."""
    command = [sys.executable, str(SERVER), "--port=0", "--rest-port=0"]
    command += [f"--model=model={folder}/model", f"--threads={options.threads}"]
    command += [f"--device=/GPU:{number}" for number in range(options.devices)]
    command += ["--lock-free"] if setup == "captured" else []
    command += [f"--front={FRONT}"] if setup in ("front", "batches") else []
    if setup == "batches":
        command += [f"--max-batch={options.max_batch}", f"--batch-steps={options.batch_steps}"]
        command += [f"--batch-timeout-us={options.batch_timeout_us}"]
    own = {"env": variables_of(setup, options.groups), "stderr": subprocess.STDOUT}
    logs = [pathlib.Path(folder) / f"server{number}.log" for number in range(servers)]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(log.open("w")) for log in logs]
        started = [stack.enter_context(running(command, stdout=file, **own)) for file in files]
        addresses = [address_of(options.api, *server) for server in zip(started, logs, strict=True)]
        return load_servers(options, addresses, [each.pid for each in started], folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program."""
    options = parse_arguments(arguments)
    if options.save:
        model, size, rows, folder, served_as = options.save
        save(model, size, int(rows), folder, served_as)
        return 0
    print(COLUMNS, flush=True)
    status = 0
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--save", model, options.size]
            command += [str(options.rows), folder, "model"]
            own = {"TF_USE_LEGACY_KERAS": "1"}  # for DeepCTR
            subprocess.run(command, env={**variables_of("stock", 1), **own}, check=True)
            for setup, servers in itertools.product(options.setups, options.servers):
                groups = 1 if setup == "stock" else options.groups
                try:
                    figures = run_setup(options, setup, servers, folder)
                except RuntimeError as error:
                    print(f"error: {model}, {setup}: {error}", file=sys.stderr)
                    return 1
                row = f"{model},{options.api},{setup},{servers},{options.devices},{groups}"
                print(f"{row},{options.clients},{figures}", flush=True)
                other_bits, wrong = figures.split(",")[-2:]
                status |= wrong != "0" or (setup != "batches" and other_bits != "0")
    return status


if __name__ == "__main__":
    sys.exit(main())
