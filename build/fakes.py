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
"""Small stand-ins for TensorFlow's wheel and for a shared library, for the tests here."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import struct
import zipfile

STOCK_NAME = "tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl"
DIST_INFO = "tensorflow-2.21.0.dist-info"
INIT = "import os\n\n# Do not remove this line.\nimport pywrap\n\nfrom api import config\n"

_METADATA = """\
Metadata-Version: 2.4
Name: tensorflow
Version: 2.21.0
Summary: TensorFlow is a framework.
License: Apache 2.0
Requires-Dist: numpy>=1.26.0
Provides-Extra: and-cuda
Requires-Dist: nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"

TensorFlow is an open source software library.
"""

_WHEEL = """\
Wheel-Version: 1.0
Generator: setuptools (78.1.1)
Root-Is-Purelib: false
Tag: cp311-cp311-manylinux_2_27_x86_64

"""


def digest(content: bytes) -> str:
    """Returns the hash of a file as RECORD has it."""
    encoded = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return "sha256=" + encoded.rstrip(b"=").decode()


def make_wheel(folder: pathlib.Path, name: str = STOCK_NAME) -> pathlib.Path:
    """Writes a wheel with the members that the build looks at.

    Args:
      folder: where to write it.
      name: its file name.

    Returns:
      Its path.
    """
    files = {
        f"{DIST_INFO}/METADATA": _METADATA.encode(),
        f"{DIST_INFO}/WHEEL": _WHEEL.encode(),
        "tensorflow/__init__.py": INIT.encode(),
        "tensorflow/libtensorflow_cc.so.2": b"cc" * 5000,
        "tensorflow/libtensorflow_framework.so.2": b"framework" * 5000,
        "tensorflow/include/tensorflow/core/a.h": b"#define A\n",
        "tensorflow/include/external/x/BUILD.bazel": b"cc_library()\n",
    }
    record = "".join(
        f"{path},{digest(content)},{len(content)}\n" for path, content in files.items()
    )
    files[f"{DIST_INFO}/RECORD"] = (record + f"{DIST_INFO}/RECORD,,\n").encode()
    wheel = folder / name
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(_member("tensorflow/"), b"")
        for path, content in files.items():
            archive.writestr(_member(path), content, zipfile.ZIP_DEFLATED, compresslevel=1)
    return wheel


def make_library(path: pathlib.Path, needs: dict[str, list[str]]) -> pathlib.Path:
    """Writes an ELF file that has nothing but a dynamic section.

    Args:
      path: the file to write.
      needs: symbol versions that it needs, by library.

    Returns:
      The path.
    """
    strings = b"\0"

    def index_of(text: str) -> int:
        nonlocal strings
        strings += text.encode() + b"\0"
        return len(strings) - len(text) - 1

    versions = b""
    dynamic = []
    versioned = {library: names for library, names in needs.items() if names}
    for number, (library, names) in enumerate(versioned.items(), start=1):
        size = 16 * (1 + len(names))
        following = size if number < len(versioned) else 0
        versions += struct.pack("<HHIII", 1, len(names), index_of(library), 16, following)
        for place, name in enumerate(names, start=1):
            next_entry = 16 if place < len(names) else 0
            versions += struct.pack("<IHHII", 0, 0, 0, index_of(name), next_entry)
    dynamic += [(1, index_of(library)) for library in needs]
    headers = 64 + 2 * 56
    strings_at = headers
    versions_at = strings_at + len(strings)
    dynamic_at = versions_at + len(versions)
    dynamic += [(5, strings_at), (0x6FFFFFFE, versions_at), (0x6FFFFFFF, len(versioned)), (0, 0)]
    dynamic_bytes = b"".join(struct.pack("<QQ", *entry) for entry in dynamic)
    size = dynamic_at + len(dynamic_bytes)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096)
    moved = struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, 0, size - dynamic_at, 0, 8)
    path.write_bytes(header + load + moved + strings + versions + dynamic_bytes)
    return path


def _member(path: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(path, (2026, 3, 5, 0, 49, 18))
    member.external_attr = 0o100644 << 16
    return member
