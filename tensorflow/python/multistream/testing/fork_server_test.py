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


def both(
    code: str, monkeypatch: pytest.MonkeyPatch, **environment: str
) -> list[subprocess.CompletedProcess[str]]:
    """Runs code in a forked process and in a new one; returns both results."""
    done = [kit.run(code, **environment)]
    monkeypatch.setattr(kit, "forks", False)
    return [*done, kit.run(code, **environment)]


pytestmark = pytest.mark.skipif(kit.ON_GPU, reason="there nothing is forked")


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


ABOUT_GROUPS = """
    import os
    import tensorflow as tf
    from tensorflow.python.multistream import loader
    print(os.environ.get("TF_GPU_STREAM_GROUP_COUNT"), loader.library.TFMS_IsNodeLevel())
    print(loader.library.TFMS_InjectTestFault(0, 0))
    print(tf.cuda.multi_stream_is_enabled(), tf.cuda.stream_group_count())
    print(tf.config.list_physical_devices("GPU"))
    gpus = tf.config.list_logical_devices("GPU")
    for gpu in [x.name for x in gpus] or ["CPU"]:
        with tf.device(gpu):
            x = tf.function(lambda x: x @ x + 1)(tf.ones([8, 8]))
        print(x.device, tf.reduce_sum(x).numpy())
    print([(s.gpu, s.group, s.bytes_limit) for s in tf.cuda.stream_stats()])
"""


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"TF_GPU_STREAM_GROUP_COUNT": "4"},  # an error: there is no GPU
        {"TF_GPU_STREAM_GROUP_COUNT": "4", "TF_MULTI_STREAM_EMULATED_GPUS": "1"},
        {
            "TF_GPU_STREAM_GROUP_COUNT": "2,3",
            "TF_MULTI_STREAM_EMULATED_GPUS": "2",
            "TF_MULTI_STREAM_POLICY": "cost",
            "TF_GPU_THREAD_MODE": "gpu_private",
            "TF_MULTI_STREAM_TEST_FAULTS": "true",
        },
        {"TF_GPU_STREAM_GROUP_COUNT": "2,3,4", "TF_MULTI_STREAM_EMULATED_GPUS": "2"},  # an error
        {"TF_GPU_STREAM_GROUP_COUNT": "many"},  # at import
        {
            "TF_GPU_STREAM_GROUP_COUNT": "2",
            "TF_MULTI_STREAM_EMULATED_GPUS": "1",
            "TF_NODE_LEVEL_MULTISTREAM": "1",
            "TF_STREAM_FROM_FILE": "/nowhere/groups.txt",
        },
    ],
    ids=["stock", "no GPU", "groups", "two GPUs", "long list", "wrong value", "no file"],
)
def test_the_runtime_does_what_the_variables_of_the_test_say(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forked and new process agree, down to the last line of an error."""
    forked, fresh = both(ABOUT_GROUPS, monkeypatch, **environment)
    assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout), forked.stderr
    if fresh.returncode != 0:
        assert forked.stderr.splitlines()[-1] == fresh.stderr.splitlines()[-1]


def test_what_the_log_says_of_variables_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"TF_MULTI_STREAM_POLICY": "cost", "TF_CPP_MIN_LOG_LEVEL": "1"}
    for done in both("import tensorflow", monkeypatch, **environment):
        assert done.stderr.count("have no effect: TF_MULTI_STREAM_POLICY (without several") == 1


def test_variables_of_the_runtime_need_no_server_of_their_own() -> None:
    server = "print(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
    of = {kit.ok(f"import os; {server}", TF_GPU_STREAM_GROUP_COUNT=count) for count in "123"}
    assert len(of) == 1
    assert kit.ok(f"import os; {server}", TF_FORCE_GPU_ALLOW_GROWTH="true") not in of


def test_a_process_that_has_variables_or_devices_takes_no_others() -> None:
    code = """
        import ctypes
        import os
        import tensorflow as tf
        from tensorflow.python.multistream import loader
        if "TF_GPU_STREAM_GROUP_COUNT" not in os.environ:
            tf.constant(1.0)
        os.environ["TF_GPU_STREAM_GROUP_COUNT"] = "5"
        message = ctypes.create_string_buffer(1000)
        assert loader.library.TFMS_LookAtEnvironmentAgain(message, len(message)) > 0
        print(tf.cuda.stream_group_count(), message.value.decode())
    """
    count = {"TF_GPU_STREAM_GROUP_COUNT": "2"}
    assert kit.ok(code, **count).startswith("2 This process has read multi-stream variables")
    assert kit.ok(code).startswith("1 This process has made devices")


def test_each_environment_has_a_server_of_its_own() -> None:
    """A job's stderr begins with the output of its server's import."""
    loud = {
        "TF_MULTI_STREAM_EMULATED_GPUS": "1",
        "TF_MULTI_STREAM_TEST_FAULTS": "true",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }
    code = """
        import sys
        import tensorflow as tf
        print(len(tf.config.list_physical_devices('GPU')))
        sys.exit("end")
    """
    for environment, gpus, said in (({}, 0, 0), (loud, 1, 1), ({}, 0, 0), (loud, 1, 1)):
        done = kit.run(code, **environment)
        assert done.stdout == f"{gpus}\n"
        assert done.stderr.count("with TF_MULTI_STREAM_TEST_FAULTS=true, tests can make") == said
        assert done.stderr.splitlines()[-1] == "end"


def test_code_is_main_in_the_folder_of_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code finds no module, file or signal handler of the server."""
    monkeypatch.chdir(tmp_path)
    code = """
        import os, signal, sys, threading
        class Mine: pass
        print(__name__, sys.argv, sys.path[0], os.getcwd(), sys.modules["__main__"].Mine)
        print(sorted(n for n in globals() if n[0] != "_"), "fork_server" in sys.modules)
        print(os.listdir("/proc/self/fd"))
        print([signal.getsignal(s) for s in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)])
        print(threading.current_thread() is threading.main_thread(), sys.stdin.read())
    """
    forked, fresh = both(code, monkeypatch)
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout == fresh.stdout


def test_a_file_is_main_where_the_test_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file gets its own arguments, and imports modules beside it."""
    (tmp_path / "beside.py").write_text("import os\nHERE = os.getcwd()\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import beside, sys\n"
        "class Mine: pass\n"
        "print(__name__, __file__, sys.argv, sys.path[0], beside.HERE, Mine.__module__)\n"
        "print(sorted(n for n in globals() if n[0] != '_'), sys.modules['__main__'].Mine is Mine)\n"
        "1 / len(sys.argv[2:])\n"
    )
    (tmp_path / "folder").mkdir()
    arguments = [program, "--option", "a b"]
    forked = [
        kit.run_program(arguments[:2], tmp_path / "folder"),
        kit.run_program(arguments, tmp_path / "folder"),
    ]
    monkeypatch.setattr(kit, "forks", False)
    for few, done in enumerate(forked, 2):
        fresh = kit.run_program(arguments[:few], tmp_path / "folder")
        assert done.returncode == fresh.returncode == (1 if few == 2 else 0), done.stderr
        assert done.stdout == fresh.stdout
        assert (
            ("ZeroDivisionError" in done.stderr)
            == ("ZeroDivisionError" in fresh.stderr)
            == (few == 2)
        )


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import atexit; atexit.register(print, 'at exit'); print('first')", 0),
        ("import sys; print('out'); sys.exit(3)", 3),
        ("import sys; sys.exit('says why')", 1),
        ("{}['key']", 1),
        ("not Python", 1),
        ("import os; print('not flushed'); os._exit(7)", 7),
        ("import os; os.abort()", -signal.SIGABRT),
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


def test_an_import_that_fails_is_an_error_of_the_code() -> None:
    done = kit.run("print('begins')\nimport tensorflow", TF_MULTI_STREAM_EMULATED_GPUS="x")
    assert (done.returncode, done.stdout) == (1, "begins\n")
    assert done.stderr.splitlines()[-1].startswith("ValueError: TF_MULTI_STREAM_EMULATED_GPUS")


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


def test_one_process_sees_nothing_of_another() -> None:
    change = "import os, tensorflow as tf; tf.mine = os.environ['TFMS_MINE'] = 'x'; tf.ones([2])"
    kit.ok(change)
    look = "import os, tensorflow as tf; print(hasattr(tf, 'mine'), 'TFMS_MINE' in os.environ)"
    assert kit.ok(look) == "False False\n"


def test_it_is_forked_unless_the_test_wants_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "import os, sys; print(os.getppid(), 'tensorflow' in sys.modules)"
    forked, fresh = both(code, monkeypatch)
    assert forked.stdout != fresh.stdout == f"{os.getpid()} False\n"


def test_a_server_that_nobody_needs_ends() -> None:
    server = kit.ForkServer({**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"})
    process = int(server.run(["-c", "import os; print(os.getpid())"], 60).stdout)
    assert not Path(f"/proc/{process}").exists()
    server_process = server._process
    del server
    assert server_process.returncode == 0
