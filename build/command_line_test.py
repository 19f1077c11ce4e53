# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each script and program says what it takes, and refuses what it does not know."""

import pathlib
import subprocess
import sys

import pytest

import fakes

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = sorted(path for path in (ROOT / "scripts").glob("*.*") if path.name != "common.sh")


def run(program: pathlib.Path, argument: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program)] if program.suffix == ".py" else [str(program)]
    return fakes.run([*command, argument])


@pytest.mark.parametrize("program", COMMANDS, ids=lambda program: program.name)
def test_help_has_usage_what_it_is_for_and_the_exit_status(program: pathlib.Path) -> None:
    done = run(program, "--help")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("usage: ") and program.name in first
    assert len(rest) > 2
    assert "Exit status: 0;" in done.stdout


@pytest.mark.parametrize("program", COMMANDS, ids=lambda program: program.name)
def test_unknown_argument_is_named_and_is_status_2(program: pathlib.Path) -> None:
    done = run(program, "--no-such-argument")
    assert done.returncode == 2, done.stdout + done.stderr
    said = done.stderr.splitlines()
    assert any("error: " in line for line in said)
    assert "--no-such-argument" in done.stderr or "required" in done.stderr
