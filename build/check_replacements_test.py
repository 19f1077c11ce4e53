# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import pathlib

import pytest

import check_replacements
from build_error import BuildError
from fakes import compile_library

# A function of TensorFlow's and one that calls it, in one library or in two.
EXECUTOR = 'extern "C" int NewExecutor() { return 1; }'
SESSION = 'extern "C" int NewExecutor(); extern "C" int Run() { return NewExecutor(); }'
OURS = 'extern "C" int NewExecutor() { return 2; } extern "C" int TFMS_IsEnabled() { return 1; }'
EXPORTS = "/* Such as this; */ { global: NewExec*; TFMS_*; local: *; };"
TABLE = """extern "C" int NewExecutor(); int (*const table[])() = {&NewExecutor};
extern "C" const void* Table() { return table; }"""


def check(
    folder: pathlib.Path, *libraries: list[str], exports: str = EXPORTS, release: str = "2.20.0"
) -> None:
    """Checks the runtime against liba0.so, liba1.so ... in TensorFlow's place: source, options."""
    script = folder / "exports.lds"
    script.write_text(exports)
    option = f"-Wl,--version-script={script}"
    ours = compile_library(folder / "libmultistream.so", OURS, option)
    patterns = check_replacements.read_patterns(script, release)
    check_replacements.check(
        patterns,
        check_replacements.read_library(ours, ["*"]),
        [
            check_replacements.read_library(
                compile_library(folder / f"liba{i}.so", source, "-O1", *options), patterns
            )
            for i, (source, *options) in enumerate(libraries)
        ],
    )


@pytest.mark.parametrize(
    "libraries",
    [
        [[EXECUTOR], [SESSION]],  # another library calls it
        [[EXECUTOR + SESSION, "-fno-inline"]],  # its own library does so by name
        [[EXECUTOR], [TABLE]],  # its address is taken by name
    ],
)
def test_a_function_that_is_called_by_name_is_reached(
    tmp_path: pathlib.Path, libraries: list[list[str]]
) -> None:
    check(tmp_path, *libraries)


@pytest.mark.parametrize(
    "library",
    [[EXECUTOR], [EXECUTOR + SESSION, "-fno-inline", "-Wl,-Bsymbolic"]],
    ids=["nobody calls it", "its library binds it to itself"],
)
def test_a_function_that_is_never_reached_is_named(
    tmp_path: pathlib.Path, library: list[str]
) -> None:
    with pytest.raises(BuildError, match=r"NewExecutor is never reached: liba0\.so has it"):
        check(tmp_path, library)


# Data has an entry all the same, and the loader looks in the library first.
def test_an_entry_of_a_library_that_looks_in_itself_first_does_not_count(
    tmp_path: pathlib.Path,
) -> None:
    library = check_replacements.Library(
        "liba.so", frozenset({"F"}), frozenset({"F"}), own_first=True
    )
    ours = check_replacements.Library("ours", frozenset({"F"}), frozenset(), own_first=False)
    with pytest.raises(BuildError, match="F is never reached"):
        check_replacements.check(["F"], ours, [library])
    path = compile_library(tmp_path / "liba.so", EXECUTOR, "-Wl,-Bsymbolic")
    assert check_replacements.read_library(path, ["*"]).own_first


def test_a_function_that_tensorflow_does_not_have_is_named_with_those_it_has(
    tmp_path: pathlib.Path,
) -> None:
    says = r"NewExecutor is exported and replaces nothing.* It has NewExecutorOfTwo\."
    with pytest.raises(BuildError, match=says):
        check(tmp_path, [EXECUTOR.replace("NewExecutor", "NewExecutorOfTwo")])


def test_a_line_is_only_for_the_releases_that_it_names(tmp_path: pathlib.Path) -> None:
    for when, others in (("before 2.20", "2.19.1"), ("from 2.21", "2.21.0")):
        exports = EXPORTS.replace("TFMS_*", f"Ru*;  /* {when} */ TFMS_*")
        check(tmp_path, [EXECUTOR], [SESSION], exports=exports)
        with pytest.raises(BuildError, match=r"Ru\* matches no function"):
            check(tmp_path, [EXECUTOR], [SESSION], exports=exports, release=others)


def test_every_line_too_many_is_named(tmp_path: pathlib.Path) -> None:
    exports = EXPORTS.replace("NewExec*;", "NewExec*; Ru*; New*or;")
    with pytest.raises(BuildError) as error:
        check(tmp_path, [EXECUTOR + SESSION, "-fno-inline", "-Wl,-Bsymbolic"], exports=exports)
    said = str(error.value)
    assert "Ru* matches no function of libmultistream.so. It has Run. Correct" in said
    assert "NewExecutor is exported by 2 lines of exports.lds: NewExec*, New*or" in said
    assert "NewExecutor is never reached" in said
