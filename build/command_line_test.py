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
"""Each script and program says what it takes, and refuses what it does not know."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Programs have a main; what is beside them are modules.
PROGRAMS = [
    *sorted(script for script in (ROOT / "scripts").glob("*.sh") if script.name != "common.sh"),
    *sorted(
        program
        for program in (ROOT / "build").glob("*.py")
        if "\n    run_main(main)\n" in program.read_text()
    ),
    ROOT / "benchmarks" / "soak" / "soak.py",
    ROOT / "scripts" / "run_examples.py",
]


def run(program: pathlib.Path, argument: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program)] if program.suffix == ".py" else [str(program)]
    return subprocess.run(
        [*command, argument], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_help_has_a_usage_line_and_what_it_is_for(program: pathlib.Path) -> None:
    done = run(program, "--help")
    assert done.returncode == 0, done.stderr
    first, *_ = done.stdout.splitlines()
    if program.suffix == ".py":
        assert first.startswith(f"usage: {program.name}")
    else:
        assert first.startswith("usage: ") and f"scripts/{program.name}" in first
    assert len(done.stdout.splitlines()) > 3


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_help_says_what_the_exit_status_means(program: pathlib.Path) -> None:
    assert "Exit status: 0;" in run(program, "--help").stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_unknown_argument_is_named_and_is_status_2(program: pathlib.Path) -> None:
    done = run(program, "--no-such-argument")
    assert done.returncode == 2, done.stdout + done.stderr
    said = done.stderr.splitlines()
    assert any("error: " in line for line in said)
    assert "--no-such-argument" in done.stderr or "required" in done.stderr


def test_all_scripts_and_programs_are_looked_at() -> None:
    assert {"test.sh", "build_wheel.sh", "check_links.py", "stock_wheel.py", "soak.py"} <= {
        program.name for program in PROGRAMS
    }
