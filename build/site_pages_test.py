# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The documentation's site has all that the pages lead to, and loads nothing from other hosts."""

import pathlib
import re
import subprocess
import sys

import pytest

import site_pages

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_files_lie_as_in_the_repository_and_the_api_has_each_exported_name(
    tmp_path: pathlib.Path,
) -> None:
    repository, out = tmp_path / "repository", tmp_path / "out"
    texts = {
        "README.md": "[serve](examples/serve.py)\n",
        "docs/api.md": "# API\n",
        "examples/serve.py": "print()\n",
        "tensorflow/_api/v2/cuda/__init__.py": "from tensorflow.python.multistream.x import f\n",
        "tensorflow/python/multistream/x.py": '"""X."""\n',
    }
    for name, text in texts.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    (out / "docs").mkdir(parents=True)
    (out / "docs" / "old.md").touch()
    site_pages.prepare(repository, out)
    assert not (out / "docs" / "old.md").exists()
    for name, text in texts.items():
        assert (out / name).read_text().startswith(text)
    page = (out / "docs" / "api.md").read_text()
    assert "::: tensorflow.python.multistream.x.f\n    options:\n      heading: tf.cuda.f\n" in page
    assert "::: tensorflow.python.multistream.scopes.streams.stream\n" in page


def test_table_of_the_api_names_what_is_exported_and_nothing_else() -> None:
    rows = (ROOT / "docs" / "api.md").read_text().splitlines()
    named = [row.split("`")[1].split("(")[0] for row in rows if row.startswith("| `")]
    assert sorted(named) == sorted(site_pages.public_names(ROOT))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.html", '<script src="https://cdn.example/a.js"></script>'),
        ("deep/a.html", "<link rel=stylesheet href=//fonts.example/a.css>"),
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


def test_links_that_lead_nowhere_fail_the_build(tmp_path: pathlib.Path) -> None:
    config = (ROOT / "docs/mkdocs.yml").read_text().partition("\nnav:")[0]
    (tmp_path / "mkdocs.yml").write_text(config.replace("../dist", str(tmp_path)))
    (tmp_path / "site-source/folder").mkdir(parents=True)
    (tmp_path / "site-source/a.csv").touch()
    wrong = ["gone.md", "#none", "../elsewhere.md", "/etc/hosts", "folder", "gone_by_reference.md"]
    text = "# A `b` & c\n[a](#a-b--c) [b](a.csv)\n[r]\n\n[r]: gone_by_reference.md\n"
    text += "".join(f"[w]({link})\n" for link in wrong[:-1]) + "`[code](not_followed.md)`\n"
    (tmp_path / "site-source/index.md").write_text(text)
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert sorted(re.findall(r"WARNING .* link '(.*?)'", done.stderr)) == sorted(wrong)
