# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs of TensorFlow's libraries and headers, and whether a wheel has it.

`scripts/patches.py abi` reads the built runtime, its sources and the stock wheel that the runtime
was built against, and prints

    symbol NAME       of TensorFlow's libraries, which the runtime calls
    replaced NAME     which the runtime defines, too, so that TensorFlow calls its own
    header HASH PATH  which a source includes, or which a header does that defines no type itself;
                      HASH is of its code, without comments and spaces

`scripts/patches.py check-abi --wheel X.whl` says for any wheel, before anyone compiles for it, what
of that is missing, which replaced functions would not be reached, and which virtual functions that
the runtime overrides are gone. What may be harmless is said, too, and is no failure: changed
headers, virtual functions that are new in a class that the runtime derives from, and symbols that
are missing while the headers still declare their names. Compiled against those headers, the runtime
calls what they call. Symbols that only TensorFlow's inline code names are counted, not listed.
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

import abi_headers
import check_replacements
import elf
import stock_wheel
from build_error import BuildError

ROOT = pathlib.Path(__file__).resolve().parent.parent
_RUNTIME = pathlib.Path("tensorflow/core/common_runtime/multistream")
_LIBRARY = "libtensorflow_multistream.so"
# Abseil's releases, which are part of the names of all that takes a type of Abseil's.
_ABSEIL = re.compile(r"lts_\d{8}")
_NO_RELEASE = re.compile(r"(?<=12)lts(?!_)")
# What a header defines; one that defines nothing only includes others.
_DEFINES = re.compile(r"\b(class|struct|enum|union)\b[^;{}()=]*\{")
_FOLLOWED = ("tensorflow/", "tsl/", "xla/")
_TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>|\[abi:\w+\]")
_LAST_WORD = re.compile(r"(\w+)(?: const)?$")


@dataclasses.dataclass(frozen=True)
class Wheel:
    """What a wheel has."""

    symbols: frozenset[str]  # mangled names that its libraries define
    # A hash of each header that was asked for, or that such a header leads to, and that is there,
    # by its path.
    headers: dict[str, str]
    declared: abi_headers.Headers  # of those headers, and of all that they include
    unreached: frozenset[str]  # names asked for that its libraries do not look up in each other


@dataclasses.dataclass(frozen=True)
class Abi(Wheel):
    """What the runtime needs of a wheel."""

    # Mangled names that the runtime defines in TensorFlow's place; the names that it calls are
    # `symbols`.
    replaced: frozenset[str]
    included: frozenset[str]  # the headers that a source includes itself
    uses: abi_headers.Uses

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


def read_wheel(wheel: pathlib.Path, headers: Iterable[str], replaced: Iterable[str] = ()) -> Wheel:
    """Reads a wheel of TensorFlow's, with these of its headers.

    `replaced` are names of functions that a runtime defines in TensorFlow's place.
    """
    headers = sorted(headers)
    symbols: set[str] = set()
    names = sorted(replaced)
    patterns = [_NO_RELEASE.sub("lts_????????", name) for name in names]
    libraries: list[check_replacements.Library] = []
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
            file = pathlib.Path(archive.extract(member, folder))
            symbols |= dynamic_symbols(file)[0]
            if patterns:
                libraries.append(_without_releases(check_replacements.read_library(file, patterns)))
            file.unlink()
        hashes: dict[str, str] = {}
        wanted = list(headers)
        while wanted:
            path = wanted.pop()
            if path in hashes or abi_headers.INCLUDE + path not in archive.NameToInfo:
                continue
            text = archive.read(abi_headers.INCLUDE + path).decode(errors="replace")
            code = abi_headers.without_comments(text)
            hashes[path] = hashlib.sha256("".join(code.split()).encode()).hexdigest()[:12]
            if not _DEFINES.search(code):
                included = abi_headers.INCLUDED.findall(text)
                wanted += [to for to in included if to.startswith(_FOLLOWED)]
        declared = abi_headers.read(archive, headers)
    unreached = {
        name
        for name in names
        if name in symbols and not check_replacements.is_reached(name, libraries)
    }
    return Wheel(frozenset(symbols), hashes, declared, frozenset(unreached))


