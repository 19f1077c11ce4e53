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
"""Tells which platform tag is true for a wheel that has a given shared library in it.

A manylinux level promises which versions of the C and C++ libraries' symbols a wheel needs at most
(PEP 600). The versions needed are read from the library itself.
"""

from __future__ import annotations

import dataclasses
import pathlib
import struct

from build_error import BuildError

# The newest symbol version that each level allows on x86_64, of the libraries that it allows;
# auditwheel's policies say the same. Levels below TensorFlow's own are of no use here.
_POLICIES: tuple[tuple[tuple[int, int], dict[str, str]], ...] = (
    ((2, 27), {"GLIBC": "2.27", "GLIBCXX": "3.4.24", "CXXABI": "1.3.11", "GCC": "7.0.0"}),
    ((2, 28), {"GLIBC": "2.28", "GLIBCXX": "3.4.24", "CXXABI": "1.3.11", "GCC": "7.0.0"}),
    ((2, 31), {"GLIBC": "2.31", "GLIBCXX": "3.4.28", "CXXABI": "1.3.12", "GCC": "7.0.0"}),
    ((2, 34), {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "7.0.0"}),
    ((2, 35), {"GLIBC": "2.35", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13", "GCC": "12.0.0"}),
    ((2, 36), {"GLIBC": "2.36", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13", "GCC": "12.0.0"}),
    ((2, 38), {"GLIBC": "2.38", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13", "GCC": "12.0.0"}),
    ((2, 39), {"GLIBC": "2.39", "GLIBCXX": "3.4.33", "CXXABI": "1.3.15", "GCC": "14.0.0"}),
    ((2, 40), {"GLIBC": "2.40", "GLIBCXX": "3.4.33", "CXXABI": "1.3.15", "GCC": "14.0.0"}),
    ((2, 41), {"GLIBC": "2.41", "GLIBCXX": "3.4.33", "CXXABI": "1.3.15", "GCC": "14.0.0"}),
)

_ALLOWED_LIBRARIES = frozenset(
    (
        "ld-linux-x86-64.so.2",
        "libc.so.6",
        "libdl.so.2",
        "libgcc_s.so.1",
        "libm.so.6",
        "libpthread.so.0",
        "librt.so.1",
        "libstdc++.so.6",
    )
)

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a shared library needs of others.

    Args:
      libraries: their names, such as "libc.so.6".
      versions: symbol versions, such as "GLIBC_2.34", by the library that has them.
    """

    libraries: frozenset[str]
    versions: dict[str, frozenset[str]]


def read_needs(path: pathlib.Path) -> Needs:
    """Reads what a shared library needs from its dynamic section.

    Args:
      path: an ELF file for x86-64.

    Returns:
      The libraries and symbol versions.

    Raises:
      BuildError: it is no such file.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise BuildError(f"{path} is not a 64-bit little-endian ELF file.")
    (headers_at,) = struct.unpack_from("<Q", data, 32)
    header_size, header_count = struct.unpack_from("<HH", data, 54)
    segments: list[tuple[int, int, int, int]] = []
    for index in range(header_count):
        at = headers_at + index * header_size
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, at)
        segments.append((kind, offset, address, size))

    def offset_of(address: int) -> int:
        for kind, offset, start, size in segments:
            if kind == _PT_LOAD and start <= address < start + size:
                return offset + address - start
        raise BuildError(f"{path}: address {address:#x} is in no segment of the file.")

    dynamic: list[tuple[int, int]] = []
    for kind, offset, _, size in segments:
        if kind == _PT_DYNAMIC:
            dynamic = list(struct.iter_unpack("<QQ", data[offset : offset + size]))
    end = [tag for tag, _ in dynamic].index(_DT_NULL) if dynamic else 0
    values = dict(dynamic[:end])
    if _DT_STRTAB not in values:
        raise BuildError(f"{path} is not a shared library: it has no dynamic section.")
    strings = offset_of(values[_DT_STRTAB])

    def string(index: int) -> str:
        start = strings + index
        return data[start : data.index(b"\0", start)].decode()

    libraries = {string(value) for tag, value in dynamic[:end] if tag == _DT_NEEDED}
    versions: dict[str, frozenset[str]] = {}
    at = offset_of(values[_DT_VERNEED]) if _DT_VERNEED in values else 0
    for _ in range(values.get(_DT_VERNEEDNUM, 0)):
        _, count, library, entry, following = struct.unpack_from("<HHIII", data, at)
        entry += at
        names = set()
        for _ in range(count):
            _, _, _, name, next_entry = struct.unpack_from("<IHHII", data, entry)
            names.add(string(name))
            entry += next_entry
        versions[string(library)] = frozenset(names)
        at += following
    return Needs(frozenset(libraries), versions)


def platform_tag(needs: Needs, bundled: frozenset[str]) -> str:
    """Finds the lowest manylinux level, not below TensorFlow's own, that allows what is needed.

    Args:
      needs: of the library that the wheel gets.
      bundled: names of libraries that the wheel itself has.

    Returns:
      Such as "manylinux_2_35_x86_64"; "linux_x86_64" if no known level allows it.

    Raises:
      BuildError: a library is needed that is neither in the wheel nor on every system.
    """
    foreign = sorted(needs.libraries - _ALLOWED_LIBRARIES - bundled)
    if foreign:
        raise BuildError(
            f"The runtime library needs {', '.join(foreign)}, which a wheel cannot count on.\n"
            "Link it statically, or do without it."
        )
    versions = [
        version
        for library, names in needs.versions.items()
        if library in _ALLOWED_LIBRARIES
        for version in names
    ]
    for (major, minor), newest in _POLICIES:
        if all(_allowed(version, newest) for version in versions):
            return f"manylinux_{major}_{minor}_x86_64"
    return "linux_x86_64"


def _allowed(version: str, newest: dict[str, str]) -> bool:
    family, _, number = version.partition("_")
    if version in ("CXXABI_FLOAT128", "CXXABI_TM_1"):
        return True
    if family not in newest or not number[:1].isdigit():
        return False  # Such as GLIBC_PRIVATE.
    return _parts(number) <= _parts(newest[family])


def _parts(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))
