# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the headers of a wheel of TensorFlow's declare, as far as the runtime's sources lead there.

No compiler is needed: names, classes and their virtual functions are found by their form. What
stands behind an #if counts as if it were compiled.
"""

import dataclasses
import pathlib
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping

INCLUDE = "tensorflow/include/"
INCLUDED = re.compile(r'^[ \t]*#[ \t]*include\s+["<]([^">]+)[">]', re.MULTILINE)
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
# Whose includes are looked for; others' are for other systems and libraries.
_OWNERS = ("absl/", "google/protobuf/", "tensorflow/", "tsl/", "xla/")
_CLASS = re.compile(
    r"\b(?:class|struct)\s+(?:\w+(?:\([^()]*\))?\s+)*?(\w+)(?:\s+final)?\s*(:[^;{}()]*)?\{"
)
_BASE = re.compile(r"\bpublic\s+(?:virtual\s+)?(?:\w*::)*(\w+)")
_VIRTUAL = re.compile(r"\bvirtual\b[^;{}()]*?(\w+)\s*\(")
_OVERRIDE = re.compile(r"\b(\w+)\s*\([^;{}]*\)[^;{}()]*\boverride\b")
# Two names of one type.
_ALIASES = (("std::string", "string"), ("absl::optional", "std::optional"), ("tsl::", ""))


@dataclasses.dataclass(frozen=True)
class Class:
    """What of a class concerns those that derive from it."""

    header: str  # its path
    bases: frozenset[str]  # names of public base classes, without namespaces
    virtuals: Mapping[str, frozenset[str]]  # name -> parameters, as text, of each of that name


@dataclasses.dataclass(frozen=True)
class Headers:
    """The headers that a program's includes lead to."""

    names: frozenset[str]  # all that their code names
    classes: Mapping[str, Class]  # by name, without namespaces
    absent: Mapping[str, str]  # what is included and not there -> the header that includes it


def without_comments(text: str) -> str:
    """Returns C++ without its comments."""
    return _COMMENTS.sub(" ", text)


def read(archive: zipfile.ZipFile, included: Iterable[str]) -> Headers:
    """Reads the headers of a wheel that these, which a program includes, lead to."""
    there = archive.NameToInfo
    names: set[str] = set()
    classes: dict[str, Class] = {}
    absent: dict[str, str] = {}
    known = set(included)
    wanted = [path for path in sorted(known) if INCLUDE + path in there]
    while wanted:
        path = wanted.pop()
        code = without_comments(archive.read(INCLUDE + path).decode(errors="replace"))
        names.update(_NAME.findall(code))
        for name, found in classes_of(code, path):
            classes[name] = _joined(classes[name], found) if name in classes else found
        for said in INCLUDED.findall(code):
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), said))
            to = beside if INCLUDE + beside in there else said
            if INCLUDE + to not in there:
                if path.startswith(_OWNERS):
                    absent.setdefault(to, path)
            elif to not in known:
                known.add(to)
                wanted.append(to)
    return Headers(frozenset(names), classes, absent)


def classes_of(code: str, header: str) -> Iterator[tuple[str, Class]]:
    """Finds the classes in code without comments, with the virtual functions that each declares."""
    for found in _CLASS.finditer(code):
        body = code[found.end() : _closing(code, found.end(), "{}")]
        virtuals: dict[str, frozenset[str]] = {}
        for declared in _VIRTUAL.finditer(body):
            end = _closing(body, declared.end(), "()")
            parameters = "".join(body[declared.end() : end].split())
            for long, short in _ALIASES:
                parameters = parameters.replace(long, short)
            virtuals[declared[1]] = virtuals.get(declared[1], frozenset()) | {parameters}
        yield found[1], Class(header, frozenset(_BASE.findall(found[2] or "")), virtuals)


def overridden(code: str) -> set[str]:
    """Returns the names of the functions that code overrides."""
    return set(_OVERRIDE.findall(code))


def _closing(text: str, at: int, brackets: str) -> int:
    """Where the bracket that has been opened before `at` is closed; the end if it is not."""
    depth = 1
    for found in re.compile("[" + re.escape(brackets) + "]").finditer(text, at):
        depth += 1 if found[0] == brackets[0] else -1
        if depth == 0:
            return found.start()
    return len(text)


def _joined(first: Class, second: Class) -> Class:
    virtuals = dict(first.virtuals)
    for name, parameters in second.virtuals.items():
        virtuals[name] = virtuals.get(name, frozenset()) | parameters
    return Class(
        first.header if first.virtuals else second.header, first.bases | second.bases, virtuals
    )


@dataclasses.dataclass(frozen=True)
class Uses:
    """What a program's sources name of headers."""

    names: frozenset[str]  # all names
    derived: Mapping[str, str]  # class that one derives from -> the file that says so
    overridden: frozenset[str]  # virtual functions


def uses_of(files: Iterable[pathlib.Path]) -> Uses:
    """Reads a program's sources."""
    names: set[str] = set()
    derived: dict[str, str] = {}
    functions: set[str] = set()
    for file in files:
        code = without_comments(file.read_text(encoding="utf-8"))
        names.update(_NAME.findall(code))
        functions |= overridden(code)
        for _, found in classes_of(code, file.name):
            for base in found.bases:
                derived.setdefault(base, file.name)
    return Uses(frozenset(names), derived, frozenset(functions))


def _with_bases(name: str, headers: Headers) -> set[str]:
    """A class and all that it derives from."""
    found: set[str] = set()
    wanted = {name}
    while wanted:
        found |= wanted
        wanted = {
            base
            for each in wanted
            if each in headers.classes
            for base in headers.classes[each].bases
        } - found
    return found


def compare(uses: Uses, old: Headers, new: Headers) -> tuple[list[str], list[str]]:
    """Says what of a program may not compile or run against other headers.

    Returns what does not compile, and what to look at: a virtual function that is new is not
    forwarded by a class that forwards all others.
    """
    broken: list[str] = []
    look: list[str] = []
    classes = {each for name in uses.derived for each in _with_bases(name, old)}
    for name in sorted(classes & old.classes.keys()):
        before = old.classes[name]
        after = new.classes.get(name, Class("", frozenset(), {}))
        said = f"{before.header}: {name}::"
        for function in sorted(before.virtuals.keys() & uses.overridden):
            if function not in after.virtuals:
                broken.append(f"no longer virtual: {said}{function}")
            elif before.virtuals[function] - after.virtuals[function]:
                broken.append(f"virtual, with other parameters: {said}{function}")
        look += [
            f"new virtual: {said}{function}"
            for function in sorted(after.virtuals.keys() - before.virtuals.keys())
        ]
    look += [
        f"not in the wheel: {path}, for {by}"
        for path, by in sorted(new.absent.items())
        if path not in old.absent
    ]
    return broken, look
