# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs of TensorFlow's libraries and headers, and whether a wheel has it.

`scripts/patches.py abi` reads the built runtime, its sources and the stock wheel that the runtime
was built against, and prints

    symbol NAME       of TensorFlow's libraries, which the runtime calls
    replaced NAME     which the runtime defines, too, so that TensorFlow calls its own
    header HASH PATH  which a source includes, or which a header does that defines no type itself;
                      HASH is of its code, without comments and spaces

`scripts/patches.py check-abi --wheel X.whl` says for any wheel what of that is missing or has
changed, before anyone compiles for it. A changed header may be harmless; a header or a symbol that
is not there is not.
"""

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
class Wheel:
    """What a wheel has."""

    symbols: frozenset[str]  # mangled names that its libraries define
    # A hash of each header that was asked for, or that such a header leads to, and that is there,
    # by its path.
    headers: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Abi(Wheel):
    """What the runtime needs of a wheel."""

    # Mangled names that the runtime defines in TensorFlow's place; the names that it calls are
    # `symbols`.
    replaced: frozenset[str]

    def __str__(self) -> str:
        lines = [f"symbol {name}" for name in sorted(self.symbols)]
        lines += [f"replaced {name}" for name in sorted(self.replaced)]
        lines += [f"header {self.headers[path]} {path}" for path in sorted(self.headers)]
        return "\n".join(lines)


def dynamic_symbols(library: pathlib.Path) -> tuple[set[str], set[str]]:
    """Lists the names, without Abseil's release, that a library defines, and that it needs."""
    defined: set[str] = set()
    needed: set[str] = set()
    for words in elf.readelf(library, "--dyn-syms"):
        if symbol := elf.global_symbol(words):
            (defined if symbol[1] else needed).add(_ABSEIL.sub("lts", symbol[0]))
    return defined, needed


def read_wheel(wheel: pathlib.Path, headers: Iterable[str]) -> Wheel:
    """Reads a wheel of TensorFlow's, with these of its headers."""
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
            symbols |= dynamic_symbols(pathlib.Path(archive.extract(member, folder)))[0]
        hashes: dict[str, str] = {}
        wanted = list(headers)
        while wanted:
            path = wanted.pop()
            if path in hashes or _INCLUDE + path not in archive.NameToInfo:
                continue
            text = archive.read(_INCLUDE + path).decode(errors="replace")
            code = _COMMENTS.sub(" ", text)
            hashes[path] = hashlib.sha256("".join(code.split()).encode()).hexdigest()[:12]
            if not _DEFINES.search(code):
                wanted += [to for to in _INCLUDED.findall(text) if to.startswith(_FOLLOWED)]
    return Wheel(frozenset(symbols), hashes)


def needed_of(library: pathlib.Path, sources: pathlib.Path, wheel: pathlib.Path) -> Abi:
    """Finds what the built runtime, with exports.lds in `sources`, needs of its stock wheel."""
    files = [
        path
        for path in sources.rglob("*")
        if path.suffix in (".cc", ".h")
        and path.parent.name != "testing"
        # The last is only for a TensorFlow that is built from source.
        and not path.stem.endswith(("_test", "_fixture", "_benchmark", "source_hooks"))
    ]
    has = read_wheel(wheel, {path for f in files for path in _INCLUDED.findall(f.read_text())})
    defined, needed = dynamic_symbols(library)
    patterns = check_replacements.read_patterns(sources / "exports.lds")
    replaced = {
        name
        for name in defined & has.symbols
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    }
    return Abi(frozenset(needed & has.symbols), has.headers, frozenset(replaced))


def current(tag: str, release: str) -> Abi:
    """Finds what the built runtime needs of a release's stock wheel for a Python tag."""
    library = ROOT / "bazel-bin" / _RUNTIME / _LIBRARY
    if not library.is_file():
        raise BuildError(f"{library} is not built.\nBuild it: scripts/build_wheel.sh.")
    wheel = stock_wheel.fetch(tag, stock_wheel.cache_folder(), release)
    return needed_of(library, ROOT / _RUNTIME, wheel)


def compare(abi: Abi, wheel: Wheel) -> tuple[str, bool]:
    """Says what is missing or has changed, counts last, and whether something is missing."""
    called = sorted(abi.symbols - wheel.symbols)
    replaced = sorted(abi.replaced - wheel.symbols)
    headers = sorted(abi.headers.keys() - wheel.headers.keys())
    changed = sorted(
        path for path, code in abi.headers.items() if wheel.headers.get(path, code) != code
    )
    lines = [f"missing, called: {name}" for name in demangled(called)]
    lines += [f"missing, replaced: {name}" for name in demangled(replaced)]
    lines += [f"missing header: {path}" for path in headers]
    lines += [f"changed header: {path}" for path in changed]
    lines.append(
        f"{len(called)} symbols, {len(replaced)} replaced symbols and {len(headers)} headers are"
        f" missing, {len(changed)} headers differ"
    )
    return "\n".join(lines), bool(called or replaced or headers)


def demangled(names: list[str]) -> list[str]:
    """Returns mangled names as C++ says them; as they are if there is no c++filt."""
    mangled = "\n".join(names).replace("12lts", "3lts")
    try:
        done = subprocess.run(
            ["c++filt"], input=mangled, capture_output=True, text=True, check=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return names
    return done.stdout.splitlines()
