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
"""Tests of steadiness.py."""

from __future__ import annotations

import argparse
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import steadiness
from steadiness import Run, Setting

QUICK = Setting(groups=2, clients=2, cores=1, busy=1)


def program(folder: pathlib.Path, body: str) -> pathlib.Path:
    """A program in the place of multistream_inference; `figures` is its JSON file."""
    path = folder / "program"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "figures = next(a[7:] for a in sys.argv if a.startswith('--json='))\n" + body
    )
    path.chmod(0o755)
    return path


def test_all_combinations_are_run_once() -> None:
    all_settings = steadiness.settings([8, 16], [16, 64], [16, 8, 4], [0, 4])
    assert len(set(all_settings)) == len(all_settings) == 24


def test_one_slow_second_of_one_process_is_seen() -> None:
    other = Setting(8, 64, 16, 0)
    runs = [
        Run(QUICK, [100, 104], [2, 4], 1, 1),
        Run(QUICK, [30, 102], [1, 3], 1, 1),
        Run(other, [7, 7], [1, 1], 1, 1),
    ]
    by_setting = {of.setting: of for of in steadiness.summaries(runs)}
    assert by_setting[QUICK].lowest == 30
    assert by_setting[QUICK].median == 101
    assert by_setting[QUICK].ratio == pytest.approx(30 / 101)
    assert (by_setting[QUICK].lowest_cpu, by_setting[QUICK].median_cpu) == (1, 2.5)
    assert by_setting[other].ratio == 1


def test_a_run_gives_the_programs_figures(tmp_path: pathlib.Path) -> None:
    body = (
        "assert os.environ['TF_GPU_STREAM_GROUP_COUNT'] == '2'\n"
        "assert len(os.sched_getaffinity(0)) == 1\n"
        "open(figures, 'w').write('{\"queries_of_seconds\": [5, 6], \"max_ms\": 2.5,'\n"
        "    '\"cpu_of_seconds\": [1.5, 1.25],'\n"
        '    \'"groups": [{"longest_launch_wait_micros": 1500}]}\')\n'
    )
    run = steadiness.run(QUICK, 1, program(tmp_path, body))
    assert run == Run(QUICK, [5, 6], [1.5, 1.25], 2.5, 1.5)


def test_a_run_that_fails_has_the_programs_last_words(tmp_path: pathlib.Path) -> None:
    fails = program(tmp_path, "sys.exit('no such model')")
    with pytest.raises(RuntimeError, match=r"groups=2.*exit status 1.*no such model"):
        steadiness.run(QUICK, 1, fails)


def test_runs_are_written(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runs.csv"
    steadiness.write(path, [Run(QUICK, [5, 6], [1, 0.5], 2.5, 1.5)])
    assert path.read_text().splitlines()[1] == "2,2,1,1,2.5,1.5,5 6,1 0.5"


@pytest.mark.parametrize("text", ["8,x", "", "-1"])
def test_what_is_no_list_of_numbers_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=text or "''"):
        steadiness.numbers(text)
