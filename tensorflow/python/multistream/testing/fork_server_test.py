# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process that the kit forks behaves, for its test, as a newly started process."""

import json
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


def test_environment_is_what_the_test_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python and C see the same variables as in a new process, TensorFlow's additions included."""
    monkeypatch.setenv("TF_NOT_ASKED_FOR", "1")
    monkeypatch.setenv("TFMS_OTHER", "a = \u00fc\n")
    code = """
        import ctypes, json, os
        import tensorflow
        libc = ctypes.CDLL(None)
        libc.getenv.restype = ctypes.c_char_p
        assert all(libc.getenv(os.fsencode(k)) == os.fsencode(v) for k, v in os.environ.items())
        print(json.dumps(dict(os.environ)))
    """
    ours = {"TF_GPU_STREAM_GROUP_COUNT": "2", "TF_MULTI_STREAM_EMULATED_GPUS": "1"}
    forked, fresh = (json.loads(done.stdout) for done in both(code, monkeypatch, **ours))
    assert forked == fresh
    assert ours.items() <= forked.items()
    assert forked["TFMS_OTHER"] == "a = \u00fc\n" and forked["TF_CPP_MIN_LOG_LEVEL"] == "2"
    assert "TF_NOT_ASKED_FOR" not in forked


@pytest.mark.parametrize(
    "environment",
    [
        {
            "TF_GPU_STREAM_GROUP_COUNT": "2,3",
            "TF_MULTI_STREAM_EMULATED_GPUS": "2",
            "TF_MULTI_STREAM_POLICY": "cost",
            "TF_GPU_THREAD_MODE": "gpu_private",
            "TF_MULTI_STREAM_TEST_FAULTS": "true",
        },
        {"TF_GPU_STREAM_GROUP_COUNT": "many"},  # an error at import
        {"TF_MULTI_STREAM_POLICY": "cost", "TF_CPP_MIN_LOG_LEVEL": "1"},
    ],
    ids=["two GPUs", "wrong value", "no effect"],
)
def test_the_runtime_does_what_the_variables_of_the_test_say(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forked and new process agree, down to the last line of an error; the log is the same."""
    code = """
        import os
        print(os.environ.get("TF_GPU_STREAM_GROUP_COUNT"))
        import tensorflow as tf
        from tensorflow.python.multistream import loader
        print(loader.library.TFMS_IsNodeLevel(), loader.library.TFMS_InjectTestFault(0, 0))
        print(tf.cuda.multi_stream_is_enabled(), tf.cuda.stream_group_count())
        print(tf.config.list_physical_devices("GPU"))
        gpus = tf.config.list_logical_devices("GPU")
        for gpu in [x.name for x in gpus] or ["CPU"]:
            with tf.device(gpu):
                x = tf.function(lambda x: x @ x + 1)(tf.ones([8, 8]))
            print(x.device, tf.reduce_sum(x).numpy())
        print([(s.gpu, s.group, s.bytes_limit) for s in tf.cuda.stream_stats()])
    """
    forked, fresh = both(code, monkeypatch, **environment)
    assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout), forked.stderr
    if fresh.returncode != 0:
        assert forked.stderr.splitlines()[-1] == fresh.stderr.splitlines()[-1]
    said = "have no effect: TF_MULTI_STREAM_POLICY (without several"
    once = "TF_CPP_MIN_LOG_LEVEL" in environment
    assert forked.stderr.count(said) == fresh.stderr.count(said) == once


def test_each_environment_has_a_server_but_not_each_value_of_our_variables() -> None:
    """A job's stderr begins with the output of its server's import."""
    code = """
        import os, sys
        import tensorflow as tf
        print(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])
        print(len(tf.config.list_physical_devices('GPU')))
        sys.exit("end")
    """
    servers = []
    for gpus in (0, 1, 2, 0):
        faults = str(gpus > 0).lower()
        done = kit.run(
            code,
            TF_MULTI_STREAM_EMULATED_GPUS=str(gpus),
            TF_MULTI_STREAM_TEST_FAULTS=faults,
            TF_CPP_MIN_LOG_LEVEL="1",
        )
        server, found = done.stdout.splitlines()
        servers.append(server)
        assert found == str(gpus)
        said = "with TF_MULTI_STREAM_TEST_FAULTS=true, tests can make"
        assert done.stderr.count(said) == (gpus > 0)
        assert done.stderr.splitlines()[-1] == "end"
    assert len(set(servers)) == 1
    assert kit.run(code, TF_FORCE_GPU_ALLOW_GROWTH="true").stdout.split()[0] not in servers


@pytest.mark.parametrize("as_file", [False, True])
def test_code_is_main_where_the_test_says(
    as_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code finds no module, file or signal handler of the server; a file, what is beside it."""
    code = """
import os, signal, sys, threading
class Mine: pass
main = sys.modules["__main__"]
print(__name__, globals().get("__file__"), sys.argv, sys.path[0], os.getcwd(), main.Mine is Mine)
print(sorted(n for n in globals() if n[0] != "_"), "fork_server" in sys.modules, Mine.__module__)
print(os.listdir("/proc/self/fd"))
print([signal.getsignal(s) for s in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)])
print(threading.current_thread() is threading.main_thread(), sys.stdin.read())
"""
    folder = tmp_path / "folder"
    folder.mkdir()
    program = tmp_path / "program.py"
    program.write_text(code + "import beside\n")
    (tmp_path / "beside.py").write_text("print(__name__)\n")
    arguments = [program, "--option", "a b"] if as_file else ["-c", code, "a b"]
    forked = kit.run_program(arguments, folder)
    monkeypatch.setattr(kit, "forks", False)
    fresh = kit.run_program(arguments, folder)
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout == fresh.stdout


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
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
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


def test_a_server_that_nobody_needs_ends() -> None:
    server = kit.ForkServer({**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"})
    process = int(server.run(["-c", "import os; print(os.getpid())"], 60).stdout)
    assert not Path(f"/proc/{process}").exists()
    server_process = server._process
    del server
    assert server_process.returncode == 0
