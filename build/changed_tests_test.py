# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A change runs the tests that it can break: which they are."""

import pathlib
import subprocess

import pytest

import changed_tests
from build_error import BuildError

ROOM = "tensorflow/core/common_runtime/multistream/policy"
SOURCES = {
    "build/archive.py": "import os\n",
    "build/wheel.py": "from archive import Writer\n",
    "build/archive_test.py": "import archive\n",
    "build/wheel_test.py": "import wheel\n",
    "build/other_test.py": "import json\n",
    "examples/serve.py": "import tensorflow as tf\n",
    "examples/serve_test.py": 'PROGRAM = "serve.py"\n',
    "examples/reserve_test.py": 'PROGRAM = "reserve.py"\n',
    "examples/docs_test.py": "",
    "tensorflow/python/multistream/conftest.py": "",
    "tensorflow/python/multistream/groups/pinned.py": "",
    "tensorflow/python/multistream/groups/pinned_test.py": (
        "from tensorflow.python.multistream.groups import pinned\n"
    ),
    "tensorflow/python/multistream/stack.py": "def _push(): pass\n",
    "tensorflow/python/multistream/policies/plan_file.py": (
        "from tensorflow.python.multistream import stack\ndef save_plan(): pass\n"
    ),
    "tensorflow/python/multistream/policies/policy_test.py": 'RUN = "tf.cuda.save_plan(path)"\n',
}


MULTISTREAM = "tensorflow/python/multistream"


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        # A test, and what imports a module directly or through others.
        ("build/other_test.py", ["build/other_test.py"]),
        ("build/archive.py", ["build/archive_test.py", "build/wheel_test.py"]),
        ("build/wheel.py", ["build/wheel_test.py"]),
        (f"{MULTISTREAM}/groups/pinned.py", [f"{MULTISTREAM}/groups/pinned_test.py"]),
        # What calls what a module of the wheel, or a user of the module, defines.
        (f"{MULTISTREAM}/policies/plan_file.py", [f"{MULTISTREAM}/policies/policy_test.py"]),
        (f"{MULTISTREAM}/stack.py", [f"{MULTISTREAM}/policies/policy_test.py"]),
        # What names a program, and not what names a longer one.
        ("examples/serve.py", ["examples/serve_test.py"]),
        # All tests in the folder of a conftest, and below.
        (
            f"{MULTISTREAM}/conftest.py",
            [f"{MULTISTREAM}/groups/pinned_test.py", f"{MULTISTREAM}/policies/policy_test.py"],
        ),
        ("docs/memory.md", ["examples/docs_test.py"]),
        ("build/gone.py", []),
    ],
)
def test_change_runs_the_tests_that_it_can_break(changed: str, tests: list[str]) -> None:
    assert changed_tests.python_tests([changed], SOURCES) == tests


def test_bazel_is_asked_for_sources_data_and_all_of_a_build_file() -> None:
    data = "tensorflow/examples/multistream/data/config_proto"
    source = f"{ROOM}/chain_cover.cc"
    changed = ["docs/a.md", "build/wheel.py", "build/tensorflow.bzl", "scripts/test.sh"]
    assert changed_tests.bazel_targets([*changed, "patches/a/series"]) == []
    assert changed_tests.bazel_targets([source, data, f"{ROOM}/BUILD.bazel", "BUILD.bazel"]) == [
        source,
        data,
        f"//{ROOM}:all",
        "//:all",
    ]


def test_nearest_cxx_tests_run_until_they_are_enough() -> None:
    asked = []

    def query(expression: str) -> list[str]:
        asked.append(expression)
        return ["//a:test"] * 5 * len(asked)

    assert len(changed_tests.nearest_tests(["a.cc", "b.h"], query)) == 15
    assert asked == [f"tests(rdeps(//..., set(a.cc b.h), {depth}))" for depth in (2, 3, 4)]
    assert changed_tests.nearest_tests(["a.cc"], lambda expression: ["//a:test"]) == ["//a:test"]


@pytest.mark.parametrize(
    ("changed", "tests", "needed"),
    [
        ("tensorflow/python/multistream/groups/pinned.py", "examples/serve_test.py", True),
        ("patches/2.21.0/series", "examples/docs_test.py", True),
        ("tensorflow/python/multistream/groups/pinned_test.py", "examples/serve_test.py", False),
        ("tensorflow/python/multistream/groups/pinned.py", "build/wheel_test.py", False),
    ],
)
def test_wheel_is_made_only_where_it_has_the_change(changed: str, tests: str, needed: bool) -> None:
    assert changed_tests.needs_wheel([changed], [tests]) == needed


def test_changed_are_committed_uncommitted_new_and_deleted_files(tmp_path: pathlib.Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    git("init", "--quiet")
    for name in ("committed", "uncommitted", "deleted", "same"):
        (tmp_path / name).touch()
    git("add", ".")
    git("commit", "-qm", "a")
    (tmp_path / "committed").write_text("a")
    git("commit", "-aqm", "b")
    (tmp_path / "uncommitted").write_text("a")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").touch()
    found = changed_tests.changed_files("HEAD~1", tmp_path)
    assert found == ["committed", "deleted", "new", "uncommitted"]
    with pytest.raises(BuildError, match="nosuch"):
        changed_tests.changed_files("nosuch", tmp_path)
