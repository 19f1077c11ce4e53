# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs is found, and what another wheel lacks is named."""

import dataclasses
import pathlib

import pytest

import stock_wheel
import tensorflow_abi
from fakes import compile_library, make_zip

TENSORFLOW = """
namespace absl { namespace lts_20250814 { struct Status {}; } }
int Called(absl::lts_20250814::Status) { return 1; }
int Replaced() { return 2; }
int Other() { return Replaced() + 1; }
"""
RUNTIME = """
#include "tensorflow/core/used.h"
namespace absl { namespace lts_20250814 { struct Status {}; } }
int Called(absl::lts_20250814::Status);
int Replaced() { return Called({}); }
int Own() { return 4; }
struct Mine : public Base { void Run(int) override; };
"""
USED = "tensorflow/core/used.h"
BASE = "struct Base { virtual void Run(int); virtual void Stop(); };\n"
DECLARED = BASE + "int Called(Status);\n"
HEADERS = {USED: DECLARED, "tensorflow/core/unused.h": "int unused;\n"}


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
    compiled = RUNTIME.replace("#include", "//").replace("struct Mine", BASE + "struct Mine")
    built = compile_library(tmp_path / "runtime.so", compiled)
    return tensorflow_abi.needed_of(built, sources, wheel(tmp_path / "base", TENSORFLOW, HEADERS))


def test_what_is_called_replaced_and_included(needed: tensorflow_abi.Abi) -> None:
    assert needed.symbols == {"_Z6CalledN4absl12lts6StatusE"}
    assert needed.replaced == {"_Z8Replacedv"}
    assert list(needed.headers) == [USED]
    kinds = [line.split()[0] for line in str(needed).splitlines()]
    assert kinds == ["symbol", "replaced", "header"]


def said_of(
    needed: tensorflow_abi.Abi, folder: pathlib.Path, source: str, headers: dict[str, str]
) -> tuple[list[str], bool]:
    """What is said of another wheel, without counts, and whether the runtime cannot fit."""
    path = wheel(folder / "other", source, headers)
    other = tensorflow_abi.read_wheel(path, needed.included, needed.replaced)
    said, is_broken = tensorflow_abi.compare(needed, other)
    return said.splitlines()[:-2], is_broken


@pytest.mark.parametrize(
    ("source", "headers", "is_broken", "expected"),
    [
        # Neither another Abseil nor other comments are a difference.
        (
            TENSORFLOW.replace("20250814", "20991231"),
            {USED: "/* New. */ " + DECLARED + " // Old.\n"},
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
                f"no longer virtual: {USED}: Base::Run",
            ],
        ),
        # A function that is called as the header says is compiled anew.
        (
            TENSORFLOW.replace("Called(", "Called(int, "),
            {USED: DECLARED.replace("Called(", "Called(int, ")},
            False,
            [
                "missing, called, still declared: Called(absl::lts::Status)",
                f"changed header: {USED}",
            ],
        ),
        # TensorFlow calls its own function, not the first of that name.
        (
            TENSORFLOW.replace(
                "int Replaced", '__attribute__((visibility("protected"))) int Replaced'
            ),
            HEADERS,
            True,
            ["replaced, but never reached: Replaced()"],
        ),
        (
            TENSORFLOW,
            {USED: DECLARED.replace("Run(int)", "Run(long)").replace("Stop", "Halt")},
            True,
            [
                f"virtual, with other parameters: {USED}: Base::Run",
                f"new virtual: {USED}: Base::Halt",
                f"changed header: {USED}",
            ],
        ),
        (
            TENSORFLOW,
            {USED: '#include "farm/hash.h"\n' + DECLARED},
            False,
            [f"not in the wheel: farm/hash.h, for {USED}", f"changed header: {USED}"],
        ),
    ],
)
def test_names_what_is_missing_and_what_has_changed(
    needed: tensorflow_abi.Abi,
    tmp_path: pathlib.Path,
    source: str,
    headers: dict[str, str],
    is_broken: bool,
    expected: list[str],
) -> None:
    assert said_of(needed, tmp_path, source, headers) == (expected, is_broken)


def test_what_only_inline_code_calls_is_counted(
    needed: tensorflow_abi.Abi, tmp_path: pathlib.Path
) -> None:
    inline = dataclasses.replace(needed, symbols=needed.symbols | {"_ZN4absl8internal5GrownEi"})
    other = tensorflow_abi.read_wheel(wheel(tmp_path / "other", TENSORFLOW, HEADERS), [USED])
    said, is_broken = tensorflow_abi.compare(inline, other)
    assert " 1 symbols of inline code," in said
    assert not is_broken


def test_a_header_that_only_another_led_to_may_be_gone(
    needed: tensorflow_abi.Abi, tmp_path: pathlib.Path
) -> None:
    led = dataclasses.replace(needed, headers={**needed.headers, "xla/old.h": "0"})
    assert said_of(led, tmp_path, TENSORFLOW, HEADERS) == ([], False)


def test_the_last_word_of_a_name() -> None:
    names = ["_ZN1a6StatusC1Ei", "_ZNK1a1bIiE3getIlEET_v", "_ZN1alsERi", "plain"]
    assert tensorflow_abi.last_words(names) == ["Status", "get", "operator", "plain"]


def test_follows_headers_that_define_nothing(tmp_path: pathlib.Path) -> None:
    headers = {
        USED: '#include "xla/real.h"\nnamespace tensorflow { using xla::A; }\n',
        "xla/real.h": '#include "xla/deeper.h"\nclass A : public B { };\n',
        "xla/deeper.h": "class B {};\n",
    }
    path = wheel(tmp_path, TENSORFLOW, headers)
    assert sorted(tensorflow_abi.read_wheel(path, [USED]).headers) == [USED, "xla/real.h"]
