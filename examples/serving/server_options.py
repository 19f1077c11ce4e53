# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The command line of the model server."""

import argparse
import importlib.util
import math
import os
import pathlib
import ssl
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

import batching
from batching import MOST_ROWS
from grpc_front import Share
from model_config import NAME, NAME_SAYS, why_not_prefix

# scripts/build_front.sh makes its wheel.
_FRONT_PACKAGE = "tensorflow-multistream-front"
_NEED_FRONT = f"--front, or the package {_FRONT_PACKAGE}"
_TRACING_PACKAGES = "examples/serving/requirements-tracing.txt"


def _number(
    kind: Callable[[str], float], low: float, high: float = math.inf
) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high or not math.isfinite(value):
            most = "" if high == math.inf else f" to {high}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low}{most}")
        return value

    return number


def _model(text: str) -> tuple[str, pathlib.Path]:
    name, equals, folder = text.partition("=")
    if not equals or not folder or not NAME.fullmatch(name):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FOLDER; {NAME_SAYS}")
    path = pathlib.Path(folder)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{folder} is not a folder")
    return name, path


def _share(text: str) -> tuple[str, Share]:
    name, _, rest = text.partition("=")
    values = Share()._asdict()
    lows = {"steps": 1, "queue": 0, "priority": -1000}
    try:
        for part in rest.split(","):
            key, _, number = part.partition(":")
            if not lows[key] <= int(number) <= 1_000_000:
                raise ValueError(part)
            values[key] = int(number)
    except (KeyError, ValueError):
        name = ""
    if not NAME.fullmatch(name):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=steps:N,queue:N,priority:N, with one or more of the three; "
            "steps are 1 or more, queue is 0 or more"
        )
    return name, Share(**values)


def _groups(text: str) -> tuple[str, range]:
    name, _, numbers = text.partition("=")
    first, dash, last = numbers.partition("-")
    if not NAME.fullmatch(name) or not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=GROUP or NAME=FIRST-LAST")
    groups = range(int(first), int(last or first) + 1)
    if not groups:
        raise argparse.ArgumentTypeError(f"{text!r} names no group: {first} is above {last}")
    return name, groups


def _prefix(text: str) -> str:
    why = why_not_prefix(text)
    if why:
        raise argparse.ArgumentTypeError(f"{text!r} {why}")
    return text


def _collector(text: str) -> str:
    url = urllib.parse.urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is not http://HOST:PORT or https://HOST:PORT")
    try:
        importlib.import_module("tracing")
    except ImportError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} needs more packages: pip install -r {_TRACING_PACKAGES} ({error})"
        ) from error
    return text


def _front(text: str) -> str | None:
    """The program of --front: None if Python answers calls."""
    if text == "none":
        return None
    if text == "installed":
        package = importlib.util.find_spec(_FRONT_PACKAGE.replace("-", "_"))
        if package is None or package.origin is None:
            return None
        text = os.path.join(os.path.dirname(package.origin), "front")
    if not os.access(text, os.X_OK):
        raise argparse.ArgumentTypeError(
            f"{text} is not a program; scripts/build_front.sh builds it, and says where it is"
        )
    return text


def _add_shared_steps(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--max-batch",
        type=_number(int, 1, MOST_ROWS),
        default=1,
        metavar="ROWS",
        help="have the calls of a signature whose rows are independent share steps of at most so "
        "many rows; needs --front",
    )
    add(
        "--batch-timeout-us",
        type=_number(int, 0, 10**7),
        default=0,
        help="the longest that a call waits for others to share its step, in microseconds; it "
        "does not wait if no step of its signature runs",
    )
    add(
        "--batch-steps",
        type=_number(int, 1, 4096),
        default=4,
        help="steps of a signature that run at once on each device, if calls share steps",
    )
    add(
        "--share",
        type=_share,
        action="append",
        default=[],
        metavar="NAME=steps:N,queue:N,priority:N",
        help="at most so many steps of a model run at once, so many of its calls wait, and calls "
        "of the highest priority (0 if not given) go first; needs --front; may be given for "
        "several models",
    )
    add(
        "--groups",
        type=_groups,
        action="append",
        default=[],
        metavar="NAME=FIRST-LAST",
        help="calls of a model run on these stream groups only; may be given for several models",
    )
    add(
        "--batching-parameters-file",
        type=pathlib.Path,
        metavar="FILE",
        help="TensorFlow Serving's file of batching parameters, instead of these options",
    )


def _add_sampling(add: Callable[..., Any]) -> None:
    share = _number(float, 0, 1)
    add(
        "--request-log",
        type=_prefix,
        metavar="PREFIX",
        help="log some calls of the models of --model, as PredictionLog messages in files of "
        "TFRecords, PREFIX.NAME.TIME.PROCESS",
    )
    add(
        "--request-log-rate",
        type=share,
        default=0.01,
        metavar="SHARE",
        help="the share of calls that --request-log logs, 0 to 1",
    )
    add(
        "--otlp-endpoint",
        type=_collector,
        metavar="URL",
        help="send OpenTelemetry traces of some calls to this collector, by OTLP over gRPC; needs "
        f"{_TRACING_PACKAGES}",
    )
    add(
        "--trace-rate",
        type=share,
        default=0.01,
        metavar="SHARE",
        help="the share of calls without a traceparent that --otlp-endpoint traces, 0 to 1",
    )


