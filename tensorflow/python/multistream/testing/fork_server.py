# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Forks processes for tests from a server that has imported TensorFlow, which takes seconds.

    test process  --- arguments, variables, folder, files for output ->  server
                                                                          | fork
    test process  <-- the job's id; once it has ended, its status ----  waiter
                                                                          | fork
                                                                         job

The server is this file, run as a program. It has imported TensorFlow in the jobs' environment,
without the runtime's variables, and done nothing else: the server has no device, no stream group,
and no threads except those of NumPy's library, which makes new threads after a fork. A job sets its
variables, and the runtime reads them as if they had been set from the start. If the variables are
an error, the job replaces itself by a new process, whose import reports the error. A job runs its
code as `python -c` or `python PATH` does, and ends as any Python process does, with the complete
teardown. (A job of multiprocessing's fork server ends by `os._exit`, so a test would miss errors of
the teardown.)
"""

import atexit
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from typing import IO

READY = b"ready"
LONGEST = 1 << 20  # bytes of a request


class ForkServer:
    """A client of a server process. Threads may share it. Deleting it ends the server.

    Args:
      environment: environment of the server, and of its jobs besides their own variables.

    Raises:
      ImportError: TensorFlow cannot be imported in this environment.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # stderr of the server's import of TensorFlow.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=self._said,
            )
        if self._control.recv(LONGEST) != READY:
            raise ImportError(_text(self._said))

    def __del__(self) -> None:
        self._control.close()
        self._process.wait()

    def run(
        self,
        arguments: Sequence[str],
        timeout: float,
        variables: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a job as subprocess.run would run `python ARGUMENTS`, with its output as text.

        Args:
          arguments: "-c" and code, or a file's path; then the program's arguments.
          timeout: seconds after which the job is killed.
          variables: the job's variables that the server lacks; only variables of the runtime.
          folder: the job's working directory; by default that of this process.

        Returns:
          The job's exit status, or minus the signal that ended the job, and its output.

        Raises:
          subprocess.TimeoutExpired: the job was killed.
        """
        command = [sys.executable, *arguments]
        request = json.dumps([arguments, folder or os.getcwd(), dict(variables or {})]).encode()
        replies, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with replies, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            with theirs:
                files = [stdout.fileno(), stderr.fileno(), theirs.fileno()]
                socket.send_fds(self._control, [request], files)
            job = int(replies.recv(LONGEST))
            replies.settimeout(timeout)
            try:
                status = int(replies.recv(LONGEST))
            except TimeoutError:
                os.kill(job, signal.SIGKILL)
                replies.settimeout(None)
                replies.recv(LONGEST)
                raise subprocess.TimeoutExpired(
                    command, timeout, _text(stdout), _text(stderr)
                ) from None
            return subprocess.CompletedProcess(
                command, os.waitstatus_to_exitcode(status), _text(stdout), _text(stderr)
            )


def _text(file: IO[bytes]) -> str:
    """All of a file that another process has written."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


def serve(control: socket.socket, began_with: Mapping[str, str]) -> list[str]:
    """Makes a job for each request.

    Args:
      control: the socket of the requests.
      began_with: the environment before TensorFlow's import, which adds variables.

    Returns:
      In a job, whose folder and output are set up: the job's arguments. In the server: never.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody needs the waiters' status
    while True:
        request, files, _, _ = socket.recv_fds(control, LONGEST, 3)
        if not request:  # the client has closed its socket
            os._exit(0)
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stdout, stderr, replies = files
    job = os.fork()
    if job != 0:  # this is the waiter
        os.write(replies, str(job).encode())
        os.write(replies, str(os.waitpid(job, 0)[1]).encode())
        os._exit(0)
    arguments, folder, variables = json.loads(request)
    said = os.pread(2, os.fstat(2).st_size, 0)  # stderr of the import, which a job repeats
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    control.detach()
    os.closerange(3, 1 << 16)  # files that a new process would not have
    os.chdir(folder)
    os.environ.update(variables)
    if variables and not take_variables():
        os.execve(sys.executable, [sys.executable, *arguments], {**began_with, **variables})
    os.write(2, said)
    return list(arguments)


def take_variables() -> bool:
    """Brings this process to the state of an import of TensorFlow with the current variables.

    Returns:
      False if that import would have failed.

    Raises:
      RuntimeError: the runtime cannot read its variables again in this process.
    """
    from tensorflow.python.multistream import loader  # noqa: PLC0415

    message = ctypes.create_string_buffer(4096)
    if loader.library.TFMS_LookAtEnvironmentAgain(message, len(message)) != 0:
        raise RuntimeError(message.value.decode(errors="replace"))
    try:
        loader.load()  # the library is loaded already; its checks run again
    except (ImportError, ValueError):
        return False
    return True


def drop_names_of_job() -> None:
    """Deletes the job's `__main__` at exit, as Python does with the `__main__` of any process.

    Python deletes `__main__` first. Otherwise the job's names would be deleted last, when output of
    objects' destructors is lost.
    """
    del sys.modules["__main__"]
    gc.collect()


def main() -> None:
    """Serves; in a job, runs its code."""
    began_with = dict(os.environ)
    import tensorflow  # noqa: F401, PLC0415

    # Jobs collect only their own garbage. Without this, each job would traverse all objects of the
    # import at its end, which copies their pages and takes a second.
    gc.freeze()
    control = socket.socket(fileno=int(sys.argv[1]))
    control.send(READY)
    sys.argv = serve(control, began_with)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    if sys.argv[0] == "-c":
        code = compile(sys.argv.pop(1), "<string>", "exec", dont_inherit=True)
        sys.path[0] = ""
    else:
        module.__file__ = sys.argv[0]
        with open(sys.argv[0], "rb") as program:
            code = compile(program.read(), sys.argv[0], "exec", dont_inherit=True)
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    del module
    atexit.register(drop_names_of_job)  # registered first, so called last
    exec(code, vars(sys.modules["__main__"]))


if __name__ == "__main__":
    main()
