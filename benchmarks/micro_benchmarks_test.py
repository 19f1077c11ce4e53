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
"""micro_benchmarks.py runs the C++ benchmarks, and says what is slower than it was beyond noise."""

from __future__ import annotations

import json
import pathlib
import sys

import micro_benchmarks
import pytest
from micro_benchmarks import Figures, verdicts


def test_every_part_is_measured_for_real(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    assert micro_benchmarks.main(["--quick", "--json", str(path)]) == 0, capsys.readouterr().err
    figures = micro_benchmarks.load(path)
    assert list(figures) == [part.name for part in micro_benchmarks.PARTS]
    for part in micro_benchmarks.PARTS:
        one = figures[part.name]
        assert len(one.ours) == 1 and one.ours[0] > 0, part
        assert [x > 0 for x in one.stock] == [True] * bool(part.stock), part


def test_verdicts_are_beyond_the_noise_of_both_runs() -> None:
    old = {name: Figures([20.0, 30.0], [10.0, 10.0]) for name in ("a", "b", "c", "once", "gone")}
    new = {
        "a": Figures([62.0, 70.0], [20.0, 20.0]),  # 3.1 to 3.5, after 2 to 3
        "b": Figures([19.0, 17.0], [10.0, 10.0]),
        "c": Figures([62.0, 58.0], [20.0, 20.0]),
        "once": Figures([900.0], [10.0]),
        "new": Figures([1.0, 1.0]),
    }
    assert verdicts(old, new) == {
        "a": "slower",
        "b": "faster",
        "c": "within noise",
        "once": "within noise",
    }


def test_a_part_without_stock_compares_its_time() -> None:
    assert verdicts({"a": Figures([5.0, 6.0])}, {"a": Figures([7.0, 8.0])}) == {"a": "slower"}


def test_what_is_slower_is_the_exit_status(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"parts": {"a hold": {"ours": [5, 6], "stock": []}}}))
    monkeypatch.setattr(
        micro_benchmarks, "measure", lambda *_: {"a hold": Figures([70.0, 80.0], [])}
    )
    assert micro_benchmarks.main(["--compare", str(old)]) == 1
    assert "slower: a hold" in capsys.readouterr().out


def test_a_benchmark_that_fails_is_named() -> None:
    report = {"benchmarks": [{"name": "Hold", "error_occurred": True, "error_message": "no group"}]}
    with pytest.raises(RuntimeError, match="Hold: no group"):
        micro_benchmarks.times_of(json.dumps(report))


def test_a_program_that_fails_says_why(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "part_benchmarks"
    program.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"status 3:\nno memory"):
        micro_benchmarks.run("parts", 1, tmp_path)


def test_a_program_that_is_not_built_says_how_to(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="bazel build //tensorflow/.*:step_benchmarks"):
        micro_benchmarks.run("captured", 1, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"parts": {"a": {"ours": [1]}}}'])
def test_another_file_is_no_run(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(RuntimeError, match="other.json is no run of micro_benchmarks.py"):
        micro_benchmarks.load(path)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
