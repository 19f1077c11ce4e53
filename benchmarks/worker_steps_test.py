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
"""worker_steps.py measures all modes, and finds wrong results."""

from __future__ import annotations

import csv
import sys

import pytest
import worker_steps
from emulated_process import run_program

SMALL = ["--groups", "1", "--threads", "2", "--sizes", "4096", "--seconds", "0.4"]


def test_all_modes_give_the_same_results() -> None:
    done = run_program("worker_steps.py", SMALL)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["mode"] for row in rows] == list(worker_steps.MODES)
    assert all(int(row["steps"]) > 10 and float(row["p50_ms"]) > 0 for row in rows)


def test_other_results_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_options: object, mode: str, groups: int, size: int) -> tuple[str, str]:
        return f"{mode},{groups},{size}", "other" if mode == "rpc" else "same"

    monkeypatch.setattr(worker_steps, "run_setting", run)
    assert worker_steps.main(SMALL) == 1
    assert "rpc,1,4096: other results than the first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "1k"], "--sizes 1k: whole numbers"),
        (["--sizes", "8"], "--sizes: at least 64"),
        (["--seconds", "0"], "--seconds 0.0: above 0"),
        (["--groups", "0"], "--groups"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as error:
        worker_steps.main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
