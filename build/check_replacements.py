# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that each function that the runtime exports takes the place of one of TensorFlow's.

    python3 build/check_replacements.py --runtime LIBRARY --exports exports.lds --release 2.20.0
        --stamp FILE LIBRARY_OF_TENSORFLOW ...

A function replaces another only if it has exactly its name and if TensorFlow calls that one through
a table that the dynamic linker fills. Otherwise it is never called, and nobody would notice.
"""

import dataclasses
import fnmatch
import pathlib
import re

import elf
from build_error import BuildError, command_line, run_main

# What is the runtime library's own interface, in exports.lds too.
_OWN_INTERFACE = re.compile(r"TFMS_|_ZNK?10tensorflow11multistream")
# After a line of exports.lds: which releases of TensorFlow have the function.
_RELEASES = re.compile(r"/\* (before|from) (\d+)\.(\d+) \*/")
# Entries that the dynamic linker fills with the first function of that name.
_FILLED_BY_NAME = frozenset(("R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT", "R_X86_64_64"))


@dataclasses.dataclass(frozen=True)
class Library:
    """What the dynamic linker knows of a library."""

    name: str  # of its file
    defined: frozenset[str]  # names that it exports
    called: frozenset[str]  # names that it looks up, its own among them
    own_first: bool  # whether it looks a name up in itself before it does elsewhere (-Bsymbolic)


def read_patterns(exports: pathlib.Path, release: str | None = None) -> list[str]:
    """Reads the patterns that a version script makes global for a release; None for all."""
    text = _RELEASES.sub(r"\1 \2.\3;", exports.read_text(encoding="utf-8"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.search(r"global:(.*?)(local:|\})", text, flags=re.DOTALL)
    if found is None:
        raise BuildError(f"{exports} has no list of global symbols.")
    patterns: list[str] = []
    for entry in found.group(1).split(";"):
        match entry.split():
            case [pattern]:
                patterns.append(pattern)
            case [when, border] if release and (when == "from") == (
                _version(release) < _version(border)
            ):
                patterns.pop()
    return patterns


def _version(release: str) -> tuple[int, int]:
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def read_library(path: pathlib.Path, patterns: list[str]) -> Library:
    """Reads what an ELF file for x86-64 has of the names that match one of the patterns."""
    interesting = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)).match
    defined: set[str] = set()
    called: set[str] = set()
    own_first = False
    for words in elf.readelf(path, "--dynamic", "--dyn-syms", "--relocs"):
        symbol = elf.global_symbol(words)
        if len(words) >= 5 and words[2] in _FILLED_BY_NAME:
            name = words[4].partition("@")[0]
            if interesting(name):
                called.add(name)
        elif symbol and symbol[1] and interesting(symbol[0]):
            defined.add(symbol[0])
        elif "(SYMBOLIC)" in words or ("(FLAGS)" in words and "SYMBOLIC" in words):
            own_first = True
    return Library(path.name, frozenset(defined), frozenset(called), own_first)


def is_reached(symbol: str, tensorflow: list[Library]) -> bool:
    """Whether a library of TensorFlow's calls the first function of that name."""
    return any(
        symbol in library.called and not (library.own_first and symbol in library.defined)
        for library in tensorflow
    )


def check(patterns: list[str], runtime: Library, tensorflow: list[Library]) -> None:
    """Checks the runtime library against TensorFlow's, of the wheel that it is for.

    `patterns` are those of the runtime's version script. The error names each symbol or
    pattern that is wrong, what is wrong, and what to do.
    """
    problems = []
    for pattern in patterns:
        if not fnmatch.filter(runtime.defined, pattern):
            problems.append(
                f"{pattern} matches no function of {runtime.name}."
                f"{_candidates(pattern, tensorflow)} Correct that line of exports.lds, or remove "
                "it with its function."
            )
    for symbol in sorted(runtime.defined):
        matching = [pattern for pattern in patterns if fnmatch.fnmatchcase(symbol, pattern)]
        if len(matching) > 1:
            problems.append(
                f"{symbol} is exported by {len(matching)} lines of exports.lds: "
                f"{', '.join(matching)}. Keep one."
            )
        if _OWN_INTERFACE.match(symbol):
            continue
        owners = [library for library in tensorflow if symbol in library.defined]
        if not owners:
            problems.append(
                f"{symbol} is exported and replaces nothing: TensorFlow has no function of that "
                f"name.{_candidates(matching[0] if matching else '', tensorflow)} Give ours that "
                "signature, or narrow its line of exports.lds."
            )
        elif not is_reached(symbol, tensorflow):
            problems.append(
                f"{symbol} is never reached: {owners[0].name} has it, but no library of "
                "TensorFlow looks it up by name. Replace a function that calls it."
            )
    if problems:
        raise BuildError("\n".join([f"{runtime.name} does not fit TensorFlow.", *problems]))


def _candidates(pattern: str, tensorflow: list[Library]) -> str:
    found = sorted({s for lib in tensorflow for s in fnmatch.filter(lib.defined, pattern)})
    return f" It has {', '.join(found)}." if found else ""


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--runtime", type=pathlib.Path, required=True)
    parser.add_argument("--exports", type=pathlib.Path, required=True)
    parser.add_argument("--release", required=True, help="of TensorFlow")
    parser.add_argument("--stamp", type=pathlib.Path, required=True, help="written if all is well")
    parser.add_argument("tensorflow", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    patterns = read_patterns(options.exports, options.release)
    check(
        patterns,
        read_library(options.runtime, ["*"]),
        [read_library(path, patterns) for path in options.tensorflow],
    )
    options.stamp.write_text("", encoding="utf-8")


if __name__ == "__main__":
    run_main(main)
