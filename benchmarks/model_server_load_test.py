# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""model_server_load.py compares every answer of a model server, and finds wrong ones."""

import contextlib
import csv
import functools
import io
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import model_server_load
import pytest
from multistream.testing import kit

SMALL = ["--models", "mlp", "--setups", "front", "--groups", "2", "--clients", "2"]


PROGRAM = """
import sys
import model_server_load
# The model is saved in this process, which has imported TensorFlow.
model_server_load.subprocess.run = lambda command, **_: model_server_load.main(command[2:])
sys.exit(model_server_load.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("api", ["grpc", "rest"])
def test_a_server_with_a_front_answers_right(api: str) -> None:
    more = ["--size", "small", "--seconds", "1", "--api", api]
    done = kit.run_program(
        ["-c", PROGRAM, *SMALL, *more],
        pathlib.Path(model_server_load.__file__).parent,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
        TF_MULTI_STREAM_SANITIZER="abort",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = csv.DictReader(done.stdout.splitlines())
    configuration = [
        row[name] for name in ("model", "api", "setup", "servers", "groups", "clients")
    ]
    assert configuration == ["mlp", api, "front", "1", "2", "2"]
    assert row["wrong"] == "0"
    assert int(row["calls"]) > 10
    assert float(row["queries_per_second"]) > 10
    assert float(row["cpu_us"]) > 0
    assert 0 < float(row["p50_ms"]) <= float(row["p99_ms"]) <= float(row["longest_ms"])
    assert 0 < float(row["cores_busy"]) < 1000


def test_servers_share_the_clients_and_failed_calls_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []
    said = {"calls": 4, "per_second": 2.0, "failed": 0, "close": 2, "wrong": 1, "error": "away"}
    said |= dict.fromkeys(("p50", "p99", "p999", "longest"), 1.5)

    class Load:
        def __init__(self, command: Sequence[str]) -> None:
            started.append(list(command))
            self.stdin = self.stdout = io.StringIO("ready\n")

        def communicate(self, timeout: float = 0) -> tuple[str, None]:
            return json.dumps(said), None

    def running(command: Sequence[str], **_: Any) -> contextlib.nullcontext[Load]:
        if command[0] == "nvidia-smi":
            raise FileNotFoundError
        return contextlib.nullcontext(Load(command))

    monkeypatch.setattr(model_server_load, "running", running)
    options = model_server_load.parse_arguments(
        ["--clients", "9", "--servers", "2", "--rate", "100", "--seconds", "3"]
    )
    load = functools.partial(model_server_load.load_servers, options, ["one", "other"])
    row = load([os.getpid(), os.getpid()], "folder")
    assert [command[1:] for command in started] == [
        [address, "folder", "4", "3", "50.0"] for address in ("one", "other")
    ]
    assert row.startswith("0,100,4,1.500,1.500,1.500,1.500,")
    assert row.endswith(",8,4,2")
    said["failed"] = 1
    with pytest.raises(RuntimeError, match="2 of 8 calls failed, the last with away"):
        load([os.getpid()], "folder")


def test_wrong_answers_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_server_load.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(model_server_load, "run_setup", lambda *_: "0,0,100,1,2,3,4,5,6,7,8,0,1")
    assert model_server_load.main(SMALL) == 1
    assert capsys.readouterr().out.endswith("mlp,grpc,front,1,1,2,2,0,0,100,1,2,3,4,5,6,7,8,0,1\n")


def test_a_missing_load_program_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_server_load, "LOAD", pathlib.Path("nowhere/load"))
    with pytest.raises(SystemExit):
        model_server_load.main(SMALL)
    assert "scripts/build_front.sh builds it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "gpt"], "--models: there is no 'gpt'"),
        (["--clients", "4", "--servers", "5"], "--servers: more than --clients"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as error:
        model_server_load.main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err
