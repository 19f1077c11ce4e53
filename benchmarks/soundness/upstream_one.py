# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one test file of TensorFlow's or Keras's, and notes how each of its tests ends.

    python upstream_one.py FILE NOTES

A line of JSON is added to NOTES as a test begins and as it ends: a crash leaves a test that has
begun only. Tests that have ended in NOTES already are left out. A file that runs its tests by
itself (`if __name__ == "__main__"`) does so; pytest runs the others, which are Keras's.
"""

import json
import os
import pathlib
import runpy
import shutil
import sys
import unittest
from typing import Any

RUNNING, PASSED, SKIPPED, FAILED, ERROR = "running", "passed", "skipped", "failed", "error"
# What unittest tells its result, and how the test has ended then.
ENDS = {
    "addSuccess": PASSED,
    "addSkip": SKIPPED,
    "addFailure": FAILED,
    "addError": ERROR,
    "addExpectedFailure": PASSED,
    "addUnexpectedSuccess": FAILED,
}


def read(notes: pathlib.Path) -> dict[str, tuple[str, str]]:
    """Returns how each noted test has ended and why; what is not "passed" stays."""
    found: dict[str, tuple[str, str]] = {}
    for line in notes.read_text().splitlines() if notes.exists() else []:
        test, end, why = json.loads(line)
        if end == RUNNING or found.get(test, (PASSED,))[0] in (RUNNING, PASSED):
            found[test] = (end, why)
    return found


def note(notes: pathlib.Path, test: str, end: str, why: str = "") -> None:
    """Adds a line to the notes."""
    with notes.open("a") as file:
        file.write(json.dumps([test, end, " ".join(why.split())[:200]]) + "\n")


def name_of(test: Any) -> str:
    """Class and name of a test of unittest's; a subtest has its test's."""
    return str(getattr(test, "test_case", test).id()).removeprefix("__main__.")


def run_by_itself(file: str, notes: pathlib.Path) -> None:
    """Runs the file as a program whose results of unittest are noted."""
    process = os.getpid()
    ended = read(notes)
    result: Any = unittest.TestResult
    run_test = unittest.TestCase.run

    def run(self: unittest.TestCase, into: Any = None) -> Any:
        return into if name_of(self) in ended else run_test(self, into)

    def noting(method: str, end: str) -> None:
        plain = getattr(result, method)

        def noted(self: Any, test: Any, *reason: Any) -> None:
            why = reason[0] if reason else ""  # of a skip; of an error, what sys.exc_info says
            if os.getpid() == process:  # not in a process that a test has forked
                note(notes, name_of(test), end, str(why[1] if isinstance(why, tuple) else why))
            plain(self, test, *reason)

        setattr(result, method, noted)

    add_subtest = result.addSubTest

    def add_noted_subtest(self: Any, test: Any, subtest: Any, error: Any) -> None:
        if error:
            failed = issubclass(error[0], test.failureException)
            note(notes, name_of(test), FAILED if failed else ERROR, str(error[1]))
        add_subtest(self, test, subtest, error)

    unittest.TestCase.run = run  # type: ignore[assignment, method-assign]
    result.addSubTest = add_noted_subtest
    noting("startTest", RUNNING)
    for method, end in ENDS.items():
        noting(method, end)
    sys.argv = [file]
    runpy.run_path(file, run_name="__main__")


def run_by_pytest(file: str, notes: pathlib.Path) -> int:
    """Runs a copy of the file, as pytest would import modules beside the file itself."""
    import pytest  # noqa: PLC0415

    ended = read(notes)

    def name(node: str) -> str:
        return node.split("::", 1)[1].replace("::", ".")

    class Plugin:
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            items[:] = [item for item in items if name(item.nodeid) not in ended]

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            note(notes, name(nodeid), RUNNING)

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call" or not report.passed:
                failed = FAILED if report.when == "call" else ERROR
                end = {"passed": PASSED, "skipped": SKIPPED}.get(report.outcome, failed)
                crash = getattr(report.longrepr, "reprcrash", None)
                skip = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
                why = crash.message if crash else str(skip or report.longrepr)
                note(notes, name(report.nodeid), end, why if end != PASSED else "")

    copy = shutil.copy(file, ".")
    options = ["--noconftest", "--rootdir=.", "-c", os.devnull, "-p", "no:cacheprovider"]
    return int(pytest.main([*options, "--import-mode=importlib", copy], plugins=[Plugin()]))


def main(file: str, notes: str) -> int:
    """Returns the exit status; a program that runs by itself may end before."""
    # Python puts this file's folder there; modules of the checkout must not be found either.
    sys.path.pop(0)
    if "__main__" in pathlib.Path(file).read_text():
        run_by_itself(file, pathlib.Path(notes))
        return 0
    return run_by_pytest(file, pathlib.Path(notes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
