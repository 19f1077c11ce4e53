# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For the tests here: small stand-ins for TensorFlow's wheel and for libraries; programs."""

import base64
import hashlib
import pathlib
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence

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
    """Writes a wheel with the members that the build looks at; returns its path."""
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


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program, for a minute at most, whatever its status is."""
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def make_zip(path: pathlib.Path, files: Mapping[str, str | bytes]) -> pathlib.Path:
    """Writes an archive, with the same bytes each time; returns its path."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def compile_cxx(path: pathlib.Path, source: str, *options: str) -> pathlib.Path:
    """Compiles C++, by default to a program; returns its path."""
    command = ["g++", "-xc++", "-", "-xnone", *options, "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    return path


def compile_library(path: pathlib.Path, source: str, *options: str) -> pathlib.Path:
    """Compiles C++ to a shared library; returns its path."""
    return compile_cxx(path, source, "-shared", "-fPIC", *options)


def make_library(path: pathlib.Path, needs: dict[str, list[str]]) -> pathlib.Path:
    """Links a library that needs these symbol versions of others; returns its path."""
    calls = ""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, (library, versions) in enumerate(needs.items()):
            functions = {f"f{number}_{i}": version for i, version in enumerate(versions)}
            script = "".join(f"{version} {{ {f}; }};\n" for f, version in functions.items())
            (folder / "versions").write_text(script or "{ global: *; };", encoding="utf-8")
            source = "".join(f'extern "C" void {f}() {{}}\n' for f in functions)
            options = [f"-Wl,-soname,{library}", f"-Wl,--version-script={folder}/versions"]
            compile_library(folder / library, source, "-nostdlib", *options)
            calls += "".join(f'extern "C" void {f}(); auto* of_{f} = &{f};\n' for f in functions)
        options = ["-nostdlib", "-Wl,--no-as-needed", *(str(folder / each) for each in needs)]
        return compile_library(path, calls, *options)


def _member(path: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(path, (2026, 3, 5, 0, 49, 18))
    member.external_attr = 0o100644 << 16
    return member
