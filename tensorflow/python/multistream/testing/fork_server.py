# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes for tests that need not import TensorFlow, which takes seconds: they are forked.

    test process  --- arguments, variables, folder, files for output ->  server
                                                                          | fork
    test process  <-- the job's id; once it has ended, its status ----  waiter
                                                                          | fork
                                                                         job

The server, which is this file run as a program, has imported TensorFlow in the environment that the
jobs are to have, but for the runtime's variables, and done nothing else: it has no device, no
stream group, and no thread but those of NumPy's library, which makes them anew after a fork. A job
sets its variables, and the runtime looks at them as if they had been there from the start; where
that is an error, the job makes itself a new process, whose import says it. It runs its code as
`python -c` or `python PATH` does, and ends as any Python process does, with all that is torn down
then. (A job of multiprocessing's fork server ends by `os._exit`, so that no test would see what
goes wrong at the end.)
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
    """A server, and what asks it. Threads may share it. It ends when this is deleted.

    Args:
      environment: that of the server, and of its jobs beside variables of their own.

    Raises:
      ImportError: TensorFlow cannot be imported in this environment.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # What the import of TensorFlow says on stderr.
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
        """Does what subprocess.run does with `python ARGUMENTS`, with its output as text.

        Args:
          arguments: "-c" and code, or a file's path; then those of the program.
          timeout: seconds after which it is killed.
          variables: those of its environment that the server's has not; the runtime's alone.
          folder: where it runs; that of this process, if it is not given.

        Returns:
          Its exit status, or minus the signal that ended it, and its output.

        Raises:
          subprocess.TimeoutExpired: it was killed.
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
      control: where requests come from.
      began_with: the environment before TensorFlow's import, which adds to it.

    Returns:
      In a job, which has its folder and output: its arguments. In the server: never.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # of waiters nobody needs the status
    while True:
        request, files, _, _ = socket.recv_fds(control, LONGEST, 3)
        if not request:  # nobody is left who might ask
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
    said = os.pread(2, os.fstat(2).st_size, 0)  # by the import, as a new one would
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    control.detach()
    os.closerange(3, 1 << 16)  # what a new process would not have
    os.chdir(folder)
    os.environ.update(variables)
    if variables and not take_variables():
        os.execve(sys.executable, [sys.executable, *arguments], {**began_with, **variables})
    os.write(2, said)
    return list(arguments)


def take_variables() -> bool:
    """Makes this process what it would be, had TensorFlow been imported with its variables.

    Returns:
      Whether it is; if not, the import would have failed.

    Raises:
      RuntimeError: the process is one that cannot become so.
    """
    from tensorflow.python.multistream import loader  # noqa: PLC0415

    message = ctypes.create_string_buffer(4096)
    if loader.library.TFMS_LookAtEnvironmentAgain(message, len(message)) != 0:
        raise RuntimeError(message.value.decode(errors="replace"))
    try:
        loader.load()  # it is loaded, and checked anew
    except (ImportError, ValueError):
        return False
    return True


def drop_names_of_job() -> None:
    """Drops what the job's code has named, as Python drops __main__ of a process of its own.

    That is the first module to go. This one would be the last, when nobody writes any more what
    objects print as they are deleted.
    """
    del sys.modules["__main__"]
    gc.collect()


def main() -> None:
    """Serves; in a job, runs its code."""
    began_with = dict(os.environ)
    import tensorflow  # noqa: F401, PLC0415

    # Jobs collect only their own garbage: to look at all that the import has made, as each would at
    # its end, copies it all and takes a second.
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
    atexit.register(drop_names_of_job)  # the first is called last
    exec(code, vars(sys.modules["__main__"]))


if __name__ == "__main__":
    main()
