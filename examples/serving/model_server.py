# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Serves SavedModels with TensorFlow Serving's gRPC and REST APIs, on the stream groups of a GPU.

    pip install -r examples/serving/requirements.txt
    TF_GPU_STREAM_GROUP_COUNT=8 python examples/serving/model_server.py --model NAME=FOLDER

docs/model-server.md says what it does. This file starts it, and ends it at SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import pathlib
import resource
import signal
import sys
import time

import tensorflow as tf
from call_queue import CallQueue
from grpc_api import GrpcServer
from http_guard import HttpServer
from loaded_model import LoadedModel
from model_versions import Model, Models
from predict_calls import Calls
from request_memory import RequestMemory
from rest_api import RestApi
from server_metrics import ServerMetrics
from server_options import Options, parse

_END_SECONDS = 5.0  # for steps that were cancelled
_SEND_SECONDS = 1.0  # for the last answers


def _loaded_models(options: Options) -> Models:
    """Loads what is to be served at first.

    Raises:
      OSError: a model has no version that can be loaded.
    """
    has_gpu = bool(tf.config.list_logical_devices("GPU"))
    device = options.device or ("/GPU:0" if has_gpu else "/CPU:0")

    def load(folder: pathlib.Path) -> LoadedModel:
        loaded = LoadedModel(folder, device, options.lock_free)
        if options.warm_up:
            loaded.warm_up()
        return loaded

    models, errors = {}, []
    for name, folder in options.models.items():
        model = models[name] = Model(name, folder, options.versions, load)
        model.poll()
        if not model.served():
            failed = "; ".join(f"version {v.number}: {v.error}" for v in model.statuses())
            errors.append(
                f"--model {name}={folder}: "
                + (
                    failed
                    or "it has no version, a folder with a number for a name and a SavedModel"
                )
            )
    if errors:
        raise OSError("\n".join(errors))
    return Models(models, options.poll_seconds)


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))


async def _serve(options: Options, models: Models, queue: CallQueue) -> None:
    """Answers until SIGTERM or SIGINT, then until calls in flight are answered; ends the process.

    Raises:
      OSError: a port cannot be listened on.
    """
    metrics = ServerMetrics(
        lambda: queue.running,
        lambda: queue.waiting,
        lambda: [(model.name, number) for model in models for number in model.served()],
    )
    calls = Calls(models, queue, metrics, options.call_seconds)
    host = f"[{options.host}]" if ":" in options.host else options.host
    certificate = None
    if options.tls_key and options.tls_certificate:
        certificate = (
            pathlib.Path(options.tls_key).read_bytes(),
            pathlib.Path(options.tls_certificate).read_bytes(),
        )
    memory = RequestMemory(options.most_bytes)
    grpc_server = GrpcServer(
        calls,
        memory,
        f"{host}:{options.port}",
        options.most_bytes,
        options.most_connections,
        options.read_seconds,
        certificate,
    )
    rest = RestApi(calls, memory, options.most_bytes, options.read_seconds)
    http_server = HttpServer(
        rest.application,
        options.host,
        options.rest_port,
        options.most_connections,
        options.read_seconds,
        options.tls_key,
        options.tls_certificate,
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await grpc_server.start()
    await http_server.start()
    models.start()
    scheme = "https" if certificate else "http"
    print(
        f"ready: gRPC on {host}:{grpc_server.port}, REST on {scheme}://{host}:{http_server.port}",
        flush=True,
    )
    ended = {
        asyncio.ensure_future(waits): what
        for what, waits in (
            ("", stopped.wait()),
            ("gRPC", grpc_server.ended()),
            ("REST", http_server.ended()),
        )
    }
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    failed = [what for waits, what in ended.items() if what and waits.done()]
    until = time.monotonic() + options.grace
    await grpc_server.not_serving()
    await calls.drain(until)
    # Those that outlast the grace are told so. Their steps are cancelled, which takes a moment.
    ended = await asyncio.to_thread(queue.close, _END_SECONDS)
    await asyncio.gather(
        grpc_server.sent(max(until, time.monotonic() + _SEND_SECONDS)), http_server.stop(until)
    )
    ended = await asyncio.to_thread(models.stop, _END_SECONDS) and ended
    answered = ", ".join(f"{status} {n}" for status, n in sorted(metrics.statuses.items()))
    logging.info("calls answered: %s", answered or "none")
    if not ended:
        logging.warning("a step or a load goes on; the process ends without it")
    if failed:  # half a server that lives on would never be started again
        logging.error("%s failed, and its port is closed: start it again", " and ".join(failed))
    logging.info("stopped")
    logging.shutdown()
    # At once: to stop gRPC, or to end its tasks, would tell clients CANCELLED (GrpcServer.sent).
    os._exit(1 if failed else 0)


def main() -> None:
    """Runs the server."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    options = parse()
    _allow_many_connections()
    # Dropping a version collects garbage: not among all that importing TensorFlow has made.
    gc.collect()
    gc.freeze()
    try:
        models = _loaded_models(options)
        queue = CallQueue(options.threads, options.queue)
        asyncio.run(_serve(options, models, queue))
    except OSError as error:
        sys.exit(f"model_server.py: {error}")


if __name__ == "__main__":
    main()
