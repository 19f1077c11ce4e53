# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a newcomer sees: the programs of scripts/quickstart.sh, as it runs them."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
EMULATED = {
    **os.environ,
    "TF_MULTI_STREAM_EMULATED_GPUS": "1",
    "TF_GPU_STREAM_GROUP_COUNT": "4",
    "TF_CPP_MIN_LOG_LEVEL": "1",
}
PROGRAMS = {
    "train": ["examples/train_branches.py"],
    "measure": [
        *("benchmarks/bench/main.py", "--quick", "--only=branches", "--peers=captured"),
        *("--clients=2", "--groups=4"),
    ],
}

# A line of TensorFlow's log in C++, before and after absl is initialized, or of absl.
LOG_LINE = re.compile(r"^([IWEF]\d{4} |\d{4}-\d\d-\d\d .*: [IWEF] |WARNING: )")


def in_script(
    function: str, command: list[str], log: pathlib.Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command at the root, as the scripts do by a function of common.sh."""
    script = f'source scripts/common.sh; trap - EXIT; LOG="$1"; shift; {function} "$@"'
    return subprocess.run(
        ["bash", "-c", script, "bash", str(log), *command],
        cwd=ROOT,
        env={**EMULATED, **more},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_newcomer_reads_no_line_of_a_log_and_the_log_has_no_error(
    name: str, tmp_path: pathlib.Path
) -> None:
    log = tmp_path / "logs" / "all.log"
    done = in_script("readable", [sys.executable, *PROGRAMS[name]], log)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    shown, logged = done.stdout.splitlines(), log.read_text().splitlines()
    assert shown and not [line for line in shown if LOG_LINE.search(line)]
    assert set(shown) <= set(logged)
    assert not [line for line in logged if "was not registered" in line]
    # What two libraries of stock TensorFlow 2.18 say as they are loaded.
    known = "already been registered"
    assert not [line for line in logged if re.match(r"[EF]\d{4} ", line) and known not in line]


def test_errors_and_warnings_are_shown_and_all_is_kept(tmp_path: pathlib.Path) -> None:
    kept = [
        "E0000 00:00:1795373531.153696    9473 utils.cc:181] NOT_FOUND: something real",
        "W0000 00:00:1795373531.153696    9473 bfc_allocator.cc:1] Allocator ran out of memory",
        "2026-11-22 19:00:00.000000: E tensorflow/core/x.cc:1] I am an error",
        "I said something with print",
        "Traceback (most recent call last):",
        "tensorflow.python.framework.errors_impl.InternalError: I0000 x.cc:1] in a message",
        "WARNING: the program's own",
    ]
    dropped = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795373530.591679    9473 port.cc:153] oneDNN custom operations are on.",
        "I0000 00:00:1795373530.592379    9473 cudart_stub.cc:31] Could not find cuda drivers.",
        "E0000 00:00:1795373530.592379    9473 computation_placer.cc:177] computation placer"
        " already registered. Please check linkage and avoid linking the same target more.",
        "E0000 00:00:1795373530.592379    9473 cuda_fft.cc:467] Unable to register cuFFT factory:"
        " Attempting to register factory for plugin cuFFT when one has already been registered",
    ]
    text = tmp_path / "text"
    text.write_text("\n".join([*dropped, *kept]) + "\n")
    log = tmp_path / "log"
    command = ["bash", "-c", f"cat '{text}' >&2; exit 7"]
    done = in_script("readable", command, log)
    assert done.returncode == 7
    assert done.stdout.splitlines() == kept
    assert log.read_text() == text.read_text()
    done = in_script("readable", command, log, TF_CPP_MIN_LOG_LEVEL="0")
    assert done.stdout.splitlines() == [*dropped, *kept]


def test_pip_is_heard_only_if_it_fails(tmp_path: pathlib.Path) -> None:
    chatter = "echo '[notice] A new release of pip is available'; echo 'WARNING: a location' >&2"
    done = in_script("quietly", ["bash", "-c", chatter], tmp_path / "log")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = in_script("quietly", ["bash", "-c", f"{chatter}; exit 3"], tmp_path / "log")
    assert done.returncode == 3
    assert "a new release of pip" in done.stderr.lower()
    assert (tmp_path / "log").read_text().count("WARNING: a location") == 2
