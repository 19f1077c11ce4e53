# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The processes of workers: how they are started, told what to do, and how long that may take."""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import gpu
from .peers import GROUPS, PEERS
from .program import Spec
from .results import Round
from .sweep import Configuration, Team
from .workloads import WORKLOADS

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
EMULATION = "TF_MULTI_STREAM_EMULATED_GPUS"
# Of frameworks; whatever the environment says of them is not what is compared.
FRAMEWORK_VARIABLES = ("TF_", "XLA_", "JAX_", "ORT_", "CUDA_MPS_", "PYTORCH_")
MPS_CONTROL = "nvidia-cuda-mps-control"
# Of the clients' first queries before a measurement, which do not count.
LEAD_SECONDS = 0.15
# Beyond the time that a command is meant to take: imports, compilation, a busy machine.
PATIENCE_SECONDS = 240


class WorkerError(Exception):
    """A worker failed; has its last words."""


class WorkerProcess:
    """One worker's process, which is told what to do and answers, in lines of JSON."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: pathlib.Path
    ) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                cwd=BENCHMARKS,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def tell(self, command: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # then there is no answer, either
            self._in.write((json.dumps(command) + "\n").encode())
            self._in.flush()

    def answer(self, seconds: float = 0.0) -> dict[str, Any]:
        """Waits for the answer to a command that takes so long; raises WorkerError without one."""
        if not select.select([self._out], [], [], seconds + PATIENCE_SECONDS)[0]:
            self.stop()
            raise WorkerError(f"no answer within {seconds + PATIENCE_SECONDS:.0f} s")
        line = self._out.readline()
        if not line:
            said = self._log.read_text(errors="replace").strip().splitlines() or ["nothing"]
            status = self._process.wait()
            raise WorkerError(f"exit status {status}; its last words: {said[-1]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


class Workers:
    """The started processes of a team, which share the clients; methods raise WorkerError."""

    def __init__(
        self, team: Team, processes: Sequence[WorkerProcess], folder: pathlib.Path
    ) -> None:
        self.memory_mib = 0.0
        self._tolerance = PEERS[team.peer].tolerance(WORKLOADS[team.workload])
        self._processes = processes
        self._files = [folder / f"{team.slug}-{i}.npy" for i in range(len(processes))]
        self._warm: set[Configuration] = set()

    def wait(self) -> None:
        for process in self._processes:
            process.answer()

    def make(self) -> str:
        """Makes the models; returns the framework's version."""
        return str(self._ask([{"do": "make"} for _ in self._processes])[0]["version"])

    def reference(self, path: pathlib.Path) -> None:
        self._ask([{"do": "reference", "path": str(path)}])

    def warm(self, of: Configuration, seconds: float) -> None:
        """Warms up a configuration of this team once, for at most so many seconds."""
        if of not in self._warm:
            self._ask(self._shared("warm", of, at_most=seconds), seconds)
            self._warm.add(of)

    def measure(self, of: Configuration, expected: pathlib.Path, seconds: float) -> Round:
        """Measures a warm configuration; `expected` is the file of `reference`."""
        commands = self._shared(
            "measure",
            of,
            expected=str(expected),
            tolerance=self._tolerance,
            at=time.monotonic() + LEAD_SECONDS,
            seconds=seconds,
        )
        for command, file in zip(commands, self._files, strict=True):
            command["latencies"] = str(file)
        answers = self._ask(commands, seconds)
        if not gpu.is_there():
            peaks = [answer["peak_mib"] for answer in answers]
            self.memory_mib = sum(peaks) if None not in peaks else 0.0
        milliseconds = np.concatenate([np.load(file) for file in self._files])
        queries = len(milliseconds)
        p50, p95, p99 = (float(value) for value in np.percentile(milliseconds, [50, 95, 99]))
        return Round(
            queries=queries,
            wrong=sum(answer["wrong"] for answer in answers),
            queries_per_second=sum(answer["queries"] / answer["seconds"] for answer in answers),
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=float(milliseconds.max()),
            cpu_us=sum(answer["cpu_seconds"] for answer in answers) / queries * 1e6,
            replays=int(sum(answer["replays"] for answer in answers)),
        )

    def stop(self) -> None:
        for process in self._processes:
            process.stop()

    def _shared(self, do: str, of: Configuration, **more: Any) -> list[dict[str, Any]]:
        """A command for each process, whose numbers of clients are as equal as can be."""
        each, left = divmod(of.clients, len(self._processes))
        return [
            {"do": do, "batch": of.batch, "call": of.call, "clients": each + (i < left), **more}
            for i in range(len(self._processes))
        ]

    def _ask(self, commands: Sequence[Mapping[str, Any]], seconds: float = 0.0) -> list[Any]:
        asked = self._processes[: len(commands)]
        before = gpu.used_mib()
        try:
            for process, command in zip(asked, commands, strict=True):
                process.tell(command)
            return [process.answer(seconds) for process in asked]
        finally:
            # What the GPU has less by now, these processes have taken: no others work.
            self.memory_mib += max(0.0, gpu.used_mib() - before)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Leaves out the frameworks' variables; memory grows, so that idle processes hold little."""
    clean = {k: v for k, v in environment.items() if not k.startswith(FRAMEWORK_VARIABLES)}
    clean.update(TF_FORCE_GPU_ALLOW_GROWTH="true", TF_CPP_MIN_LOG_LEVEL="2")
    if environment.get(EMULATION):
        clean[EMULATION] = environment[EMULATION]
    return clean


