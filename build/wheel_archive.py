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
"""Writes zip archives whose bytes depend on their content only, with members copied as they are.

Python's zipfile can add a member only by compressing it. Most members of our wheel are the stock
wheel's: copying their compressed bytes takes a second where compressing them takes minutes.
"""

from __future__ import annotations

import dataclasses
import pathlib
import struct
import types
import zipfile
import zlib
from typing import BinaryIO

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_END64_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4sHHHHIIH")

_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_UTF8_FLAG = 0x800
_VERSION, _VERSION_ZIP64 = 20, 45
_BLOCK = 1 << 22

DateTime = tuple[int, int, int, int, int, int]


@dataclasses.dataclass(frozen=True)
class _Entry:
    name: str
    method: int
    date_time: DateTime
    crc: int
    compressed_size: int
    size: int
    attributes: int
    offset: int

    @property
    def flags(self) -> int:
        return 0 if self.name.isascii() else _UTF8_FLAG


class ArchiveWriter:
    """Writes one archive, member by member.

    Args:
      path: the file to write.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._entries: list[_Entry] = []
        self._names: set[str] = set()

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        if kind is None:
            self._write_directory()
        self._file.close()

    def copy(self, source: BinaryIO, member: zipfile.ZipInfo, name: str) -> None:
        """Adds a member of another archive with its compressed bytes.

        Args:
          source: the other archive's file.
          member: the member.
          name: its name in this archive.
        """
        source.seek(member.header_offset)
        header = _LOCAL.unpack(source.read(_LOCAL.size))
        source.seek(header[9] + header[10], 1)
        self._begin(
            _Entry(
                name,
                member.compress_type,
                member.date_time,
                member.CRC,
                member.compress_size,
                member.file_size,
                member.external_attr,
                self._file.tell(),
            )
        )
        left = member.compress_size
        while left:
            block = source.read(min(left, _BLOCK))
            if not block:
                raise zipfile.BadZipFile(f"{member.filename} is cut off.")
            self._file.write(block)
            left -= len(block)

    def add(self, name: str, content: bytes, date_time: DateTime, mode: int = 0o644) -> None:
        """Adds a file, compressed.

        Args:
          name: its name in this archive.
          content: its bytes.
          date_time: when it was changed, as the archive is to say.
          mode: permission bits.
        """
        compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        compressed = compressor.compress(content) + compressor.flush()
        self._begin(
            _Entry(
                name,
                zipfile.ZIP_DEFLATED,
                date_time,
                zlib.crc32(content),
                len(compressed),
                len(content),
                (0o100000 | mode) << 16,
                self._file.tell(),
            )
        )
        self._file.write(compressed)

    def _begin(self, entry: _Entry) -> None:
        if entry.name in self._names:
            raise ValueError(f"{entry.name} is in the archive already.")
        self._names.add(entry.name)
        self._entries.append(entry)
        name = entry.name.encode()
        sizes = (entry.compressed_size, entry.size)
        version, extra = _VERSION, b""
        if max(sizes) >= _MAX32:
            # A local header that has one size in its extra field must have both.
            extra = struct.pack("<HHQQ", 1, 16, entry.size, entry.compressed_size)
            version, sizes = _VERSION_ZIP64, (_MAX32, _MAX32)
        fields = (b"PK\3\4", version, entry.flags, entry.method, *_dos_time(entry.date_time))
        self._file.write(_LOCAL.pack(*fields, entry.crc, *sizes, len(name), len(extra)))
        self._file.write(name + extra)

    def _write_directory(self) -> None:
        start = self._file.tell()
        for entry in self._entries:
            self._file.write(_central_record(entry))
        end = self._file.tell()
        count, size = len(self._entries), end - start
        if count >= _MAX16 or start >= _MAX32 or size >= _MAX32:
            version = 3 << 8 | _VERSION_ZIP64
            self._file.write(
                _END64.pack(b"PK\6\6", 44, version, _VERSION_ZIP64, 0, 0, count, count, size, start)
            )
            self._file.write(_END64_LOCATOR.pack(b"PK\6\7", 0, end, 1))
            count, size, start = min(count, _MAX16), min(size, _MAX32), min(start, _MAX32)
        self._file.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))


def _central_record(entry: _Entry) -> bytes:
    # The extra field has exactly the values that do not fit, in this order.
    values = [entry.size, entry.compressed_size, entry.offset]
    large = [value for value in values if value >= _MAX32]
    extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    size, compressed_size, offset = (min(value, _MAX32) for value in values)
    version = _VERSION_ZIP64 if large else _VERSION
    name = entry.name.encode()
    record = _CENTRAL.pack(
        b"PK\1\2",
        3 << 8 | version,  # Made on Unix: the attributes have permission bits.
        version,
        entry.flags,
        entry.method,
        *_dos_time(entry.date_time),
        entry.crc,
        compressed_size,
        size,
        len(name),
        len(extra),
        0,
        0,
        0,
        entry.attributes,
        offset,
    )
    return record + name + extra


def _dos_time(date_time: DateTime) -> tuple[int, int]:
    year, month, day, hour, minute, second = date_time
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
