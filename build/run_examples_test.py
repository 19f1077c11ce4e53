# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""scripts/run_examples.py runs each example, on emulated GPUs if there is no other."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import fakes

ROOT = pathlib.Path(__file__).resolve().parent.parent
EMULATED = "TF_MULTI_STREAM_EMULATED_GPUS"
# Stands for TensorFlow, with as many GPUs as FAKE_GPUS says.
TENSORFLOW = """
import os
class config:
    list_physical_devices = lambda kind: [kind] * int(os.environ["FAKE_GPUS"])
"""
SHOW = f"import os\nprint('emulated', os.environ.get('{EMULATED}', 'none'))\n"
PAIR = f'"""Two.\n\n    {EMULATED}=2 python examples/pair.py\n"""\n{SHOW}'


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the program, with examples that show the variable."""
    for name in ("scripts", "examples", "modules"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / "scripts/run_examples.py", tmp_path / "scripts")
    (tmp_path / "modules/tensorflow.py").write_text(TENSORFLOW)
    (tmp_path / "examples/one.py").write_text(SHOW)
    (tmp_path / "examples/pair.py").write_text(PAIR)
    (tmp_path / "examples/one_test.py").write_text("raise SystemExit('a test was run')")
    return tmp_path


def run(
    folder: pathlib.Path, *arguments: str, gpus: int = 0, emulated: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the program where TensorFlow sees so many GPUs."""
    clean = {k: v for k, v in os.environ.items() if k != EMULATED}
    if emulated:
        clean[EMULATED] = emulated
    environment = {**clean, "PYTHONPATH": str(folder / "modules"), "FAKE_GPUS": str(gpus)}
    command = [sys.executable, str(folder / "scripts/run_examples.py"), *arguments]
    return fakes.run(command, environment)


def test_without_a_gpu_each_example_has_as_many_emulated_ones_as_its_head_says(
    folder: pathlib.Path,
) -> None:
    done = run(folder)
    assert done.returncode == 0, done.stderr
    assert "TensorFlow sees no GPU" in done.stdout
    assert done.stdout.endswith("\none\nemulated 1\n\npair\nemulated 2\n\n2 of 2 examples passed\n")


def test_gpus_and_a_number_of_emulated_ones_are_taken_as_they_are(folder: pathlib.Path) -> None:
    assert "one\nemulated none\n\npair\nemulated none\n" in run(folder, gpus=1).stdout
    done = run(folder, "pair", emulated="3")
    assert done.stdout == "\npair\nemulated 3\n\n1 of 1 examples passed\n"


def test_failed_example_is_named_with_what_it_said_and_the_next_runs(
    folder: pathlib.Path,
) -> None:
    (folder / "examples/early.py").write_text("raise SystemExit('wrong answers')")
    done = run(folder)
    assert done.returncode == 1
    assert "wrong answers\n" in done.stderr
    assert "error: failed: early (status 1)." in done.stderr
    assert "pair\nemulated 2\n\n2 of 3 examples passed\n" in done.stdout
