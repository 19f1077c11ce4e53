# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""model_server_load.py compares every answer of a model server, and finds wrong ones."""

import csv
import pathlib

import model_server_load
import pytest
from multistream.testing import kit

SMALL = ["--models", "mlp", "--setups", "captured", "--groups", "2", "--clients", "2"]


def test_servers_with_captured_steps_answer_right() -> None:
    more = ["--size", "small", "--processes", "2", "--servers", "2", "--seconds", "1"]
    program = pathlib.Path(model_server_load.__file__)
    done = kit.run_program(
        [str(program), *SMALL, *more],
        program.parent,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
        TF_MULTI_STREAM_SANITIZER="abort",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = csv.DictReader(done.stdout.splitlines())
    configuration = [row[name] for name in ("model", "setup", "servers", "groups", "clients")]
    assert configuration == ["mlp", "captured", "2", "2", "2"]
    assert row["wrong"] == "0"
    assert float(row["queries_per_second"]) > 10
    assert float(row["cpu_us"]) > 0
    assert 0 < float(row["cores_busy"]) < 1000


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
