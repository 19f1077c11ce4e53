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
from __future__ import annotations

import io
import pathlib
import struct
import zipfile

import pytest

from wheel_archive import ArchiveWriter, _central_record, _Entry

WHEN = (2026, 3, 5, 0, 49, 18)


class Pipe(io.FileIO):
    """Cannot seek, so that zipfile writes each member's sizes after it."""

    def tell(self) -> int:
        raise OSError

    def seek(self, offset: int, whence: int = 0) -> int:
        raise OSError


def raw_bytes(archive: pathlib.Path, name: str) -> bytes:
    """Returns a member's bytes as they lie in the archive."""
    with zipfile.ZipFile(archive) as file:
        member = file.getinfo(name)
    data = archive.read_bytes()
    name_size, extra_size = struct.unpack_from("<HH", data, member.header_offset + 26)
    start = member.header_offset + 30 + name_size + extra_size
    return data[start : start + member.compress_size]


def test_copied_members_keep_their_bytes(tmp_path: pathlib.Path) -> None:
    source, target = tmp_path / "source.zip", tmp_path / "target.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("deflated", b"text " * 1000, zipfile.ZIP_DEFLATED, compresslevel=1)
        archive.writestr("stored", b"text " * 1000, zipfile.ZIP_STORED)
    with (
        zipfile.ZipFile(source) as archive,
        source.open("rb") as file,
        ArchiveWriter(target) as writer,
    ):
        writer.copy(file, archive.getinfo("stored"), "stored")
        writer.copy(file, archive.getinfo("deflated"), "other/name")
    assert raw_bytes(target, "other/name") == raw_bytes(source, "deflated")
    assert raw_bytes(target, "stored") == raw_bytes(source, "stored")
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        assert archive.read("other/name") == b"text " * 1000


def test_copies_a_member_whose_sizes_follow_its_data(tmp_path: pathlib.Path) -> None:
    source, target = tmp_path / "source.zip", tmp_path / "target.zip"
    with Pipe(source, "wb") as sink, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"text " * 1000)
        archive.writestr("b", b"more " * 1000)
    with zipfile.ZipFile(source) as archive, source.open("rb") as file:
        assert archive.getinfo("a").flag_bits & 8
        with ArchiveWriter(target) as writer:
            for member in archive.infolist():
                writer.copy(file, member, member.filename)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        assert archive.read("b") == b"more " * 1000


def test_added_members_read_back(tmp_path: pathlib.Path) -> None:
    target = tmp_path / "target.zip"
    with ArchiveWriter(target) as writer:
        writer.add("tensorflow/é.py", b"x = 1\n" * 100, WHEN, mode=0o755)
    with zipfile.ZipFile(target) as archive:
        member = archive.getinfo("tensorflow/é.py")
        assert archive.read(member) == b"x = 1\n" * 100
        assert member.date_time == WHEN
        assert member.external_attr >> 16 == 0o100755


def test_a_name_may_be_used_once(tmp_path: pathlib.Path) -> None:
    with ArchiveWriter(tmp_path / "target.zip") as writer:
        writer.add("tensorflow/a.py", b"", WHEN)
        with pytest.raises(ValueError, match="tensorflow/a.py"):
            writer.add("tensorflow/a.py", b"", WHEN)


def test_more_members_than_a_plain_archive_can_count(tmp_path: pathlib.Path) -> None:
    target = tmp_path / "target.zip"
    with ArchiveWriter(target) as writer:
        for number in range(65_600):
            writer.add(str(number), b"", WHEN)
    with zipfile.ZipFile(target) as archive:
        assert len(archive.namelist()) == 65_600


def test_a_member_beyond_4_gib_has_64_bit_fields() -> None:
    offset, size = 5 << 30, 6 << 30
    record = _central_record(_Entry("a", 8, WHEN, 0, 123, size, 0, offset))
    assert struct.unpack_from("<II", record, 20) == (123, 0xFFFFFFFF)
    assert struct.unpack_from("<I", record, 42) == (0xFFFFFFFF,)
    assert record[46:] == b"a" + struct.pack("<HHQQ", 1, 16, size, offset)
