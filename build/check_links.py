# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks what the documentation refers to.

    python3 build/check_links.py [--root .]

Every relative link and anchor in README.md, docs/ and examples/*.md must lead somewhere, README.md
must be short, and every variable that the runtime reads must be named in docs/variables.md.
"""

from __future__ import annotations

import pathlib
import re
import urllib.parse
from collections.abc import Iterator

from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_RUNTIME = pathlib.PurePath("tensorflow/core/common_runtime/multistream")
_README = pathlib.PurePath("README.md")
_VARIABLES = pathlib.PurePath("docs/variables.md")
_README_LINES = 150

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
# The group is what the link leads to.
INLINE_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_LINK_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_VARIABLE = re.compile(r"\bk\w+Variable\[\]\s*=\s*\"(TF_[A-Z0-9_]+)\"")


def documents(root: pathlib.Path) -> list[pathlib.Path]:
    """Lists the documentation.

    Args:
      root: the repository.

    Returns:
      README.md, all of docs/, and the pages beside the examples.
    """
    return [
        root / _README,
        *sorted((root / "docs").rglob("*.md")),
        *sorted((root / "examples").glob("*.md")),
    ]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Leaves out a page's blocks of code.

    Args:
      text: the page, in Markdown.

    Yields:
      Each other line, after its number, from 1.
    """
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark is None:
            if not fence:
                yield number, line
        elif not fence:
            fence = mark[1]
        elif mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""


def links(text: str) -> list[tuple[int, str]]:
    """Finds the links of a page.

    Args:
      text: the page, in Markdown.

    Returns:
      What each leads to, after the number of its line.
    """
    found = []
    for number, line in prose(text):
        outside_code = _CODE.sub("", line)
        found += [(number, target) for target in INLINE_LINK.findall(outside_code)]
        definition = _LINK_DEFINITION.match(outside_code)
        if definition is not None:
            found.append((number, definition[1]))
    return found


def anchors(text: str) -> set[str]:
    """Finds what a link can lead to within a page.

    Args:
      text: the page, in Markdown.

    Returns:
      An anchor for each heading, as hosts of repositories make them: in small letters, without
      punctuation, with "-" for a space, and with a number if the page has the heading already.
    """
    found: set[str] = set()
    for _, line in prose(text):
        heading = _HEADING.match(line)
        if heading is None:
            continue
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        unique, count = anchor, 0
        while unique in found:
            count += 1
            unique = f"{anchor}-{count}"
        found.add(unique)
    return found


def broken_link(page: pathlib.Path, target: str, root: pathlib.Path) -> str | None:
    """Follows a link.

    Args:
      page: has the link.
      target: what it leads to.
      root: the repository.

    Returns:
      Why it leads nowhere; None if it does not, or leads out of the repository's files.
    """
    if _SCHEME.match(target):
        return None
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    there = (page.parent / path).resolve() if path else page
    if path.startswith("/") or not there.is_relative_to(root):
        return "is not below the repository's root"
    if not there.exists():
        return f"there is no {there.relative_to(root)}"
    if anchor and there.suffix != ".md":
        return "an anchor leads into a page, which this is not"
    if anchor and anchor not in anchors(there.read_text()):
        return f"{there.relative_to(root)} has no heading of that name"
    return None


def known_variables(root: pathlib.Path) -> list[str]:
    """Reads from the sources which variables the runtime knows.

    Args:
      root: the repository.

    Returns:
      Their names, sorted.

    Raises:
      BuildError: the sources name none, or are not there.
    """
    sources = [
        source for name in ("options.h", "options.cc") for source in (root / _RUNTIME).rglob(name)
    ]
    names = {name for source in sources for name in _VARIABLE.findall(source.read_text())}
    if not names:
        raise BuildError(
            f"options.h and options.cc below {_RUNTIME} name no variable.\n"
            'They are found by lines such as: constexpr char kAnyVariable[] = "TF_ANY"'
        )
    return sorted(names)


def problems(root: pathlib.Path) -> list[str]:
    """Checks all of the documentation.

    Args:
      root: the repository.

    Returns:
      A line for each thing that is wrong.

    Raises:
      BuildError: there is no README.md or no docs/variables.md, or the runtime's variables are not
        to be found.
    """
    for needed in (_README, _VARIABLES):
        if not (root / needed).is_file():
            raise BuildError(f"There is no {needed} in {root}.")
    found = []
    for page in documents(root):
        for number, target in links(page.read_text()):
            why = broken_link(page, target, root)
            if why is not None:
                found.append(f"{page.relative_to(root)}:{number}: link to {target}: {why}")
    lines = len((root / _README).read_text().splitlines())
    if lines > _README_LINES:
        found.append(f"{_README} has {lines} lines; at most {_README_LINES}. Move some to docs/.")
    named = set(re.findall(r"TF_[A-Z0-9_]+", (root / _VARIABLES).read_text()))
    found += [
        f"{_VARIABLES} does not name {name}, which options.h has"
        for name in known_variables(root)
        if name not in named
    ]
    return found


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=_ROOT)
    root = parser.parse_args().root.resolve()
    found = problems(root)
    if found:
        raise BuildError("The documentation is wrong:\n" + "\n".join(found))
    count = sum(len(links(page.read_text())) for page in documents(root))
    print(
        f"{len(documents(root))} pages, {count} links, {len(known_variables(root))} variables: "
        "all there"
    )


if __name__ == "__main__":
    run_main(main)
