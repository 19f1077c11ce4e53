# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs of TensorFlow's libraries and headers, and whether a wheel has it.

`scripts/patches.py abi --write` reads the built runtime and its sources, and the stock wheel that
it was built against, and writes patches/2.21.0/abi.txt, which is checked in:

    symbol NAME       of TensorFlow's libraries, which the runtime calls
    replaced NAME     which the runtime defines, too, so that TensorFlow calls its own
    header HASH PATH  which a source includes, or which a header does that defines no type itself;
                      HASH is of its code, without comments and spaces

`scripts/patches.py check-abi --wheel X.whl` says for any wheel what of that is missing or has
changed, before anyone compiles. A changed header may be harmless; a header or a symbol that is not
there is not.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import pathlib
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable

import check_replacements
import elf
import stock_wheel
from build_error import BuildError

ROOT = pathlib.Path(__file__).resolve().parent.parent
_RUNTIME = pathlib.Path("tensorflow/core/common_runtime/multistream")
_LIBRARY = "libtensorflow_multistream.so"
_INCLUDE = "tensorflow/include/"
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Abseil's releases, which are part of the names of all that takes a type of Abseil's.
_ABSEIL = re.compile(r"lts_\d{8}")
# What a header defines; one that defines nothing only includes others.
_DEFINES = re.compile(r"\b(class|struct|enum|union)\b[^;{}()=]*\{")
_FOLLOWED = ("tensorflow/", "tsl/", "xla/")
_INCLUDED = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Abi:
    """What the runtime needs.

    Args:
      symbols: mangled names that it calls.
      replaced: mangled names that it defines in TensorFlow's place.
      headers: a hash of each header that it needs, by its path.
    """

    symbols: frozenset[str]
    replaced: frozenset[str]
    headers: dict[str, str]

    def __str__(self) -> str:
        lines = [f"symbol {name}" for name in sorted(self.symbols)]
        lines += [f"replaced {name}" for name in sorted(self.replaced)]
        lines += [f"header {self.headers[path]} {path}" for path in sorted(self.headers)]
        return "".join(f"{line}\n" for line in lines)


def read(path: pathlib.Path) -> Abi:
    """Reads a file that `write` has written.

    Args:
      path: the file.

    Returns:
      What it says.

    Raises:
      BuildError: it is not there, or a line is not understood.
    """
    if not path.is_file():
        raise BuildError(f"There is no {path}.\nMake it: scripts/patches.py abi --write.")
    found: dict[str, list[list[str]]] = {"symbol": [], "replaced": [], "header": []}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        kind, *words = line.split() or [""]
        if kind not in found or len(words) != (2 if kind == "header" else 1):
            raise BuildError(f"{path}, line {number} is not understood: {line!r}.")
        found[kind].append(words)
    return Abi(
        frozenset(words[0] for words in found["symbol"]),
        frozenset(words[0] for words in found["replaced"]),
        {words[1]: words[0] for words in found["header"]},
    )


def hash_of(text: str) -> str:
    """A hash of a header's code.

    Args:
      text: the header.

    Returns:
      12 hexadecimal digits, the same whatever its comments and spaces are.
    """
    code = "".join(_COMMENTS.sub(" ", text).split())
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def included(sources: Iterable[pathlib.Path]) -> set[str]:
    """Lists what sources include.

    Args:
      sources: C++ files.

    Returns:
      Paths as they are written there.
    """
    return {path for source in sources for path in _INCLUDED.findall(source.read_text())}


def dynamic_symbols(library: pathlib.Path) -> tuple[set[str], set[str]]:
    """Reads a library's dynamic symbols.

    Args:
      library: an ELF file.

    Returns:
      Mangled names that it defines, and those that it needs of others; without Abseil's release.

    Raises:
      BuildError: see elf.readelf.
    """
    defined: set[str] = set()
    needed: set[str] = set()
    for words in elf.readelf(library, "--dyn-syms"):
        if symbol := elf.global_symbol(words):
            (defined if symbol[1] else needed).add(_ABSEIL.sub("lts", symbol[0]))
    return defined, needed


@dataclasses.dataclass(frozen=True)
class Wheel:
    """What a wheel has.

    Args:
      symbols: that its libraries define.
      headers: a hash of each header that was asked for, or that such a header leads to, and that is
        there, by its path.
    """

    symbols: frozenset[str]
    headers: dict[str, str]


