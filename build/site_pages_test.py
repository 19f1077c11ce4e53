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
"""The site has the repository's pages, links that lead to pages, and the API's docstrings."""

import pathlib

import pytest

import check_links
import site_pages
from build_error import BuildError

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """A small repository."""
    repository = tmp_path / "repository"
    for name, text in {
        "README.md": "[docs](docs/README.md) [serve](examples/serve.py) [data](data) [up](#a)\n"
        "![a](docs/a.svg)\n",
        "docs/a.svg": "<svg/>",
        "docs/README.md": "[api](api.md) [home](../README.md#a) [web](https://example.com/a.py)\n",
        "docs/api.md": "# API\n",
        "examples/serve.py": "print('[a](b)')\n",
        "data/rows.csv": "a,b\n",
        "tensorflow/_api/v2/cuda/__init__.py": "from tensorflow.python.multistream.x import f\n",
        "tensorflow/python/multistream/x.py": '"""X."""\n\n\ndef f():\n  """F."""\n',
    }.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    return repository


def test_pages_lie_as_in_the_repository(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    site_pages.prepare(root, tmp_path / "out")
    for page in check_links.documents(root):
        assert (tmp_path / "out" / "pages" / page.relative_to(root)).is_file()


def test_linked_file_becomes_a_page_that_shows_it(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    site_pages.prepare(root, tmp_path / "out")
    pages = tmp_path / "out" / "pages"
    assert "[serve](examples/serve.py.md)" in (pages / "README.md").read_text()
    assert "python\nprint('[a](b)')\n" in (pages / "examples" / "serve.py.md").read_text()


def test_linked_folder_becomes_a_page_that_leads_to_its_files(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    site_pages.prepare(root, tmp_path / "out")
    pages = tmp_path / "out" / "pages"
    assert "[data](data/index.md)" in (pages / "README.md").read_text()
    assert "[rows.csv](rows.csv.md)" in (pages / "data" / "index.md").read_text()
    assert "a,b" in (pages / "data" / "rows.csv.md").read_text()


def test_pictures_are_copied(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    site_pages.prepare(root, tmp_path / "out")
    pages = tmp_path / "out" / "pages"
    assert "![a](docs/a.svg)" in (pages / "README.md").read_text()
    assert (pages / "docs" / "a.svg").read_text() == "<svg/>"


def test_other_links_stay(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    site_pages.prepare(root, tmp_path / "out")
    pages = tmp_path / "out" / "pages"
    assert (pages / "docs" / "README.md").read_text() == (root / "docs" / "README.md").read_text()
    assert "[up](#a)" in (pages / "README.md").read_text()


def test_page_of_the_api_asks_for_each_exported_name(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    site_pages.prepare(root, tmp_path / "out")
    text = (tmp_path / "out" / "pages" / "docs" / "api.md").read_text()
    assert "::: tensorflow.python.multistream.x.f\n    options:\n      heading: tf.cuda.f\n" in text
    assert "::: tensorflow.python.multistream.scopes.streams.stream\n" in text


def test_docstrings_are_read_from_the_repository(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    site_pages.prepare(root, tmp_path / "out")
    assert (tmp_path / "out/python/tensorflow/python/multistream/x.py").is_file()
    assert (tmp_path / "out/python/tensorflow/__init__.py").is_file()


def test_what_an_earlier_run_left_is_gone(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "out" / "pages").mkdir(parents=True)
    (tmp_path / "out" / "pages" / "old.md").touch()
    site_pages.prepare(root, tmp_path / "out")
    assert not (tmp_path / "out" / "pages" / "old.md").exists()


def test_repository_without_a_page_for_the_api_is_an_error(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (root / "docs" / "api.md").unlink()
    with pytest.raises(BuildError, match=r"There is no docs/api\.md"):
        site_pages.prepare(root, tmp_path / "out")


def test_table_of_the_api_names_what_is_exported_and_nothing_else() -> None:
    rows = (ROOT / "docs" / "api.md").read_text().splitlines()
    named = [row.split("`")[1].split("(")[0] for row in rows if row.startswith("| `")]
    assert sorted(named) == sorted(site_pages.exported_names(ROOT))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.html", '<script src="https://cdn.example/a.js"></script>'),
        ("a.html", "<link rel=stylesheet href=//fonts.example/a.css>"),
        ("deep/a.html", '<img alt="a" src="http://img.example/a.png">'),
        ("a.css", "@font-face{src:url(https://fonts.example/a.woff)}"),
    ],
)
def test_what_a_page_loads_from_another_host_is_named(
    tmp_path: pathlib.Path, file: str, text: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    (found,) = site_pages.loaded_from_elsewhere(tmp_path)
    assert found.startswith(f"{file}: ") and ".example/a." in found


def test_links_to_other_hosts_and_own_files_are_no_loads(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://example.com/">a</a><script src="b.js"></script><img src=../c.png>'
    )
    assert site_pages.loaded_from_elsewhere(tmp_path) == []