def _without_releases(library: check_replacements.Library) -> check_replacements.Library:
    """The same library, with names without Abseil's release."""
    return dataclasses.replace(
        library,
        defined=frozenset(_ABSEIL.sub("lts", name) for name in library.defined),
        called=frozenset(_ABSEIL.sub("lts", name) for name in library.called),
    )


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
    included = {
        path for f in files for path in abi_headers.INCLUDED.findall(f.read_text(encoding="utf-8"))
    }
    has = read_wheel(wheel, included)
    defined, needed = dynamic_symbols(library)
    patterns = check_replacements.read_patterns(sources / "exports.lds")
    replaced = {
        name
        for name in defined & has.symbols
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    }
    return Abi(
        frozenset(needed & has.symbols),
        has.headers,
        has.declared,
        frozenset(),
        frozenset(replaced),
        frozenset(included & has.headers.keys()),
        abi_headers.uses_of(files),
    )


def current(tag: str, release: str) -> Abi:
    """Finds what the built runtime needs of a release's stock wheel for a Python tag."""
    library = ROOT / "bazel-bin" / _RUNTIME / _LIBRARY
    if not library.is_file():
        raise BuildError(f"{library} is not built.\nBuild it: scripts/build_wheel.sh.")
    wheel = stock_wheel.fetch(tag, stock_wheel.cache_folder(), release)
    return needed_of(library, ROOT / _RUNTIME, wheel)


def compare(abi: Abi, wheel: Wheel) -> tuple[str, bool]:
    """Says what is missing or has changed, counts last, and whether the runtime cannot fit."""
    gone = sorted(abi.symbols - wheel.symbols)
    # What the runtime's sources do not name is called by inline code of TensorFlow's.
    named = {
        name: word
        for name, word in zip(gone, last_words(gone), strict=True)
        if word in abi.uses.names or word == name
    }
    called = [name for name, word in named.items() if word not in wheel.declared.names]
    otherwise = [name for name in named if name not in called]
    replaced = sorted(abi.replaced - wheel.symbols)
    unreached = sorted(wheel.unreached)
    headers = sorted(abi.included - wheel.headers.keys())
    changed = sorted(
        path for path, code in abi.headers.items() if wheel.headers.get(path, code) != code
    )
    broken, look = abi_headers.compare(abi.uses, abi.declared, wheel.declared)
    lines = [f"missing, called: {name}" for name in demangled(called)]
    lines += [f"missing, replaced: {name}" for name in demangled(replaced)]
    lines += [f"replaced, but never reached: {name}" for name in demangled(unreached)]
    lines += [f"missing header: {path}" for path in headers]
    lines += broken + look
    lines += [f"missing, called, still declared: {name}" for name in demangled(otherwise)]
    lines += [f"changed header: {path}" for path in changed]
    lines += [
        f"to look at: {len(look)} virtual functions or headers, {len(otherwise)} symbols that are"
        f" still declared, {len(gone) - len(named)} symbols of inline code, {len(changed)} headers"
        " that differ",
        f"{len(called)} symbols, {len(replaced)} replaced symbols and {len(headers)} headers are"
        f" missing, {len(unreached)} replaced symbols are never reached, {len(broken)} overridden"
        " functions do not fit",
    ]
    return "\n".join(lines), bool(called or replaced or unreached or headers or broken)


def last_words(names: list[str]) -> list[str]:
    """Returns mangled functions' names without scopes; as they are if there is no c++filt."""
    words = []
    for name, plain in zip(names, demangled(names, "--no-params"), strict=True):
        text, before = ("operator" if "operator" in plain else plain), ""
        while text != before:
            text, before = _TEMPLATE_ARGUMENTS.sub("", text), text
        found = _LAST_WORD.search(text)
        words.append(found[1] if found else name)
    return words


def demangled(names: list[str], *options: str) -> list[str]:
    """Returns mangled names as C++ says them; as they are if there is no c++filt."""
    mangled = "\n".join(names).replace("12lts", "3lts")
    try:
        done = subprocess.run(
            ["c++filt", *options], input=mangled, capture_output=True, text=True, check=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return names
    return done.stdout.splitlines()
