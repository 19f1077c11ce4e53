# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Prepares the documentation's pages for mkdocs: scripts/docs.sh makes the site of them.

    python3 build/site_pages.py --out dist/site-source
    python3 build/site_pages.py --check dist/site

The pages lie in FOLDER/pages as they do in the repository, so that a link leads to the same page in
both. A file of the repository that a page links to becomes a page that shows it, a folder one that
lists its files; pictures are copied. The page of the API gets the docstrings of all that tf.cuda
exports, which are read from FOLDER/python. --check looks for what a page of the site would load
from another host.
"""

from __future__ import annotations

import ast
import pathlib
import re
import shutil
import urllib.parse

import check_links
from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_EXPORTS = pathlib.PurePath("tensorflow/_api/v2/cuda/__init__.py")
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
_LANGUAGES = {".bzl": "python", ".csv": "text", ".h": "cpp", ".py": "python"}
_PICTURES = {".png", ".svg"}
_LOADED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=\"?((?:https?:)?//[^\s\">]+)"
)
_LOADED_BY_STYLE = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\s\"')]+)")


def exported_names(root: pathlib.Path) -> dict[str, str]:
    """Reads which names the API has.

    Args:
      root: the repository.

    Returns:
      For each public name, such as tf.cuda.Stream, where it is defined.
    """
    names = {}
    for statement in ast.parse((root / _EXPORTS).read_text()).body:
        if isinstance(statement, ast.ImportFrom):
            for name in statement.names:
                names[f"tf.cuda.{name.asname or name.name}"] = f"{statement.module}.{name.name}"
    return dict(sorted({**names, **_OTHER_NAMES}.items()))


def reference(names: dict[str, str]) -> str:
    """Asks mkdocstrings for the docstrings.

    Args:
      names: as exported_names returns them.

    Returns:
      Markdown: a heading for each name, with what its docstring says.
    """
    blocks = [
        f"::: {where}\n    options:\n      heading: {name}\n      toc_label: {name}\n"
        for name, where in names.items()
    ]
    return "\n## Reference\n\n" + "\n".join(blocks)


def shown(path: pathlib.Path, root: pathlib.Path) -> str:
    """Makes a page of what is none.

    Args:
      path: a file, or a folder.
      root: the repository.

    Returns:
      The page, in Markdown: the file's text, or links to the folder's files.
    """
    title = f"# {path.relative_to(root).as_posix()}\n\n"
    if path.is_dir():
        files = sorted(file.name for file in path.iterdir() if file.is_file())
        return title + "".join(f"- [{name}]({name})\n" for name in files)
    # Longer than any fence within the text.
    return f"{title}````` {_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}\n`````\n"


def _page_of(path: pathlib.Path) -> str:
    """The page that stands for a file or folder, as a link names it."""
    if path.is_dir():
        return "README.md" if (path / "README.md").is_file() else "index.md"
    return path.name if path.suffix == ".md" else f"{path.name}.md"


def _copy(file: pathlib.Path, there: pathlib.Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, there)


def prepare(root: pathlib.Path, out: pathlib.Path) -> None:
    """Writes the site's pages and the Python files whose docstrings they show.

    Args:
      root: the repository.
      out: the folder that gets them; it is emptied first.

    Raises:
      BuildError: there is no page for the API.
    """
    if not (root / _API).is_file():
        raise BuildError(f"There is no {_API} in {root}.")
    shutil.rmtree(out, ignore_errors=True)
    pages = out / "pages"
    waiting = check_links.documents(root)
    done = set(waiting)
    while waiting:
        path = waiting.pop()
        text = path.read_text() if path.suffix == ".md" else shown(path, root)
        lead_from = path if path.is_dir() else path.parent

        def to_page(link: re.Match[str], lead_from: pathlib.Path = lead_from) -> str:
            target, mark, anchor = link[1].partition("#")
            there = (lead_from / urllib.parse.unquote(target)).resolve()
            if not target or not there.is_relative_to(root) or not there.exists():
                return link[0]
            if there.suffix in _PICTURES:
                _copy(there, pages / there.relative_to(root))
                return link[0]
            if there not in done:
                done.add(there)
                waiting.append(there)
            folder = target.rstrip("/") + "/" if there.is_dir() else target[: -len(there.name)]
            before = link.string[link.start() : link.start(1)]
            after = link.string[link.end(1) : link.end()]
            return f"{before}{folder}{_page_of(there)}{mark}{anchor}{after}"

        if path.suffix == ".md" or path.is_dir():
            text = check_links.INLINE_LINK.sub(to_page, text)
        if path == root / _API:
            text += reference(exported_names(root))
        page = pages / lead_from.relative_to(root) / _page_of(path)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
    for file in sorted((root / _PACKAGE).rglob("*.py")):
        _copy(file, out / "python" / file.relative_to(root))
    for folder in _PACKAGE.parents:
        # With it, a package of that name that is installed is not looked at.
        if folder.name:
            (out / "python" / folder / "__init__.py").touch()


def loaded_from_elsewhere(site: pathlib.Path) -> list[str]:
    """Looks for what needs the network when a page is viewed.

    Args:
      site: the folder that has the site.

    Returns:
      For each script, style, image or font of another host, its file and address.
    """
    found = []
    for suffix, loads in (("html", _LOADED), ("css", _LOADED_BY_STYLE)):
        for file in sorted(site.rglob(f"*.{suffix}")):
            for address in loads.findall(file.read_text()):
                found.append(f"{file.relative_to(site)}: {address}")
    return found


def main() -> None:
    """Runs what the command line says."""
    parser = command_line(__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=_ROOT, help="the repository [this]")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, help="for the pages; emptied")
    parser.add_argument("--check", metavar="FOLDER", type=pathlib.Path, help="has the site")
    options = parser.parse_args()
    if options.out is None and options.check is None:
        parser.error("nothing to do. Give --out FOLDER or --check FOLDER.")
    if options.out is not None:
        prepare(options.root.resolve(), options.out)
    if options.check is not None:
        found = loaded_from_elsewhere(options.check)
        if found:
            raise BuildError("The site loads from other hosts:\n" + "\n".join(found))


if __name__ == "__main__":
    run_main(main)
