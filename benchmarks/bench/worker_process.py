# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process that is told what to do and answers, in lines of JSON."""

from __future__ import annotations

import contextlib
import json
import pathlib
import select
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
# Beyond the time that a command is meant to take: imports, compilation, a busy machine.
PATIENCE_SECONDS = 240


class WorkerError(Exception):
    """A worker failed; has its last words."""


class WorkerProcess:
    """One worker's process, in the folder of the benchmarks.

    Args:
        command: what runs.
        environment: all of it.
        log: the file for what it writes to standard error.
    """

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

    def tell(self, **command: Any) -> None:
        """Sends a command."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer, either
            self._process.stdin.write((json.dumps(command) + "\n").encode())
            self._process.stdin.flush()

    def answer(self, seconds: float = 0.0) -> dict[str, Any]:
        """Waits for the answer to a command that takes so long.

        Raises:
            WorkerError: the command or the process failed, or there was no answer in time.
        """
        out = self._process.stdout
        assert out is not None
        if not select.select([out], [], [], seconds + PATIENCE_SECONDS)[0]:
            self.stop()
            raise WorkerError(f"no answer within {seconds + PATIENCE_SECONDS:.0f} s")
        line = out.readline()
        if not line:
            raise self._failure(self._process.wait())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def end(self) -> None:
        """Lets it end, as there are no more commands.

        Raises:
            WorkerError: it fails, or does not end.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            status = self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise WorkerError(f"it does not end within {PATIENCE_SECONDS} s") from error
        if status:
            raise self._failure(status)

    def stop(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _failure(self, status: int) -> WorkerError:
        said = self._log.read_text(errors="replace").strip().splitlines() or ["nothing"]
        return WorkerError(f"exit status {status}; its last words: {said[-1]}")