def _check_shared_steps(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    given = (options.max_batch, options.batch_timeout_us, options.batch_steps)
    options.batching = batching.batching(*given)
    if options.batching_parameters_file is not None:
        try:
            options.batching = batching.read(options.batching_parameters_file, *given)
        except ValueError as error:
            parser.error(f"--batching-parameters-file {error}")
    if options.batching.shares and options.front is None:
        parser.error(f"--max-batch and --batching-parameters-file need {_NEED_FRONT}")
    if options.batching.shares and options.no_warm_up:
        parser.error(
            "--max-batch and --batching-parameters-file need the warm-up, after which it is known "
            "which calls may share steps: leave --no-warm-up out"
        )
    for option in ("share", "groups"):
        names = [name for name, _ in getattr(options, option)]
        if len(set(names)) < len(names):
            parser.error(f"--{option} names a model twice: {', '.join(sorted(names))}")
    if options.share and options.front is None:
        parser.error(f"--share needs {_NEED_FRONT}")
    options.share = dict(options.share)
    options.groups = dict(options.groups)


def host_of(options: argparse.Namespace) -> str:
    """The host as an address has it before a port: of IPv6, in brackets."""
    return f"[{options.host}]" if ":" in options.host else str(options.host)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; ends the program with status 2 if it is wrong.

    In the result `model` has folders by name, `most_bytes` is --max-request-mb.
    """
    parser = argparse.ArgumentParser(
        prog="model_server.py",
        description="Serves SavedModels with TensorFlow Serving's gRPC and REST APIs; "
        "calls run on the stream groups of a GPU.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add, port = parser.add_argument, _number(int, 0, 65535)
    count, seconds = _number(int, 1), _number(float, 0.01)
    add(
        "--model",
        type=_model,
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a model, and its folder of numbered versions; may be given several times",
    )
    # Also by TensorFlow Serving's names.
    add(
        "--model-config-file",
        "--model_config_file",
        type=pathlib.Path,
        metavar="FILE",
        help="models, as a tensorflow.serving.ModelServerConfig in text format",
    )
    add(
        "--model-config-poll-seconds",
        "--model_config_file_poll_wait_seconds",
        type=_number(float, 0),
        default=0,
        help="time between two looks for changes of this file; 0: it is read once",
    )
    add(
        "--allow-version-labels-for-unavailable-models",
        "--allow_version_labels_for_unavailable_models",
        action="store_true",
        help="a new label may be given to a version that is not available",
    )
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=port, default=8500, help="of gRPC; 0 for any")
    add("--rest-port", type=port, default=8501, help="of REST and /metrics; 0 for any")
    add(
        "--threads",
        type=count,
        default=16,
        help="calls that run at once, or batches of calls that share a step",
    )
    add("--queue", type=_number(int, 0), default=256, help="calls that may wait for a thread")
    add(
        "--max-request-mb",
        type=_number(float, 0.001, 2047),
        default=64,
        help="the most that a request, and each of its tensors, may take, in MiB",
    )
    add(
        "--versions",
        type=count,
        default=1,
        help="versions that are served of a model, the newest ones, if its config has no policy",
    )
    add("--poll-seconds", type=seconds, default=2, help="time between two looks for new versions")
    add("--grace", type=_number(float, 0), default=30, help="seconds for calls in flight at a stop")
    add(
        "--call-timeout",
        type=seconds,
        default=60,
        help="the longest that a call may wait and run, in seconds, whatever its own deadline",
    )
    add(
        "--read-timeout",
        type=seconds,
        default=10,
        help="the longest that a client may take to begin HTTP/2, to send an HTTP head or body, or "
        "to read a part of an HTTP answer, in seconds",
    )
    add("--max-connections", type=count, default=4096, help="connections of each port at once")
    add("--tls-key", metavar="FILE", help="key in PEM, for both ports")
    add("--tls-certificate", metavar="FILE", help="certificate in PEM, for both ports")
    add(
        "--device",
        action="append",
        default=[],
        metavar="DEVICES",
        help="where models are, such as /GPU:1; several GPUs, such as /GPU:0,/GPU:1, or all-gpus, "
        "have all models each (default: /GPU:0 if there is one)",
    )
    add(
        "--lock-free",
        action="store_true",
        help="call by tf.cuda.serving_callable, which hardly holds Python's lock; a step that has "
        "begun is then not cancelled",
    )
    add(
        "--front",
        type=_front,
        default="installed",
        metavar="PROGRAM",
        help="have calls answered by this program, which scripts/build_front.sh builds; implies "
        f"--lock-free; none: Python answers (default: the program of {_FRONT_PACKAGE}, if that "
        "package is installed)",
    )
    _add_shared_steps(parser)
    _add_sampling(add)
    add("--no-warm-up", action="store_true", help="publish versions without calling them before")
    options = parser.parse_args(arguments)
    if not options.model and options.model_config_file is None:
        parser.error("give the models, by --model or --model-config-file")
    given, options.model = options.model, dict(options.model)
    if len(options.model) < len(given):
        parser.error("argument --model: a name is given twice")
    if (options.tls_key is None) != (options.tls_certificate is None):
        parser.error("--tls-key and --tls-certificate have to be given together")
    if options.tls_key is not None:
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(options.tls_certificate, options.tls_key)
        except OSError as error:
            parser.error(f"--tls-key {options.tls_key}, --tls-certificate: {error}")
    _check_shared_steps(options, parser)
    options.lock_free = options.lock_free or options.front is not None
    options.most_bytes = int(options.max_request_mb * (1 << 20))
    return options
