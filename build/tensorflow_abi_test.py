# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs is found, and what another wheel lacks is named."""

from __future__ import annotations

import pathlib
import subprocess
import zipfile

import pytest

import stock_wheel
import tensorflow_abi
from build_error import BuildError

TENSORFLOW = """
namespace absl { namespace lts_20250814 { struct Status {}; } }
int Called(absl::lts_20250814::Status) { return 1; }
int Replaced() { return 2; }
int Other() { return 3; }
"""
RUNTIME = """
#include "tensorflow/core/used.h"
namespace absl { namespace lts_20250814 { struct Status {}; } }
int Called(absl::lts_20250814::Status);
int Replaced() { return Called({}); }
int Own() { return 4; }
"""


def library(path: pathlib.Path, source: str) -> pathlib.Path:
    command = ["g++", "-shared", "-fPIC", "-O0", "-xc++", "-", "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def wheel(folder: pathlib.Path, source: str, headers: dict[str, str]) -> pathlib.Path:
    """A wheel of TensorFlow's with one library twice, and some headers."""
    folder.mkdir()
    built = library(folder / "built.so", source)
    path = folder / "tensorflow-9.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in stock_wheel.LIBRARIES:
            archive.write(built, f"tensorflow/{name}")
        for name, text in headers.items():
            archive.writestr(f"tensorflow/include/{name}", text)
    return path


HEADERS = {"tensorflow/core/used.h": "int used;\n", "tensorflow/core/unused.h": "int unused;\n"}


@pytest.fixture
def needed(tmp_path: pathlib.Path) -> tensorflow_abi.Abi:
    """What a small runtime needs of a small TensorFlow."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "runtime.cc").write_text(RUNTIME)
    (sources / "runtime_test.cc").write_text('#include "tensorflow/core/unused.h"\n')
    (sources / "exports.lds").write_text("{ global: _Z8Replaced*; _Z3Own*; local: *; };")
    built = library(tmp_path / "runtime.so", RUNTIME.replace("#include", "//"))
    return tensorflow_abi.needed_of(built, sources, wheel(tmp_path / "base", TENSORFLOW, HEADERS))


def difference(
    needed: tensorflow_abi.Abi, folder: pathlib.Path, source: str, headers: dict[str, str]
) -> tensorflow_abi.Difference:
    """What of it another TensorFlow lacks."""
    other = tensorflow_abi.read_wheel(wheel(folder, source, headers), needed.headers)
    return tensorflow_abi.compare(needed, other)


def test_what_is_called_replaced_and_included(needed: tensorflow_abi.Abi) -> None:
    assert needed.symbols == {"_Z6CalledN4absl12lts6StatusE"}
    assert needed.replaced == {"_Z8Replacedv"}
    assert list(needed.headers) == ["tensorflow/core/used.h"]


def test_an_unpacked_wheel_has_the_same(needed: tensorflow_abi.Abi, tmp_path: pathlib.Path) -> None:
    path = wheel(tmp_path / "again", TENSORFLOW, HEADERS)
    stock_wheel.unpack(path, tmp_path / "unpacked")
    packed = tensorflow_abi.read_wheel(path, needed.headers)
    assert tensorflow_abi.read_wheel(path, needed.headers, tmp_path / "unpacked") == packed
    assert "_Z5Otherv" in packed.symbols


def test_is_read_as_it_was_written(needed: tensorflow_abi.Abi, tmp_path: pathlib.Path) -> None:
    (tmp_path / "abi.txt").write_text(str(needed))
    assert tensorflow_abi.read(tmp_path / "abi.txt") == needed


@pytest.mark.parametrize("line", ["symbols x", "symbol", "header x", ""])
def test_a_line_that_is_not_understood_is_named(line: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "abi.txt").write_text(f"symbol x\n{line}\n")
    with pytest.raises(BuildError, match=r"abi.txt, line 2 is not understood"):
        tensorflow_abi.read(tmp_path / "abi.txt")


def test_another_abseil_and_other_comments_are_no_difference(
    needed: tensorflow_abi.Abi, tmp_path: pathlib.Path
) -> None:
    headers = {"tensorflow/core/used.h": "/* New. */ int  used; // Old.\n"}
    source = TENSORFLOW.replace("20250814", "20991231")
    found = difference(needed, tmp_path / "other", source, headers)
    assert not found.is_missing_any and not found.changed


def test_names_what_is_missing_and_what_has_changed(
    needed: tensorflow_abi.Abi, tmp_path: pathlib.Path
) -> None:
    source = TENSORFLOW.replace("Replaced", "Renamed").replace("Called(", "Called(int, ")
    found = difference(needed, tmp_path / "a", source, {})
    assert found.is_missing_any and found.headers == ["tensorflow/core/used.h"]
    said = tensorflow_abi.describe(found)
    assert "missing, called: Called(absl::lts::Status)" in said
    assert "missing, replaced: Replaced()" in said
    found = difference(needed, tmp_path / "b", TENSORFLOW, {"tensorflow/core/used.h": "long used;"})
    assert found.changed == ["tensorflow/core/used.h"] and not found.is_missing_any
    assert "0 symbols, 0 replaced symbols and 0 headers are missing, 1 header" in (
        tensorflow_abi.describe(found)
    )


def test_follows_headers_that_define_nothing(
    needed: tensorflow_abi.Abi, tmp_path: pathlib.Path
) -> None:
    headers = {
        "tensorflow/core/used.h": '#include "xla/real.h"\nnamespace tensorflow { using xla::A; }\n',
        "xla/real.h": '#include "xla/deeper.h"\nclass A : public B { };\n',
        "xla/deeper.h": "class B {};\n",
    }
    path = wheel(tmp_path / "other", TENSORFLOW, headers)
    found = tensorflow_abi.read_wheel(path, needed.headers).headers
    assert sorted(found) == ["tensorflow/core/used.h", "xla/real.h"]


def test_what_is_no_wheel_of_tensorflow_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "no.whl").write_text("no")
    with pytest.raises(BuildError, match=r"no\.whl is not a wheel"):
        tensorflow_abi.read_wheel(tmp_path / "no.whl", [])
    with zipfile.ZipFile(tmp_path / "empty.whl", "w"):
        pass
    with pytest.raises(BuildError, match=r"empty\.whl has no tensorflow/libtensorflow_cc"):
        tensorflow_abi.read_wheel(tmp_path / "empty.whl", [])