def read_wheel(
    wheel: pathlib.Path, headers: Iterable[str], unpacked: pathlib.Path | None = None
) -> Wheel:
    """Reads a wheel of TensorFlow's.

    Args:
      wheel: the file.
      headers: the headers of interest, relative to its folder of headers.
      unpacked: where `stock_wheel.unpack` has unpacked it, if it has: the libraries are large.

    Returns:
      What it has.

    Raises:
      BuildError: it is no wheel, or has no such libraries.
    """
    symbols: set[str] = set()
    try:
        archive = zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise BuildError(f"{wheel} is not a wheel: {error}") from error
    with archive, tempfile.TemporaryDirectory() as folder:
        for library in stock_wheel.LIBRARIES:
            member = f"tensorflow/{library}"
            if member not in archive.NameToInfo:
                raise BuildError(
                    f"{wheel} has no {member}.\nIt takes a Linux wheel of TensorFlow itself."
                )
            path = unpacked / "lib" / library if unpacked else archive.extract(member, folder)
            symbols |= dynamic_symbols(pathlib.Path(path))[0]
        hashes: dict[str, str] = {}
        wanted = list(headers)
        while wanted:
            path = wanted.pop()
            if path in hashes or _INCLUDE + path not in archive.NameToInfo:
                continue
            text = archive.read(_INCLUDE + path).decode(errors="replace")
            hashes[path] = hash_of(text)
            if not _DEFINES.search(_COMMENTS.sub(" ", text)):
                wanted += [to for to in _INCLUDED.findall(text) if to.startswith(_FOLLOWED)]
    return Wheel(frozenset(symbols), hashes)


def needed_of(
    library: pathlib.Path,
    sources: pathlib.Path,
    wheel: pathlib.Path,
    unpacked: pathlib.Path | None = None,
) -> Abi:
    """Finds what the runtime needs.

    Args:
      library: the built runtime.
      sources: folder of its sources, with exports.lds.
      wheel: the stock wheel that it was built against.
      unpacked: as for read_wheel.

    Returns:
      What of that wheel it needs.
    """
    files = [
        path
        for path in sources.rglob("*")
        if path.suffix in (".cc", ".h")
        and path.parent.name != "testing"
        # The last is only for a TensorFlow that is built from source.
        and not path.stem.endswith(("_test", "_fixture", "_benchmark", "source_hooks"))
    ]
    has = read_wheel(wheel, included(files), unpacked)
    defined, needed = dynamic_symbols(library)
    patterns = check_replacements.read_patterns(sources / "exports.lds")
    replaced = {
        name
        for name in defined & has.symbols
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    }
    return Abi(frozenset(needed & has.symbols), frozenset(replaced), has.headers)


@dataclasses.dataclass(frozen=True)
class Difference:
    """What of an `Abi` a wheel lacks.

    Args:
      symbols: mangled names that are missing.
      replaced: of those that the runtime replaces, the missing ones.
      headers: paths that are missing.
      changed: paths of headers whose code is another one.
    """

    symbols: list[str]
    replaced: list[str]
    headers: list[str]
    changed: list[str]

    @property
    def is_missing_any(self) -> bool:
        """Whether something is missing; a changed header may be harmless."""
        return bool(self.symbols or self.replaced or self.headers)


def compare(abi: Abi, wheel: Wheel) -> Difference:
    """Compares what is needed with what there is.

    Args:
      abi: what the runtime needs.
      wheel: what a wheel has.

    Returns:
      What is missing and what has changed, sorted.
    """
    return Difference(
        sorted(abi.symbols - wheel.symbols),
        sorted(abi.replaced - wheel.symbols),
        sorted(abi.headers.keys() - wheel.headers.keys()),
        sorted(path for path, code in abi.headers.items() if wheel.headers.get(path, code) != code),
    )


def demangled(names: list[str]) -> list[str]:
    """Names as C++ says them.

    Args:
      names: mangled ones.

    Returns:
      As many, in the same order; as they are if there is no c++filt.
    """
    try:
        done = subprocess.run(
            ["c++filt"],
            input="\n".join(names).replace("12lts", "3lts"),
            capture_output=True,
            text=True,
            check=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return names
    return done.stdout.splitlines()


def describe(difference: Difference) -> str:
    """What a person reads of a difference.

    Args:
      difference: of a wheel.

    Returns:
      Lines; the last one has the counts.
    """
    lines = [f"missing, called: {name}" for name in demangled(difference.symbols)]
    lines += [f"missing, replaced: {name}" for name in demangled(difference.replaced)]
    lines += [f"missing header: {path}" for path in difference.headers]
    lines += [f"changed header: {path}" for path in difference.changed]
    lines.append(
        f"{len(difference.symbols)} symbols, {len(difference.replaced)} replaced symbols and"
        f" {len(difference.headers)} headers are missing, {len(difference.changed)} headers differ"
    )
    return "\n".join(lines)


def built_library() -> pathlib.Path:
    """Returns the runtime that Bazel built.

    Raises:
      BuildError: it is not built.
    """
    library = ROOT / "bazel-bin" / _RUNTIME / _LIBRARY
    if not library.is_file():
        raise BuildError(f"{library} is not built.\nBuild it: scripts/build_wheel.sh.")
    return library


def current(tag: str, release: str) -> Abi:
    """Finds what the built runtime needs of a release's stock wheel for a Python tag."""
    cache = stock_wheel.cache_folder()
    wheel = stock_wheel.fetch(tag, cache, release)
    unpacked = stock_wheel.unpacked_folder(tag, cache, release)
    stock_wheel.unpack(wheel, unpacked)
    return needed_of(built_library(), ROOT / _RUNTIME, wheel, unpacked)
