# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs is found, and what another wheel lacks is named."""

import pathlib

import pytest

import stock_wheel
import tensorflow_abi
from fakes import compile_library, make_zip

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
USED = "tensorflow/core/used.h"
HEADERS = {USED: "int used;\n", "tensorflow/core/unused.h": "int unused;\n"}


def wheel(folder: pathlib.Path, source: str, headers: dict[str, str]) -> pathlib.Path:
    """A wheel of TensorFlow's with one library twice, and some headers."""
    folder.mkdir(exist_ok=True)
    built = compile_library(folder / "built.so", source).read_bytes()
    files = {f"tensorflow/include/{name}": text for name, text in headers.items()}
    libraries = dict.fromkeys((f"tensorflow/{name}" for name in stock_wheel.LIBRARIES), built)
    return make_zip(folder / "tensorflow-9.whl", {**libraries, **files})


@pytest.fixture
def needed(tmp_path: pathlib.Path) -> tensorflow_abi.Abi:
    """What a small runtime needs of a small TensorFlow."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "runtime.cc").write_text(RUNTIME)
    (sources / "runtime_test.cc").write_text('#include "tensorflow/core/unused.h"\n')
    (sources / "exports.lds").write_text("{ global: _Z8Replaced*; _Z3Own*; local: *; };")
    built = compile_library(tmp_path / "runtime.so", RUNTIME.replace("#include", "//"))
    return tensorflow_abi.needed_of(built, sources, wheel(tmp_path / "base", TENSORFLOW, HEADERS))


def test_what_is_called_replaced_and_included(needed: tensorflow_abi.Abi) -> None:
    assert needed.symbols == {"_Z6CalledN4absl12lts6StatusE"}
    assert needed.replaced == {"_Z8Replacedv"}
    assert list(needed.headers) == [USED]
    kinds = [line.split()[0] for line in str(needed).splitlines()]
    assert kinds == ["symbol", "replaced", "header"]


@pytest.mark.parametrize(
    ("source", "headers", "is_missing_any", "expected"),
    [
        # Neither another Abseil nor other comments are a difference.
        (
            TENSORFLOW.replace("20250814", "20991231"),
            {USED: "/* New. */ int  used; // Old.\n"},
            False,
            [],
        ),
        (
            TENSORFLOW.replace("Replaced", "Renamed").replace("Called(", "Called(int, "),
            {},
            True,
            [
                "missing, called: Called(absl::lts::Status)",
                "missing, replaced: Replaced()",
                f"missing header: {USED}",
            ],
        ),
        (TENSORFLOW, {USED: "long used;"}, False, [f"changed header: {USED}"]),
    ],
)
def test_names_what_is_missing_and_what_has_changed(
    needed: tensorflow_abi.Abi,
    tmp_path: pathlib.Path,
    source: str,
    headers: dict[str, str],
    is_missing_any: bool,
    expected: list[str],
) -> None:
    other = tensorflow_abi.read_wheel(wheel(tmp_path / "other", source, headers), needed.headers)
    said, missing = tensorflow_abi.compare(needed, other)
    *found, counts = said.splitlines()
    assert (found, missing) == (expected, is_missing_any)
    assert counts.endswith(f" {sum('changed' in line for line in expected)} headers differ")


def test_follows_headers_that_define_nothing(tmp_path: pathlib.Path) -> None:
    headers = {
        USED: '#include "xla/real.h"\nnamespace tensorflow { using xla::A; }\n',
        "xla/real.h": '#include "xla/deeper.h"\nclass A : public B { };\n',
        "xla/deeper.h": "class B {};\n",
    }
    path = wheel(tmp_path, TENSORFLOW, headers)
    assert sorted(tensorflow_abi.read_wheel(path, [USED]).headers) == [USED, "xla/real.h"]
