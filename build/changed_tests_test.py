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


def broken_by(*changed: str) -> list[str]:
    return changed_tests.python_tests(changed, SOURCES)


def test_changed_test_runs() -> None:
    assert broken_by("build/other_test.py") == ["build/other_test.py"]


def test_users_of_a_module_run_directly_or_through_others() -> None:
    assert broken_by("build/archive.py") == ["build/archive_test.py", "build/wheel_test.py"]
    assert broken_by("build/wheel.py") == ["build/wheel_test.py"]


def test_module_of_the_wheel_is_known_by_its_full_name() -> None:
    assert broken_by("tensorflow/python/multistream/groups/pinned.py") == [
        "tensorflow/python/multistream/groups/pinned_test.py"
    ]


def test_test_that_calls_what_a_module_of_the_wheel_defines_runs() -> None:
    policy_test = ["tensorflow/python/multistream/policies/policy_test.py"]
    assert broken_by("tensorflow/python/multistream/policies/plan_file.py") == policy_test
    assert broken_by("tensorflow/python/multistream/stack.py") == policy_test


def test_what_names_a_program_runs_and_not_what_names_a_longer_one() -> None:
    assert broken_by("examples/serve.py") == ["examples/serve_test.py"]


def test_conftest_is_used_by_all_tests_in_its_folder_and_below() -> None:
    assert broken_by("tensorflow/python/multistream/conftest.py") == [
        "tensorflow/python/multistream/groups/pinned_test.py",
        "tensorflow/python/multistream/policies/policy_test.py",
    ]


def test_page_runs_the_programs_of_pages() -> None:
    assert broken_by("docs/memory.md") == ["examples/docs_test.py"]


def test_file_that_is_gone_breaks_no_mapping() -> None:
    assert broken_by("build/gone.py") == []


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
        ("examples/serve.py", "examples/serve_test.py", False),
    ],
)
def test_wheel_is_made_only_where_it_has_the_change(changed: str, tests: str, needed: bool) -> None:
    assert changed_tests.needs_wheel([changed], [tests]) == needed


def git(root: pathlib.Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def test_changed_are_committed_uncommitted_new_and_deleted_files(tmp_path: pathlib.Path) -> None:
    git(tmp_path, "init")
    for name in ("committed", "uncommitted", "deleted", "same"):
        (tmp_path / name).touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "a")
    (tmp_path / "committed").write_text("a")
    git(tmp_path, "commit", "-a", "-m", "b")
    (tmp_path / "uncommitted").write_text("a")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").touch()
    found = changed_tests.changed_files("HEAD~1", tmp_path)
    assert found == ["committed", "deleted", "new", "uncommitted"]


def test_unknown_commit_is_named(tmp_path: pathlib.Path) -> None:
    git(tmp_path, "init")
    with pytest.raises(BuildError, match="nosuch"):
        changed_tests.changed_files("nosuch", tmp_path)
