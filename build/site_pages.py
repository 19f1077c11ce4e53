# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prepares the documentation's site for mkdocs, and checks it: scripts/docs.sh.

    python3 build/site_pages.py --out dist/site-source
    python3 build/site_pages.py --check dist/site

The site has the repository's files where the repository has them, so that a link leads to the same
file in both. The page of the API gets the docstrings of all that tf.cuda exports. --check looks for
what a page of the site would load from another host.
"""

import pathlib
import re
import shutil

import source_tree
import static_checks
from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_PACKAGE = pathlib.PurePath("tensorflow/python/multistream")
_API = pathlib.PurePath("docs/api.md")
_MODULE = _PACKAGE.as_posix().replace("/", ".")
# What tf.cuda does not export: a function of `tf` itself, and types of results.
_OTHER_NAMES = {
    "tf.stream": f"{_MODULE}.scopes.streams.stream",
    "StreamGroupStats": f"{_MODULE}.groups.stats.StreamGroupStats",
    "CaptureReport": f"{_MODULE}.capture.capture_report.CaptureReport",
    "CaptureCount": f"{_MODULE}.capture.capture_report.CaptureCount",
    "StreamGroups": f"{_MODULE}.scopes.stream_table.StreamGroups",
    "NodeStreamGroup": f"{_MODULE}.scopes.stream_table.NodeStreamGroup",
}
_LOADED = {
    "html": r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="
    r"\"?((?:https?:)?//[^\s\">]+)",
    "css": r"(?:url\(|@import )[\"']?((?:https?:)?//[^\s\"')]+)",
}


def public_names(root: pathlib.Path) -> dict[str, str]:
    """Says for each name of the API, such as tf.cuda.Stream, where it is defined."""
    exported = source_tree.exported_names(root).items()
    names = {f"tf.cuda.{name}": where for name, where in exported}
    return dict(sorted({**names, **_OTHER_NAMES}.items()))


def prepare(root: pathlib.Path, out: pathlib.Path) -> None:
    """Copies the repository's files into the emptied `out`; the API's page gets a reference."""
    shutil.rmtree(out, ignore_errors=True)
    for file in static_checks.repository_files(root):
        if not file.startswith("."):
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, out / file)
    # With it, a package of that name that is installed is not looked at.
    for folder in (_PACKAGE, *_PACKAGE.parents[:-1]):
        (out / folder / "__init__.py").touch()
    with (out / _API).open("a", encoding="utf-8") as page:
        page.write("\n## Reference\n\n")
        for name, where in public_names(root).items():
            page.write(
                f"::: {where}\n    options:\n      heading: {name}\n      toc_label: {name}\n\n"
            )


def loaded_from_elsewhere(site: pathlib.Path) -> list[str]:
    """Lists scripts, styles, images and fonts of other hosts: the page's file, and the address."""
    return [
        f"{file.relative_to(site)}: {address}"
        for suffix, loads in _LOADED.items()
        for file in sorted(site.rglob(f"*.{suffix}"))
        for address in re.findall(loads, file.read_text(encoding="utf-8"))
    ]


def main() -> None:
    """Runs what the command line says."""
    parser = command_line(__doc__)
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, help="for the pages; emptied")
    parser.add_argument("--check", metavar="FOLDER", type=pathlib.Path, help="has the site")
    options = parser.parse_args()
    if options.out is not None:
        prepare(_ROOT, options.out)
    if options.check is not None and (found := loaded_from_elsewhere(options.check)):
        raise BuildError("The site loads from other hosts:\n" + "\n".join(found))


if __name__ == "__main__":
    run_main(main)
