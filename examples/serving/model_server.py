# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Serves SavedModels with TensorFlow Serving's gRPC and REST APIs, on the stream groups of GPUs.

    pip install -r examples/serving/requirements.txt
    TF_GPU_STREAM_GROUP_COUNT=8 python examples/serving/model_server.py --model NAME=FOLDER

docs/model-server.md says what it does. This file starts it, and ends it at SIGTERM.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time

import tensorflow as tf
from call_queue import CallQueue
from config_file import ConfigFile
from device_names import devices_of, stream_groups_of
from front_models import FrontModels
from grpc_api import GrpcServer
from http_guard import HttpServer, url_of
from loaded_model import LoadedModel
from models import Models
from predict_calls import Calls
from request_log import RequestLog
from request_memory import RequestMemory
from rest_api import RestApi
from server_metrics import ServerMetrics
from server_options import parse
from serving_error import ServingError
from tensorflow.python.multistream.serving.served_models import Devices

_END_SECONDS = 5.0  # for steps that were cancelled
_SEND_SECONDS = 1.0  # for the last answers
_LOG_SECONDS = 5.0  # for the last logs of requests, and for the last traces
_LOGGED_REQUESTS = 4  # times --max-request-mb that calls which wait to be logged may take


def _loaded_models(
    options: argparse.Namespace, devices: Devices, served: FrontModels | None
) -> tuple[Models, ConfigFile]:
    """Loads what is to be served at first; OSError if that is wrong, or does not load."""

    def load(name: str, folder: pathlib.Path) -> LoadedModel:
        sizes = options.batching.sizes if options.batching.shares else ()
        how = (options.lock_free, options.most_bytes, sizes, options.groups.get(name))
        loaded = LoadedModel(folder, devices, *how)
        if not options.no_warm_up:
            loaded.warm_up()
        return loaded

    models = Models(load, served, options.allow_version_labels_for_unavailable_models)
    file = ConfigFile(options, models)
    try:
        file.apply()
    except ServingError as error:
        raise OSError(error.message) from error
    return models, file


async def _serve(
    options: argparse.Namespace,
    models: Models,
    file: ConfigFile,
    queue: CallQueue,
    served: FrontModels | None,
) -> None:
    """Answers until SIGTERM or SIGINT, then the calls in flight; ends the process."""
    metrics = ServerMetrics(queue, models)
    request_log = metrics.request_log = RequestLog(_LOGGED_REQUESTS * options.most_bytes)
    traces = None
    if options.otlp_endpoint is not None:
        from tracing import Traces  # noqa: PLC0415 (its packages are optional)

        traces = Traces(options.otlp_endpoint, options.trace_rate)
    calls = Calls(models, queue, metrics, options.call_timeout, request_log, traces)
    memory = RequestMemory(options.most_bytes)
    # A folder that only this user may enter: its files are a way past TLS.
    sockets = tempfile.TemporaryDirectory()
    grpc_server = GrpcServer(calls, memory, options, served, sockets.name)
    rest_file = "" if served is None else f"{sockets.name}/rest"
    http_server = HttpServer(RestApi(calls, memory, options).application, options, rest_file)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await http_server.start()
    await grpc_server.start()
    url = http_server.url if served is None else url_of(options, grpc_server.rest_port)
    models.every(options.poll_seconds, models.poll)
    if options.model_config_poll_seconds and options.model_config_file is not None:
        models.every(options.model_config_poll_seconds, file.look)
    print(f"ready: gRPC on {grpc_server.address}, REST on {url}", flush=True)
    ends = {"": stopped.wait(), "gRPC": grpc_server.ended(), "REST": http_server.ended()}
    ended = {asyncio.ensure_future(waits): what for what, waits in ends.items()}
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    failed = [what for waits, what in ended.items() if what and waits.done()]
    until = time.monotonic() + options.grace
    await grpc_server.not_serving()
    await calls.drain(until)
    # Those that outlast the grace are told so. Their steps are cancelled, which takes a moment.
    all_ended = all(
        await asyncio.gather(queue.close(_END_SECONDS), grpc_server.close(_END_SECONDS))
    )
    await asyncio.gather(
        grpc_server.sent(max(until, time.monotonic() + _SEND_SECONDS)), http_server.stop(until)
    )
    all_ended = await asyncio.to_thread(models.stop, _END_SECONDS) and all_ended
    for what, of_calls in (("requests were logged", request_log), ("traces were sent", traces)):
        if of_calls and not await asyncio.to_thread(of_calls.close, _LOG_SECONDS):
            logging.warning("not all sampled %s within %s s", what, _LOG_SECONDS)
    sockets.cleanup()
    answered = ", ".join(f"{status} {n}" for status, n in sorted(metrics.statuses().items()))
    logging.info("calls answered: %s", answered or "none")
    if not all_ended:
        logging.warning("a step or a load goes on; the process ends without it")
    if failed:  # half a server that lives on would never be started again
        logging.error("%s failed, and its port is closed: start it again", " and ".join(failed))
    logging.info("stopped")
    logging.shutdown()
    # At once: to stop gRPC, or to end its tasks, would tell clients CANCELLED (GrpcServer.sent).
    os._exit(1 if failed else 0)


def _check_groups(options: argparse.Namespace, devices: Devices) -> None:
    for name, groups in options.groups.items():
        for device in devices.names:
            if device.startswith("/CPU") or not tf.cuda.multi_stream_is_enabled():
                continue  # without effect
            count = stream_groups_of(device)
            if groups[-1] >= count:
                raise OSError(
                    f"--groups {name}: there is no stream group {groups[-1]} on {device}, which "
                    f"has {count}"
                )


def _warn_of_names(options: argparse.Namespace, models: Models) -> None:
    for option in ("groups", "share"):
        for name in getattr(options, option).keys() - set(models.names):
            logging.warning("--%s %s: no model has this name", option, name)


def main() -> None:
    """Runs the server."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    options = parse()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # many connections
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    # Dropping a version collects garbage: not among all that importing TensorFlow has made.
    gc.collect()
    gc.freeze()
    try:
        devices = Devices(devices_of(options.device))
        _check_groups(options, devices)
        # The front counts the steps of all devices together.
        steps = options.batching.steps * len(devices.names)
        batching = options.batching._replace(steps=steps)
        served = FrontModels(batching) if options.front is not None else None
        models, file = _loaded_models(options, devices, served)
        _warn_of_names(options, models)
        queue = CallQueue(options.threads, options.queue)
        asyncio.run(_serve(options, models, file, queue, served))
    except OSError as error:
        sys.exit(f"model_server.py: {error}")


if __name__ == "__main__":
    main()
