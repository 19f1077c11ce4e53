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
"""Builds wheels of other TensorFlow releases and Pythons, and tests each in its own environment.

    python3 build/test_releases.py [--release RELEASE ...] [--python TAG ...] [--tests all]

For each release and Python it builds the wheel, installs it with what pip chooses, and runs the
examples; with `--tests all` the C++ tests and the Python tests of the runtime, too. CI does that
with one wheel only: each takes as long again.

What passed is printed, and kept in benchmarks/results/releases.csv. `--list` prints that table,
which says what ran last, and when.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence

from build_error import BuildError, command_line, run_main
from releases import BASE, RELEASES, release_named
from stock_wheel import cache_folder, check_tag, default_tag

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "benchmarks" / "results" / "releases.csv"
# Tests of the build itself are the same for every release.
_PYTHON_TESTS = ("tensorflow", "examples", "benchmarks")
_SERVING = "examples/serving"
_EXAMPLES = re.compile(r"^(\d+) of (\d+) examples passed$", re.MULTILINE)
_CXX = re.compile(r"^Executed \d+ out of (\d+) tests?: (.*)\.$", re.MULTILINE)
_CXX_PASSED = re.compile(r"(\d+) tests? pass")


@dataclasses.dataclass(frozen=True)
class Result:
    """A row of the table: what one wheel did.

    Args:
      release: of TensorFlow.
      python: tag of the Python.
      what: was run: "examples", "C++ tests" or "Python tests".
      passed: how many did.
      failed: how many did not.
      skipped: how many were not run, as what they need is not there.
      gpu: that they ran on: "emulated", or its name.
      commit: of this repository.
      date: of the day.
    """

    release: str
    python: str
    what: str
    passed: int
    failed: int
    skipped: int
    gpu: str
    commit: str
    date: str


COLUMNS = [field.name for field in dataclasses.fields(Result)]
# Passed, failed, skipped.
Counts = tuple[int, int, int]


def examples_counts(printed: str) -> Counts:
    """Reads the last line of scripts/run_examples.py.

    Args:
      printed: all that it printed.

    Returns:
      How many examples passed, failed and were skipped.

    Raises:
      BuildError: it did not come so far.
    """
    found = _EXAMPLES.search(printed)
    if found is None:
        raise BuildError(f"The examples did not run to their end:\n{printed[-2000:]}")
    return int(found[1]), int(found[2]) - int(found[1]), 0


def cxx_counts(printed: str) -> Counts:
    """Reads Bazel's summary of tests.

    Args:
      printed: all that `bazel test` printed.

    Returns:
      How many tests passed, failed (or could not be built) and were skipped.

    Raises:
      BuildError: there is no summary, as not all could be built.
    """
    found = _CXX.search(printed)
    if found is None:
        raise BuildError(f"The C++ tests were not built:\n{printed[-2000:]}")
    passed = _CXX_PASSED.search(found[2])
    count = int(passed[1]) if passed else 0
    return count, int(found[1]) - count, 0


def python_counts(report: str) -> Counts:
    """Reads pytest's report.

    Args:
      report: JUnit's XML.

    Returns:
      How many tests passed, failed and were skipped.

    Raises:
      BuildError: there is no test in it.
    """
    suites = list(ET.fromstring(report).iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    )
    if total == 0:
        raise BuildError("pytest found no tests.")
    return total - failures - errors - skipped, failures + errors, skipped


def record(results: Sequence[Result], table: pathlib.Path) -> None:
    """Writes rows into the table, in place of those of the same release, Python, tests and GPU.

    Args:
      results: the rows.
      table: the file; it is made if it is not there.
    """
    rows = {_key(row): row for row in [*read(table), *results]}
    ordered = sorted(
        rows.values(),
        key=lambda row: ([-int(part) for part in row.release.split(".")], row.python, _key(row)),
    )
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(dataclasses.asdict, ordered))


def read(table: pathlib.Path) -> list[Result]:
    """Reads the table.

    Args:
      table: the file.

    Returns:
      Its rows; none if it is not there.
    """
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [
            Result(
                release=row["release"],
                python=row["python"],
                what=row["what"],
                passed=int(row["passed"]),
                failed=int(row["failed"]),
                skipped=int(row["skipped"]),
                gpu=row["gpu"],
                commit=row["commit"],
                date=row["date"],
            )
            for row in csv.DictReader(file)
        ]


def _key(row: Result) -> tuple[str, ...]:
    return (row.release, row.python, row.what, row.gpu)


def show(rows: Sequence[Result]) -> str:
    """Lays out rows for a terminal.

    Args:
      rows: of the table.

    Returns:
      A line each, under the names of the columns.
    """
    lines = [COLUMNS, *([str(value) for value in dataclasses.astuple(row)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def python_command(tag: str) -> str:
    """Finds a Python.

    Args:
      tag: such as "cp312".

    Returns:
      The command, such as "python3.12".

    Raises:
      BuildError: it is not on the PATH.
    """
    name = f"python3.{tag.removeprefix('cp3')}"
    candidates = ["python3", name] if tag == default_tag() else [name]
    for command in candidates:
        # pyenv has commands that only say that they are not there.
        with contextlib.suppress(OSError):
            if (
                subprocess.run([command, "-c", ""], capture_output=True, check=False).returncode
                == 0
            ):
                return command
    raise BuildError(
        f"{name} is not on the PATH.\nInstall it, or choose other Pythons with --python."
    )


class Wheel:
    """One wheel: builds it, installs it and tests it.

    Args:
      release: of TensorFlow.
      tag: of the Python.
      python: its command.
    """

    def __init__(self, release: str, tag: str, python: str) -> None:
        self._release = release
        self._environment = ROOT / "dist" / "releases" / f"{release}-{tag}"
        self._python = python
        # So that the usual build stays as it is.
        output_base = cache_folder() / "bazel" / f"{release}-{tag}"
        self._bazel = [
            shutil.which("bazel") or "bazelisk",
            f"--output_base={output_base}",
        ]
        self._options = [
            "--curses=no",
            "--show_progress_rate_limit=30",
            f"--repo_env=TFMS_PYTHON={tag}",
            f"--repo_env=TFMS_RELEASE={release}",
        ]
        self._file = pathlib.Path()

    def build(self) -> None:
        """Builds the wheel.

        Raises:
          BuildError: it cannot be built.
        """
        _run([*self._bazel, "build", *self._options, "//build:wheel"])
        # bazel-bin is of whoever built last.
        binaries = _run([*self._bazel, "info", *self._options[2:], "bazel-bin"], shown=False)
        (self._file,) = pathlib.Path(binaries.split()[-1], "build", "wheel").glob("*.whl")

    def install(self, *requirements: str) -> None:
        """Installs the wheel, with what it needs.

        Args:
          *requirements: pip's arguments for what the tests need beside it.

        Raises:
          BuildError: pip finds no versions that go together.
        """
        shutil.rmtree(self._environment, ignore_errors=True)
        _run([self._python, "-m", "venv", str(self._environment)])
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        extra = "[and-cuda]" if gpu_name() != "emulated" else ""
        _run([self._inner_python, *pip, f"{self._file}{extra}", *requirements])

    @property
    def _inner_python(self) -> str:
        return str(self._environment / "bin" / "python")

    def examples(self) -> Counts:
        """Runs the examples.

        Returns:
          See examples_counts.
        """
        return examples_counts(_run([self._inner_python, "scripts/run_examples.py"], may_fail=True))

    def cxx_tests(self) -> Counts:
        """Runs the C++ tests.

        Returns:
          See cxx_counts.
        """
        command = [*self._bazel, "test", "--keep_going", *self._options, "//..."]
        return cxx_counts(_run(command, may_fail=True))

    def python_tests(self) -> Counts:
        """Runs the Python tests of the runtime.

        Returns:
          See python_counts.
        """
        report = self._environment / "tests.xml"
        report.unlink(missing_ok=True)
        # What the model server needs asks for the usual release.
        left_out = [] if self._release == BASE else [f"--ignore={_SERVING}"]
        pytest = ["-m", "pytest", "-n", str(os.cpu_count()), "--dist", "worksteal"]
        _run(
            [self._inner_python, *pytest, f"--junitxml={report}", *_PYTHON_TESTS, *left_out],
            may_fail=True,
        )
        if not report.exists():
            raise BuildError("pytest ended without a report; the lines above say why.")
        return python_counts(report.read_text())

    def end(self) -> None:
        """Ends the Bazel server of this wheel, which holds memory."""
        _run([*self._bazel, "shutdown"], shown=False)


def _run(command: Sequence[str], *, shown: bool = True, may_fail: bool = False) -> str:
    """Runs a command at the repository's root.

    Args:
      command: with its arguments.
      shown: whether what it prints is shown, too.
      may_fail: whether another exit status than 0 is no error.

    Returns:
      What it printed.

    Raises:
      BuildError: it failed; names the command.
    """
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if shown:
                print(line, end="", flush=True)
    if process.returncode and not may_fail:
        raise BuildError(
            f"failed with status {process.returncode}: {' '.join(command)}\n"
            + ("" if shown else "".join(lines[-20:]))
        )
    return "".join(lines)


def gpu_name() -> str:
    """Says what the tests run on.

    Returns:
      The name of the first GPU, or "emulated".
    """
    with contextlib.suppress(OSError):
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.splitlines()[0].strip()
    return "emulated"


def test_wheel(release: str, tag: str, every_test: bool) -> list[Result]:
    """Builds, installs and tests a wheel.

    Args:
      release: of TensorFlow.
      tag: of the Python.
      every_test: whether more than the examples run.

    Returns:
      The rows for the table.

    Raises:
      BuildError: it cannot be built or installed, or tests did not run to their end.
    """
    wheel = Wheel(release, tag, python_command(tag))
    runs: list[tuple[str, Callable[[], Counts]]] = [("examples", wheel.examples)]
    requirements: list[str] = []
    if every_test:
        runs += [("C++ tests", wheel.cxx_tests), ("Python tests", wheel.python_tests)]
        requirements = ["-r", "build/requirements-dev.txt", "-r", "build/requirements-apart.txt"]
        if release == BASE:
            requirements += ["-r", f"{_SERVING}/requirements.txt"]
    commit = _run(["git", "rev-parse", "--short", "HEAD"], shown=False).strip()
    try:
        print(f"\n{release} {tag}: wheel", flush=True)
        wheel.build()
        wheel.install(*requirements)
        results = []
        for what, run in runs:
            print(f"\n{release} {tag}: {what}", flush=True)
            date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
            results.append(Result(release, tag, what, *run(), gpu_name(), commit, date))
        return results
    finally:
        wheel.end()


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--release", action="append", help="may be given again; all but the usual")
    parser.add_argument("--python", action="append", help="may be given again; that of python3")
    parser.add_argument("--tests", choices=["examples", "all"], default="examples")
    parser.add_argument("--list", action="store_true", help="print the table, and run nothing")
    options = parser.parse_args()
    if options.list:
        print(show(read(TABLE)))
        return
    # Before anything is built.
    wheels = [
        (release, check_tag(tag, release))
        for release in options.release or [name for name in RELEASES if name != BASE]
        if release_named(release)
        for tag in options.python or [default_tag()]
    ]
    for _, tag in wheels:
        python_command(tag)
    results, failed = [], []
    for release, tag in wheels:
        try:
            results += test_wheel(release, tag, options.tests == "all")
        except BuildError as error:
            failed.append(f"{release} {tag}: {error}")
        record(results, TABLE)
    print("\n" + show(results))
    failed += [f"{row.release} {row.python}: {row.what}" for row in results if row.failed]
    if failed:
        raise BuildError("failed:\n" + "\n".join(failed))


if __name__ == "__main__":
    run_main(main)
