# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a test's code in a separate process, since a process makes stream groups only once.

    run, ok      code with the multi-stream variables that the test gives, and no others
    run_program  likewise, a program's file
    run_checks   code of concurrent calls on four groups, between PROLOGUE and EPILOGUE
    run_job      a function of the test's file, at node level
    in_process   decorates a test whose whole body is such a function

A process is forked from a server that has imported TensorFlow in the same environment without the
runtime's variables; the forked process reads these itself (fork_server.py). Tests of imports or of
forks use the fixture `fresh_processes`, which forks nothing.

The groups are those of an emulated GPU. On a machine with a GPU, TFMS_TEST_GPU=1 runs the same code
on the GPU, in processes that are not forked; TFMS_TEST_STEPS, TFMS_TEST_SIZE and TFMS_TEST_THREADS
scale the work of run_checks.
"""

import collections
import contextlib
import functools
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from multistream.testing.fork_server import ForkServer

GPU = "/GPU:0"
GROUPS = 4
ON_GPU = os.environ.get("TFMS_TEST_GPU") == "1"
STEPS = int(os.environ.get("TFMS_TEST_STEPS", "60"))
SIZE = int(os.environ.get("TFMS_TEST_SIZE", "4096"))
THREADS = int(os.environ.get("TFMS_TEST_THREADS", "6"))
# Where Python finds this package.
PACKAGES = str(Path(__file__).resolve().parents[2])
PROGRAMS = int(os.environ.get("TFMS_TEST_PROGRAMS", "1"))  # factor on the random programs

# Variables that TensorFlow reads when it makes a device or runs an op, so that a forked process may
# set them as it sets the runtime's.
READ_LATE = {"TF_DETERMINISTIC_OPS", "TF_FORCE_GPU_ALLOW_GROWTH"}

forks = not ON_GPU  # the fixture fresh_processes sets it to False
_making_server = threading.Lock()


def python(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout: float,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `python ARGUMENTS` in a process with this environment and no other.

    The arguments begin with "-c" and code, or with a file's path.
    """
    # Without the test's name, tests with equal environments share a server.
    environment = {k: v for k, v in environment.items() if k != "PYTEST_CURRENT_TEST"}
    if forks:
        ours = runtime_variables() | READ_LATE
        variables = {k: v for k, v in environment.items() if k in ours}
        rest = frozenset((k, v) for k, v in environment.items() if k not in ours)
        with contextlib.suppress(ImportError):  # the unforked process below shows the reason
            with _making_server:
                server = _server(rest)
            where = str(folder) if folder else None
            done: subprocess.CompletedProcess[str] = server.run(
                arguments, timeout, variables, where
            )
            return done
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@functools.cache
def runtime_variables() -> frozenset[str]:
    """The runtime's variables. At import, only the runtime library reads them."""
    runtime = Path(__file__).parents[4] / "tensorflow/core/common_runtime/multistream"
    names = re.findall(
        r"k\w+Variable\[\]\s*=\s*\"(TF_\w+)", (runtime / "base/options.h").read_text()
    )
    return frozenset(names)


@functools.lru_cache(maxsize=4)  # each server holds 300 MB
def _server(environment: frozenset[tuple[str, str]]) -> ForkServer:
    return ForkServer(dict(environment))


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process with these multi-stream variables and no others."""
    return run_program(["-c", textwrap.dedent(code)], **environment)


def run_program(
    arguments: Sequence[str | Path], folder: Path | None = None, /, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Like run, with arguments of Python: a program's path, or "-c" and code, and its own."""
    given = {**inherited(), **environment}
    return python([str(argument) for argument in arguments], given, 600, folder)


