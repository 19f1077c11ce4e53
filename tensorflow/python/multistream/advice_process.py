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
"""Processes of `tf.cuda.advise`, one for each setting, as the variables are read at the start."""

import contextlib
import dataclasses
import functools
import json
import os
import pickle
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorflow.python.multistream import advice_model

EMULATED = "TF_MULTI_STREAM_EMULATED_GPUS"

# What a process starts without unless its setting says so: all of the runtime's variables but the
# emulated GPUs and those that stock TensorFlow has as well.
OURS = (
    "TF_BFC_EXTEND_LIMIT_MB",
    "TF_GPU_CONTEXT_COUNT",
    "TF_GPU_STREAM_AWARE_BFC",
    "TF_GPU_STREAM_GROUP_COUNT",
    "TF_GPU_STREAM_GROUP_PRIORITIES",
    "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL",
    "TF_GPU_STREAM_MERGE",
    "TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION",
    "TF_MULTI_STREAM_CAPTURE",
    "TF_MULTI_STREAM_CAPTURE_BATCHES",
    "TF_MULTI_STREAM_CAPTURE_BRANCHES",
    "TF_MULTI_STREAM_CAPTURE_MB",
    "TF_MULTI_STREAM_CAPTURE_VERIFY",
    "TF_MULTI_STREAM_MEASURE",
    "TF_MULTI_STREAM_POLICY",
    "TF_MULTI_STREAM_PYTHON_TURNS",
    "TF_MULTI_STREAM_SANITIZER",
    "TF_MULTI_STREAM_SPIN_LOCKS",
    "TF_MULTI_STREAM_TEST_FAULTS",
    "TF_NODE_LEVEL_MULTISTREAM",
    "TF_PER_STREAM_HOST_ALLOCATOR",
    "TF_REDUCE_STREAM_WAIT",
    "TF_SEGMENT_OWN_CONST",
    "TF_STREAM_FROM_FILE",
)
# How a process is asked to call the model: as programs do, likewise without captured steps where
# its setting has them, and by `tf.cuda.serving_callable`.
SIGNATURE = "signature"
NOT_CAPTURED = "signature, not captured"
SERVING = "serving_callable"

# How far a result may be from stock TensorFlow's where that gives other bits each time, as a part
# of the largest number in it.
TOLERANCE = 1e-3
TOLERANCE_OF_HALVES = 1e-2

_PROGRAM = "tensorflow.python.multistream.advice_child"
# A model may take minutes to load, and a call seconds.
_START_SECONDS = 600.0
_CALL_SECONDS = 300.0
_LAST_LINES = 12


class ChildError(RuntimeError):
    """A process ended, did not answer, or a call in it failed. The message says what it said."""


class ChildEndedError(ChildError):
    """It did not fail in a call: there is no process to ask any more."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """What a process says once it has the model.

    Attributes:
      emulated: its GPU is an emulated one.
      differing: calls on one thread had other bits than the first process.
    """

    emulated: bool
    differing: bool


@dataclasses.dataclass(frozen=True)
class Turn:
    """What a process has measured in one go.

    Attributes:
      calls: how many ended.
      calls_per_second: of all threads.
      p50_ms: the median of a call's time, in milliseconds.
      p99_ms: the 99th percentile.
      cpu_ms: CPU time of the process for each call, in milliseconds.
      peak_bytes: the most device memory in use so far.
      differing: results with other bits than stock TensorFlow's.
      far: those of them that are not even near.
      replayed: the part of the steps that was replayed, from 0 to 1.
      not_replayed: why others were not, where steps are captured.
    """

    calls: int
    calls_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    peak_bytes: int = 0
    differing: int = 0
    far: int = 0
    replayed: float = 0.0
    not_replayed: str = ""


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What a process with a setting inherits.

    Args:
      variables: the setting.

    Returns:
      Its environment. Memory grows, as several processes share the GPU.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in OURS}
    modules = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    inherited.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return {**inherited, "PYTHONPATH": modules, "TF_FORCE_GPU_ALLOW_GROWTH": "true", **variables}


def gpus_are_emulated() -> bool:
    """Whether the environment asks for emulated GPUs."""
    return os.environ.get(EMULATED, "").strip() not in ("", "0")


def write_job(
    folder: Path, directory: str, signature: str, queries: list[advice_model.Query]
) -> None:
    """Says to processes what to measure.

    Args:
      folder: that they are given.
      directory: the SavedModel.
      signature: its name.
      queries: what it is called with.
    """
    job = {"directory": os.path.abspath(directory), "signature": signature, "queries": queries}
    (folder / "job.pickle").write_bytes(pickle.dumps(job))


class Child:
    """A process that measures.

    Args:
      folder: with the job.
      variables: its setting.
      name: of the setting, for errors.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str], name: str) -> None:
        self._name = name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        reader, writer = os.pipe()
        self._answers = os.fdopen(reader, "rb", buffering=0)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(folder), str(writer)],
                cwd=folder,  # `-m` looks for modules there first
                env=environment(variables),
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[writer],
            )
        finally:
            os.close(writer)

    @functools.cached_property
    def ready(self) -> Ready:
        """What it says once it has loaded the model, which this waits for.

        Raises:
          ChildEndedError: it could not load it.
        """
        try:
            return Ready(**self._answer(_START_SECONDS))
        except ChildError as error:
            raise ChildEndedError(*error.args) from None

    def measure(self, call: str, threads: int, seconds: float) -> Turn:
        """Has it call the model.

        Args:
          call: how: `SIGNATURE`, `NOT_CAPTURED` or `SERVING`.
          threads: from how many threads.
          seconds: for how long.

        Returns:
          What it measured.

        Raises:
          ChildError: it could not load the model, ended, did not answer in time, or a call failed.
        """
        _ = self.ready
        request = {"call": call, "threads": threads, "seconds": seconds}
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return Turn(**self._answer(seconds + _CALL_SECONDS))

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._answers.close()
        self._log.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        ends = time.monotonic() + seconds
        line = b""
        while not line.endswith(b"\n"):
            left = max(0.0, ends - time.monotonic())
            if not select.select([self._answers], [], [], left)[0]:
                raise ChildEndedError(
                    f"{self._name}: no answer for {seconds:.0f} s{self._last_lines()}"
                )
            part = self._answers.read(65536)
            if not part:
                status = self._process.wait()
                how = f"signal {-status}" if status < 0 else f"exit status {status}"
                raise ChildEndedError(f"{self._name}: its process ended, {how}{self._last_lines()}")
            line += part
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ChildError(f"{self._name}: {answer['error']}")
        return answer

    def _last_lines(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()[-_LAST_LINES:]
        return "".join(f"\n  {line}" for line in lines)
