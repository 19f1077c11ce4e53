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
"""The table of releases says what ran, and no more."""

from __future__ import annotations

import pathlib

import pytest

import test_releases
from build_error import BuildError
from test_releases import Result

# Lines that the programs printed.
EXAMPLES = "two_gpus\n0 of 64 results differ\n\n6 of 7 examples passed\nerror: failed: two_gpus"
CXX = """//a:b PASSED in 0.2s

Executed 3 out of 4 tests: 2 tests pass, 1 fails to build and 1 fails locally.
"""
REPORT = '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/></testsuites>'


def row(release: str, what: str = "examples", date: str = "2026-01-02", passed: int = 7) -> Result:
    return Result(release, "cp311", what, passed, 0, 0, "emulated", "abc", date)


def test_counts_are_those_that_the_programs_print() -> None:
    assert test_releases.examples_counts(EXAMPLES) == (6, 1, 0)
    assert test_releases.cxx_counts(CXX) == (2, 2, 0)
    assert test_releases.cxx_counts("Executed 0 out of 89 tests: 89 tests pass.") == (89, 0, 0)
    assert test_releases.cxx_counts("Executed 1 out of 1 test: 1 fails locally.") == (0, 1, 0)
    assert test_releases.python_counts(REPORT) == (3, 3, 3)


@pytest.mark.parametrize(
    ("counts", "printed"),
    [
        (test_releases.examples_counts, "Traceback: no module named tensorflow"),
        (test_releases.cxx_counts, "ERROR: build failed"),
        (test_releases.python_counts, "<testsuites><testsuite tests='0'/></testsuites>"),
    ],
)
def test_what_did_not_run_to_its_end_is_an_error_and_no_row(counts, printed: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BuildError):
        counts(printed)


def test_a_new_run_takes_the_place_of_the_old_one_and_of_no_other(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "releases.csv"
    test_releases.record([row("2.9.0"), row("2.20.0"), row("2.20.0", "C++ tests")], table)
    test_releases.record([row("2.20.0", date="2026-03-04", passed=6)], table)
    assert test_releases.read(table) == [
        row("2.20.0", "C++ tests"),
        row("2.20.0", date="2026-03-04", passed=6),
        row("2.9.0"),
    ]


def test_the_table_is_shown_with_the_day_of_each_run() -> None:
    head, line = test_releases.show([row("2.20.0", "Python tests")]).splitlines()
    assert head.split()[:3] == ["release", "python", "what"]
    assert line.split()[0] == "2.20.0" and line.endswith("2026-01-02")


def test_a_python_that_is_not_there_is_named() -> None:
    with pytest.raises(BuildError, match=r"python3\.99 is not on the PATH"):
        test_releases.python_command("cp399")
