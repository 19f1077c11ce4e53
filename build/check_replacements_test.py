# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys

import pytest

import check_replacements
from build_error import BuildError

# A function of TensorFlow's and one that calls it, in one library or in two.
EXECUTOR = 'extern "C" int NewExecutor() { return 1; }'
SESSION = 'extern "C" int NewExecutor(); extern "C" int Run() { return NewExecutor(); }'
OURS = 'extern "C" int NewExecutor() { return 2; } extern "C" int TFMS_IsEnabled() { return 1; }'
EXPORTS = "/* Such as this; */ { global: NewExec*; TFMS_*; local: *; };"


class Build:
    """Small libraries in place of TensorFlow's and of the runtime."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def library(self, name: str, source: str, *options: str) -> pathlib.Path:
        (self.folder / f"{name}.cc").write_text(source)
        path = self.folder / f"lib{name}.so"
        subprocess.run(
            ["g++", "-shared", "-fPIC", "-O1", *options, "-o", path, self.folder / f"{name}.cc"],
            check=True,
        )
        return path

    def check(
        self,
        *tensorflow: pathlib.Path,
        runtime: str = OURS,
        exports: str = EXPORTS,
        release: str = "2.20.0",
    ) -> pathlib.Path:
        """Runs the program; returns the stamp, which is there if all is well."""
        script = self.folder / "exports.lds"
        script.write_text(exports)
        ours = self.library("multistream", runtime, f"-Wl,--version-script={script}")
        stamp = self.folder / "stamp"
        arguments = ["--runtime", str(ours), "--exports", str(script), "--stamp", str(stamp)]
        arguments += ["--release", release]
        sys.argv = ["check_replacements.py", *arguments, *map(str, tensorflow)]
        check_replacements.main()
        return stamp


@pytest.fixture
def build(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.setattr(sys, "argv", sys.argv)
    return Build(tmp_path)


def refused(build: Build, *tensorflow: pathlib.Path, **changes: str) -> str:
    with pytest.raises(BuildError) as error:
        build.check(*tensorflow, **changes)
    assert not (build.folder / "stamp").exists()
    return str(error.value)


TABLE = """extern "C" int NewExecutor(); int (*const table[])() = {&NewExecutor};
extern "C" const void* Table() { return table; }"""


@pytest.mark.parametrize(
    "libraries",
    [
        [[EXECUTOR], [SESSION]],  # another library calls it
        [[EXECUTOR + SESSION, "-fno-inline"]],  # its own library does so by name
        [[EXECUTOR], [TABLE]],  # its address is taken by name
    ],
)
def test_a_function_that_is_called_by_name_is_reached(
    build: Build, libraries: list[list[str]]
) -> None:
    built = [build.library(f"a{i}", *library) for i, library in enumerate(libraries)]
    assert build.check(*built).exists()


@pytest.mark.parametrize(
    "library",
    [[EXECUTOR], [EXECUTOR + SESSION, "-fno-inline", "-Wl,-Bsymbolic"]],
    ids=["nobody calls it", "its library binds it to itself"],
)
def test_a_function_that_is_never_reached_is_named(build: Build, library: list[str]) -> None:
    said = refused(build, build.library("a", *library))
    assert "NewExecutor is never reached: liba.so has it" in said


# Data has an entry all the same, and the loader looks in the library first.
def test_an_entry_of_a_library_that_looks_in_itself_first_does_not_count(build: Build) -> None:
    library = check_replacements.Library(
        "liba.so", frozenset({"F"}), frozenset({"F"}), own_first=True
    )
    ours = check_replacements.Library("ours", frozenset({"F"}), frozenset(), own_first=False)
    with pytest.raises(BuildError, match="F is never reached"):
        check_replacements.check(["F"], ours, [library])
    path = build.library("a", EXECUTOR, "-Wl,-Bsymbolic")
    assert check_replacements.read_library(path, ["*"]).own_first


def test_a_function_that_tensorflow_does_not_have_is_named_with_those_it_has(build: Build) -> None:
    other = EXECUTOR.replace("NewExecutor", "NewExecutorOfTwo")
    said = refused(build, build.library("a", other))
    assert "NewExecutor is exported and replaces nothing" in said
    assert "It has NewExecutorOfTwo." in said


def test_a_line_is_only_for_the_releases_that_it_names(build: Build) -> None:
    libraries = build.library("a", EXECUTOR), build.library("b", SESSION)
    for when, others in (("before 2.20", "2.19.1"), ("from 2.21", "2.21.0")):
        exports = EXPORTS.replace("TFMS_*", f"Ru*;  /* {when} */ TFMS_*")
        build.check(*libraries, exports=exports).unlink()
        said = refused(build, *libraries, exports=exports, release=others)
        assert "Ru* matches no function" in said


def test_every_line_too_many_is_named(build: Build) -> None:
    exports = EXPORTS.replace("NewExec*;", "NewExec*; Ru*; New*or;")
    library = build.library("a", EXECUTOR + SESSION, "-fno-inline", "-Wl,-Bsymbolic")
    said = refused(build, library, exports=exports)
    assert "Ru* matches no function of libmultistream.so. It has Run. Correct" in said
    assert "NewExecutor is exported by 2 lines of exports.lds: NewExec*, New*or" in said
    assert "NewExecutor is never reached" in said