def environment_of(
    team: Team, environment: Mapping[str, str], variables: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a team's processes, from one to start from and a Fleet's variables."""
    own = PEERS[team.peer].environment(team.parallel)
    return {**environment, **own, **(variables if GROUPS in own else {})}


@dataclasses.dataclass
class Fleet:
    """All workers of a workload."""

    size: str  # of the models
    # The interpreter of each program's package, by name; of others, this one.
    pythons: Mapping[str, str]
    variables: Mapping[str, str]  # what else peers with stream groups have in their environment
    folder: pathlib.Path

    def __enter__(self) -> "Fleet":
        self._workers: dict[Team, Workers] = {}
        self._stack = contextlib.ExitStack()
        self._mps: dict[str, str] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, teams: Sequence[Team]) -> dict[Team, str]:
        """Starts as many processes at a time as there are cores; returns why teams failed."""
        failed = {}
        at_a_time = max(1, len(os.sched_getaffinity(0)))
        for first in range(0, len(teams), at_a_time):
            now = teams[first : first + at_a_time]
            for team in now:
                self._start_one(team)
            for team in now:
                try:
                    self._workers[team].wait()
                except WorkerError as error:
                    failed[team] = str(error)
        return failed

    def _start_one(self, team: Team) -> None:
        peer = PEERS[team.peer]
        environment = clean_environment(os.environ)
        if peer.mps:
            self._mps = self._mps or self._stack.enter_context(_mps(self.folder / "mps"))
            environment.update(self._mps)
        spec = Spec(peer.program[0], team.workload, self.size, team.parallel, dict(peer.options))
        python = self.pythons.get(peer.program[1], sys.executable)
        command = [python, "-m", "bench.worker", json.dumps(dataclasses.asdict(spec))]
        own = environment_of(team, environment, self.variables)
        processes = [
            WorkerProcess(command, own, self.folder / f"{team.slug}-{i}.log")
            for i in range(team.parallel if peer.processes else 1)
        ]
        self._workers[team] = Workers(team, processes, self.folder)
        self._stack.callback(self._workers[team].stop)

    def __getitem__(self, team: Team) -> Workers:
        return self._workers[team]


@contextlib.contextmanager
def _mps(folder: pathlib.Path) -> Iterator[dict[str, str]]:
    """Runs NVIDIA's MPS; yields the variables of processes that are to use it."""
    folder.mkdir(exist_ok=True)
    names = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
    variables = {name: str(folder) for name in names}
    environment = {**os.environ, **variables}
    subprocess.run([MPS_CONTROL, "-d"], env=environment, check=True)
    try:
        yield variables
    finally:
        subprocess.run([MPS_CONTROL], env=environment, input=b"quit\n", check=False)


@functools.cache
def missing(needs_gpu: str, package: str, mps: bool, python: str) -> str:
    """Says what a peer lacks here, a sentence; empty if it lacks nothing.

    `needs_gpu` says why it needs a real GPU, if it does; the package is one of that interpreter.
    """
    if needs_gpu and (os.environ.get(EMULATION) or not gpu.is_there()):
        return f"there is no GPU: {needs_gpu}"
    if mps and shutil.which(MPS_CONTROL) is None:
        return f"{MPS_CONTROL} is not installed"
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    try:
        found = subprocess.run([python, "-c", code], capture_output=True, check=False)
    except OSError as error:
        return f"{python}: {error.strerror}"
    return "" if found.returncode == 0 else f"{package} is not installed for {python}"