def inherited() -> dict[str, str]:
    """This process's environment without TensorFlow's variables; processes log warnings."""
    unwanted = ("TF_", "PROTOCOL_BUFFERS_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    if ON_GPU:  # tests run side by side
        clean["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    return {**clean, "TF_CPP_MIN_LOG_LEVEL": "1"}


def ok(code: str, **environment: str) -> str:
    """Like run, for code that must succeed; returns what it prints."""
    done = run(code, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


PROLOGUE = f"""
import collections, functools, os, sys, threading, time
import numpy as np
import tensorflow as tf
from tensorflow.python.multistream import loader
sys.path.insert(0, {PACKAGES!r})
from multistream.testing import kit
from multistream.testing.kit import (
    GPU, SIZE, STEPS, THREADS, batches, check, check_calls, eventually, fails, run_clients,
    run_threads, wrong)

tf1 = tf.compat.v1
"""

# For tests of captured steps, after PROLOGUE.
CAPTURE_HELPERS = """
rng = np.random.default_rng(1)

def floats(*shape, dtype=np.float32):
    return rng.normal(0, 1, shape).astype(dtype)

def total(counter):
    return sum(getattr(group, counter) for group in tf.cuda.stream_stats())

def replayed():
    return total("steps_replayed")

def bits(results):
    return [(np.shape(r), np.asarray(r).tobytes()) for r in tf.nest.flatten(results)]

def on_gpu(function):
    @tf.function(autograph=False)
    def placed(*arguments):
        with tf.device(GPU):
            return tf.nest.map_structure(tf.identity, function(*arguments))
    return placed

def both_ways(function):
    # The function captured, and not.
    return [tf.cuda.captured(mode=mode)(function) for mode in ("auto", "off")]

def expect(name, function, *arguments, captured=True, runs=12):
    # The first calls run uncaptured; later ones give the same bits.
    before = replayed()
    first = bits(function(*arguments))
    for _ in range(runs):
        check(bits(function(*arguments)) == first, name)
    right = (replayed() > before) == captured
    check(right, right or f"{name}: {tf.cuda.capture_report()}")

def compare(name, function, *draws, captured=True, runs=12, of="steps_replayed"):
    # Each call has other numbers. `captured`: whether steps (or what `of` counts) are replayed.
    sides = both_ways(on_gpu(function))
    before = total(of)
    for _ in range(runs):
        arguments = [draw() for draw in draws]
        replay, step = (bits(side(*arguments)) for side in sides)
        check(replay == step, name)
    right = captured is None or (total(of) > before) == captured
    check(right, right or f"{name}: {tf.cuda.capture_report()}")

def alike(name, make, *inputs, runs=24, captured=True, between=lambda i, variables: None):
    # `make` gives a function and the variables that it changes; once captured, and once not.
    # `between` may change the variables after each call.
    sides = []
    for mode in ("auto", "off"):
        with tf.device(GPU):
            function, variables = make()
        sides.append((tf.cuda.captured(mode=mode)(function), variables))
    for i in range(runs):
        results = [bits(function(*inputs[i % len(inputs)])) for function, _ in sides]
        check(results[0] == results[1], f"{name}: results")
        if i % 10 == 5 or i > runs - 3:
            values = [bits([v.numpy() for v in variables]) for _, variables in sides]
            check(values[0] == values[1], f"{name}: variables")
        for _, variables in sides:
            between(i, variables)
    report = tf.cuda.capture_report(sides[0][0], *inputs[0])
    right = captured is None or (report.replayed >= 3 if captured else report.replayed == 0)
    check(right, f"{name}: {report}")
    return report

def trained(model, optimizer, **options):
    # For `alike`: a training step of a Keras model, with all variables that it changes.
    def make():
        tf.keras.utils.set_random_seed(3)
        made = model()
        made.compile(optimizer(), "mse", **{"jit_compile": False, **options})
        made.optimizer.build(made.trainable_variables)
        variables = [*made.variables, *made.optimizer.variables,
                     *getattr(made, "metrics_variables", ())]  # which Keras 2 lacks
        return on_gpu(lambda x, y: made.train_step((x, y))), [
            getattr(v, "value", v) for v in variables]
    return make
"""

EPILOGUE = """
assert sum(kit.checked.values()) > 0
kit.check_process()
"""


def environment(groups: int, **more: str) -> dict[str, str]:
    """The environment of a process with stream groups."""
    ours = {k: v for k, v in os.environ.items() if k in runtime_variables()}
    env = {"TF_MULTI_STREAM_SANITIZER": "abort", **ours, "TF_GPU_STREAM_GROUP_COUNT": str(groups)}
    if not ON_GPU:
        env["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
    return {**inherited(), **env, **more}


def run_checks(code: str, groups: int = 4, limit: float = 600, **more: str) -> str:
    """Runs code between prologue and epilogue, for `limit` seconds at most, with stream groups."""
    program = PROLOGUE + textwrap.dedent(code) + EPILOGUE
    done = python(["-c", program], environment(groups, **more), timeout=limit)
    assert done.returncode == 0, "\n".join(
        [f"rc {done.returncode}", done.stdout[-2000:], done.stderr[-20000:]]
    )
    return done.stdout


def run_captured(*code: str, groups: int = 2, capture: str = "auto", **more: str) -> str:
    """Runs code after CAPTURE_HELPERS with stream groups; `capture` says which steps to capture."""
    program = CAPTURE_HELPERS + "".join(code)
    return run_checks(program, groups, 600, TF_MULTI_STREAM_CAPTURE=capture, **more)


def run_job(
    job: Callable[..., None], *arguments: object, first: str = "", **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Runs a function of a module, which must succeed, in a process at node level.

    `first` is code that runs before the function; in it, `jobs` is the function's module. The
    process has these multi-stream variables and no others; one that is None is not set.
    """
    given = {
        "TF_MULTI_STREAM_EMULATED_GPUS": "1",
        "TF_GPU_STREAM_GROUP_COUNT": str(GROUPS),
        "TF_NODE_LEVEL_MULTISTREAM": "true",
        "TF_MULTI_STREAM_SANITIZER": "abort",
        **environment,
    }
    if ON_GPU:
        given["TF_MULTI_STREAM_EMULATED_GPUS"] = None
        given["TF_DETERMINISTIC_OPS"] = "1"  # otherwise sums have other bits each time
    code = f"""
import faulthandler, importlib, sys
faulthandler.dump_traceback_later(500, exit=True)  # a hang says where
sys.path.insert(0, {PACKAGES!r})
jobs = importlib.import_module({job.__module__!r})
from multistream.testing import kit
{first}
job = jobs.{job.__name__}
getattr(job, "__wrapped__", job)(*{arguments!r})
kit.check_process()
"""
    done = run(code, **{k: v for k, v in given.items() if v is not None})
    # Grappler logs this for each graph, since an emulated GPU has no CUDA.
    errors = [x for x in done.stderr.splitlines() if "was not registered" not in x]
    assert done.returncode == 0, "\n".join(
        [f"rc {done.returncode}", done.stdout[-6000:], *errors[-60:]]
    )
    return done


def in_process(run: Callable[..., Any] = run_job, **environment: str | None) -> Callable[..., Any]:
    """Makes the decorated test a job of run_job, or of another function like it."""

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def started(**arguments: object) -> None:
            run(test, *arguments.values(), **environment)

        return started

    return decorated


checked = collections.Counter[str]()
wrong = collections.Counter[str]()


def check(right: Any, what: str) -> None:
    """Notes whether a check has passed; at the process's end all must have."""
    checked[what] += 1
    if not right:
        wrong[what] += 1


def fails(kind: type[Exception], function: Callable[[], Any], *texts: str) -> None:
    """Checks that a call raises an error of this kind with these texts."""
    try:
        function()
    except kind as error:
        for text in texts:
            check(text in str(error), f"{text!r} is not in {error!r}")
    else:
        check(False, f"no {kind.__name__}: {texts}")


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true: streams release memory after the call that used it."""
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return False


def check_process() -> None:
    """Asserts what must hold at the end of each job: no step runs, and no memory is held."""
    assert not wrong, f"wrong: {dict(wrong)} of {dict(checked)}"
    assert all(s.steps_running == 0 for s in tf.cuda.stream_stats()), tf.cuda.stream_stats()
    assert eventually(lambda: not any(s.tensors_held for s in tf.cuda.stream_stats()))


def groups_used() -> set[int]:
    """The groups whose memory this process has used."""
    return {s.group for s in tf.cuda.stream_stats() if s.peak_bytes_in_use > 0}


def on(group: int | None, scoped: bool = True, include_grad: bool = True) -> Any:
    """A scope of the group (None: the next group in turn); no scope unless `scoped`."""
    if not scoped:
        return contextlib.nullcontext()
    stream = None if group is None else tf.cuda.get_stream(group)
    return tf.cuda.stream_scope(stream, include_grad)


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two lists of arrays agree bit for bit."""
    return len(left) == len(right) and all(
        np.shape(a) == np.shape(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(left, right, strict=True)
    )


def run_threads(functions: Sequence[Callable[[], None]]) -> None:
    """Runs each function in a thread of its own; none may raise."""
    errors: list[str] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, "\n".join(errors)


def run_clients(client: Callable[[int], None], *others: Callable[[], None]) -> None:
    """Runs THREADS clients, each with its number, and other functions side by side."""
    run_threads([*[functools.partial(client, k) for k in range(THREADS)], *others])


def check_calls(call: Callable[[Any], Any], *others: Callable[[], None]) -> None:
    """Checks that calls of many clients, with each of the batches, give what a first call gave."""
    inputs = batches()
    expected = [call(x) for x in inputs]

    def client(k: int) -> None:
        for i in range(STEPS):
            j = (k + i) % len(inputs)
            check(np.array_equal(call(inputs[j]), expected[j]), "result of a call")

    run_clients(client, *others)


def batches() -> list[Any]:
    """Matrices of different heights."""
    return [np.random.RandomState(i).randn(16 + i, 64).astype(np.float32) for i in range(8)]


def matrix() -> Any:
    """Numbers for a [64, 64] tensor."""
    return np.random.RandomState(0).randn(64, 64).astype(np.float32)
