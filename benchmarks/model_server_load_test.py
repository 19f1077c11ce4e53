# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""model_server_load.py compares every answer of a model server, and finds wrong ones."""

import contextlib
import csv
import pathlib
from collections.abc import Sequence
from typing import Any

import model_server_load
import pytest
from multistream.testing import kit

SMALL = ["--models", "mlp", "--setups", "captured", "--groups", "2", "--clients", "2"]


PROGRAM = """
import sys
import model_server_load
# The model is saved in this process, which has imported TensorFlow.
model_server_load.subprocess.run = lambda command, **_: model_server_load.main(command[2:])
sys.exit(model_server_load.main(sys.argv[1:]))
"""


def test_a_server_with_captured_steps_answers_right() -> None:
    more = ["--size", "small", "--processes", "1", "--seconds", "1"]
    done = kit.run_program(
        ["-c", PROGRAM, *SMALL, *more],
        pathlib.Path(model_server_load.__file__).parent,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
        TF_MULTI_STREAM_SANITIZER="abort",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = csv.DictReader(done.stdout.splitlines())
    configuration = [row[name] for name in ("model", "setup", "servers", "groups", "clients")]
    assert configuration == ["mlp", "captured", "1", "2", "2"]
    assert row["wrong"] == "0"
    assert float(row["queries_per_second"]) > 10
    assert float(row["cpu_us"]) > 0
    assert 0 < float(row["cores_busy"]) < 1000


def test_processes_take_the_servers_in_turn_and_share_the_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []

    def running(command: Sequence[str], **_: Any) -> contextlib.nullcontext[None]:
        started.append(list(command))
        return contextlib.nullcontext()

    monkeypatch.setattr(model_server_load, "running", running)
    options = model_server_load.parse_arguments(
        ["--clients", "8", "--processes", "3", "--servers", "2"]
    )
    with contextlib.ExitStack() as stack:
        model_server_load.start_clients(stack, options, ["one", "other"], "folder")
    assert [command[-2:] for command in started] == [
        [address, "folder"] for address in ("one", "other", "one")
    ]
    assert {command[command.index("--clients") + 1] for command in started} == {"2"}


def test_wrong_answers_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_server_load.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(model_server_load, "run_setup", lambda *_: "100,1,2,3,4,5,6,1")
    assert model_server_load.main(SMALL) == 1
    assert capsys.readouterr().out.endswith("mlp,captured,1,2,2,100,1,2,3,4,5,6,1\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "gpt"], "--models: there is no 'gpt'"),
        (["--servers", "5"], "--servers: more than --processes"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as error:
        model_server_load.main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err
