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
"""Processes for tests that need not import TensorFlow, which takes seconds: they are forked.

    test process  --- code, folder, files for its output ------------>  server
                                                                          | fork
    test process  <-- the job's id; once it has ended, its status ----  waiter
                                                                          | fork
                                                                         job

The server, which is this file run as a program, has imported TensorFlow in the environment that the
jobs are to have, and done nothing else: it has no device, no stream group, and no thread but those
of NumPy's library, which makes them anew after a fork. A job runs its code as `python -c` does, and
ends as any Python process does, with all that is torn down then. (A job of multiprocessing's fork
server ends by `os._exit`, so that no test would see what goes wrong at the end.)
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from typing import IO

READY = b"ready"
LONGEST = 1 << 20  # bytes of a request


class ForkServer:
    """A server, and what asks it. Threads may share it. It ends when this is deleted.

    Args:
      environment: that of the server and of its jobs.

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

    def run(self, code: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """Does what subprocess.run does with `python -c CODE`, with its output as text.

        Args:
          code: program of Python.
          timeout: seconds after which it is killed.

        Returns:
          Its exit status, or minus the signal that ended it, and its output.

        Raises:
          subprocess.TimeoutExpired: it was killed.
        """
        arguments = [sys.executable, "-c", code]
        request = json.dumps([code, os.getcwd()]).encode()
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
                    arguments, timeout, _text(stdout), _text(self._said) + _text(stderr)
                ) from None
            return subprocess.CompletedProcess(
                arguments,
                os.waitstatus_to_exitcode(status),
                _text(stdout),
                _text(self._said) + _text(stderr),
            )


def _text(file: IO[bytes]) -> str:
    """All of a file that another process has written."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


def serve(control: socket.socket) -> str:
    """Makes a job for each request.

    Args:
      control: where requests come from.

    Returns:
      In a job, which has its folder and output: its code. In the server: never.
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
    code, folder = json.loads(request)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    control.detach()
    os.closerange(3, 1 << 16)  # what a new process would not have
    os.chdir(folder)
    return str(code)


def main() -> None:
    """Serves; in a job, runs its code."""
    import tensorflow  # noqa: F401, PLC0415

    # Jobs collect only their own garbage: to look at all that the import has made, as each would at
    # its end, copies it all and takes a second.
    gc.freeze()
    control = socket.socket(fileno=int(sys.argv[1]))
    control.send(READY)
    code = serve(control)
    sys.argv = ["-c"]
    sys.path[0] = ""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(code, "<string>", "exec", dont_inherit=True), vars(module))


if __name__ == "__main__":
    main()
