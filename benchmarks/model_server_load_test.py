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
"""model_server_load.py compares every answer of a model server, and finds wrong ones."""

from __future__ import annotations

import csv
import pathlib
import sys

import model_server_load
import pytest
from emulated_process import run_program

SMALL = ["--models", "mlp", "--setups", "captured", "--groups", "2", "--clients", "2"]


def test_servers_with_captured_steps_answer_right() -> None:
    done = run_program(
        "model_server_load.py",
        [*SMALL, "--processes", "2", "--servers", "2", "--seconds", "1"],
        TF_NODE_LEVEL_MULTISTREAM="false",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = csv.DictReader(done.stdout.splitlines())
    configuration = [row[name] for name in ("model", "setup", "servers", "groups", "clients")]
    assert configuration == ["mlp", "captured", "2", "2", "2"]
    assert row["wrong"] == "0"
    assert float(row["queries_per_second"]) > 10
    assert float(row["cpu_us"]) > 0
    assert 0 < float(row["cores_busy"]) < 1000


def test_profile_says_what_holds_pythons_lock() -> None:
    samples = """run (/a/threading.py:9);call (/srv/grpc/_server.py:12);parse (/srv/np/x.py:3) 30
run (/a/threading.py:9);call (/srv/grpc/_server.py:14);parse (/srv/np/x.py:4) 50
run (/a/threading.py:9);wait (/a/threading.py:11) 20
"""
    assert model_server_load.shares(samples, seconds=1) == [
        " 50.0 %  Python's lock is held",
        " 40.0 %  np/x.py parse",
        " 10.0 %  a/threading.py wait",
    ]


def test_a_missing_profiler_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(RuntimeError, match="pip install py-spy"),
        model_server_load.profile(1, 1, tmp_path / "samples"),
    ):
        pass


def test_wrong_answers_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_server_load.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(model_server_load, "run_setup", lambda *_: "100,1,2,3,4,5,6,1")
    assert model_server_load.main(SMALL) == 1
    assert capsys.readouterr().out.endswith("mlp,captured,1,2,2,100,1,2,3,4,5,6,1\n")


def test_a_server_that_does_not_start_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(model_server_load.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(model_server_load, "SERVER", tmp_path / "nothing.py")
    assert model_server_load.main(SMALL) == 1
    assert "mlp, captured: the server did not start" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "gpt"], "--models: unknown gpt"),
        (["--setups", "fast"], "--setups: unknown fast"),
        (["--clients", "0"], "--clients"),
        (["--servers", "1,none"], "--servers: 'none' is not a whole number from 1 to 64"),
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


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
