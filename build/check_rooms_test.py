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
"""Tests of check_rooms.py."""

from __future__ import annotations

import pathlib
import sys

import pytest

import check_rooms
from build_error import BuildError

_REFUSES = [sys.executable, "-c", "import sys; print('x is not visible from y'); sys.exit(1)"]
_BUILDS = [sys.executable, "-c", "pass"]


def _room(runtime: pathlib.Path, name: str, visibility: str) -> None:
    (runtime / name).mkdir()
    (runtime / name / "BUILD.bazel").write_text(f"package(default_visibility = {visibility})")


def test_a_room_that_says_itself_who_may_use_it_is_found(tmp_path: pathlib.Path) -> None:
    _room(tmp_path, "stream", 'users_of("stream")')
    _room(tmp_path, "testing", '["//visibility:public"]')
    assert check_rooms.rooms_open_to_all(tmp_path) == []
    _room(tmp_path, "step", '["//visibility:public"]')
    _room(tmp_path, "plan", 'users_of("stream")')
    assert check_rooms.rooms_open_to_all(tmp_path) == ["plan", "step"]


def test_what_must_not_build_is_an_error_if_it_does() -> None:
    check_rooms.check_refused("//x", ["is not visible from"], _REFUSES)
    with pytest.raises(BuildError, match="//x builds, and must not"):
        check_rooms.check_refused("//x", ["is not visible from"], _BUILDS)


def test_another_failure_does_not_count_as_a_refusal() -> None:
    with pytest.raises(BuildError, match="not because of the rooms"):
        check_rooms.check_refused("//x", ["no such thing"], _REFUSES)
