# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A program that links against an interface library is as if it linked against the library."""

import pathlib
import subprocess

import pytest

import elf
import interface_library
from build_error import BuildError
from fakes import compile_cxx, compile_library

LIBRARY = """
namespace mlir { int Left() { return 1; } }
namespace tensorflow {
int value = 7;
thread_local int of_thread = 8;
int Function() { return value + of_thread; }
__attribute__((weak)) int Weak() { return 9; }
}
"""
PROGRAM = """
namespace mlir { int Left(); }
namespace tensorflow {
extern int value;
extern __thread int of_thread;
int Function();
int Weak() __attribute__((weak));
}
int main() { return tensorflow::Function() + tensorflow::value + tensorflow::of_thread CALL; }
"""


@pytest.fixture(params=["", "theirs { global: *; };"], ids=["no version", "a version"])
def library(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> pathlib.Path:
    """It has symbols of each type, and one of a namespace that is left out."""
    (tmp_path / "versions").write_text(request.param)
    options = [f"-Wl,--version-script={tmp_path}/versions"] if request.param else []
    name = "liball.so.2"
    return compile_library(tmp_path / name, LIBRARY, f"-Wl,-soname,{name}", *options)


def dynamic_symbols(program: pathlib.Path) -> list[list[str]]:
    """Type, binding and name of each."""
    return sorted(words[3:5] + words[7:] for words in elf.readelf(program, "--dyn-syms"))


def test_a_program_is_what_it_is_with_the_library_and_lacks_what_is_left_out(
    library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    interface = tmp_path / "all.ifso"
    interface_library.make(library, interface)
    source = PROGRAM.replace("CALL", "+ tensorflow::Weak()")
    programs = [
        compile_cxx(tmp_path / f"of{against.suffix}", source, "-fPIC", "-pie", str(against))
        for against in (library, interface)
    ]
    assert dynamic_symbols(programs[0]) == dynamic_symbols(programs[1])
    for program in programs:
        environment = {"LD_LIBRARY_PATH": str(tmp_path)}
        assert subprocess.run([program], env=environment, check=False).returncode == 39
    source = PROGRAM.replace("CALL", "+ mlir::Left()")
    compile_cxx(tmp_path / "with", source, str(library))
    with pytest.raises(subprocess.CalledProcessError) as error:
        compile_cxx(tmp_path / "without", source, str(interface))
    assert "undefined reference to `mlir::Left()'" in error.value.stderr


def test_symbols_of_several_versions_are_an_error() -> None:
    line = ["1:", "0000000000000000", "4", "FUNC", "GLOBAL", "DEFAULT", "12"]
    with pytest.raises(BuildError, match="several versions"):
        interface_library.assembly([[*line, "a@@one"], [*line, "b@@two"]])
