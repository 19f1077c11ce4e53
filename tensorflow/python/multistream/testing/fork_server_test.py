# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process that the kit forks behaves, for its test, as a newly started process."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from multistream.testing import kit

pytestmark = pytest.mark.skipif(kit.ON_GPU, reason="there nothing is forked")


def both(
    code: str, monkeypatch: pytest.MonkeyPatch, **environment: str
) -> list[subprocess.CompletedProcess[str]]:
    """Runs code in a forked process and in a new one; returns both results."""
    done = [kit.run(code, **environment)]
    monkeypatch.setattr(kit, "forks", False)
    return [*done, kit.run(code, **environment)]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import atexit; atexit.register(print, 'at exit'); print('first')", 0),
        ("import sys; print('out'); sys.exit(3)", 3),
        ("{}['key']", 1),
        ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
        ("import threading, time; threading.Timer(0.1, print, ['thread']).start()", 0),
        ("class A:\n  def __del__(self): print('deleted')\na = A()", 0),
    ],
)
def test_it_ends_as_a_process_of_its_own(
    code: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status, output and last line of stderr are the same; a crash does not hurt the next job."""
    forked, fresh = both(code, monkeypatch)
    assert forked.returncode == fresh.returncode == status
    assert forked.stdout == fresh.stdout
    assert forked.stderr.endswith("".join(fresh.stderr.splitlines(keepends=True)[-1:]))


def test_what_takes_too_long_is_killed() -> None:
    """The error has the killed job's output; another job at the same time goes on."""
    slow = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    environment = kit.inherited()
    found: list[Any] = []
    code = "import time; time.sleep(3); print('goes on')"
    other = threading.Thread(target=lambda: found.append(kit.python(["-c", code], environment, 60)))
    other.start()
    with pytest.raises(subprocess.TimeoutExpired) as error:
        kit.python(["-c", slow], environment, 1)
    assert not Path(f"/proc/{int(error.value.stdout)}").exists()
    other.join()
    assert (found[0].returncode, found[0].stdout) == (0, "goes on\n")


def test_it_is_forked_and_sees_nothing_of_others_unless_the_test_wants_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kit.ok("import os, tensorflow as tf; tf.mine = os.environ['TFMS_MINE'] = 'x'; tf.ones([2])")
    code = """
        import os, sys
        print(os.getppid(), "tensorflow" in sys.modules, "TFMS_MINE" in os.environ)
        import tensorflow as tf
        print(hasattr(tf, "mine"))
    """
    forked, fresh = both(code, monkeypatch)
    assert fresh.stdout == f"{os.getpid()} False False\nFalse\n"
    assert forked.stdout.splitlines()[0] not in fresh.stdout
    assert forked.stdout.endswith(" True False\nFalse\n")
