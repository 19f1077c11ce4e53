# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The documentation's links lead somewhere, README.md is short, and every variable is explained."""

import pathlib

import pytest

import check_links
from build_error import BuildError

RUNTIME = "tensorflow/core/common_runtime/multistream"
README = """\
# Streams

See [memory](docs/memory.md#a-pool-of-all), [variables](docs/variables.md), [below](#two-commands),
[figures](benchmarks/) and [the site](https://example.com/nothing).

## Two commands
"""


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """A small repository, of which nothing is wrong."""
    for name, text in {
        "README.md": README,
        "docs/memory.md": "# Memory\n\n## A `pool` of all\n\n[up](../README.md#streams)\n",
        "docs/variables.md": "| `TF_COUNT` | |\n| `TF_COUNT_ALL` | |\n",
        "examples/MPS.md": "[docs](../docs)\n",
        "benchmarks/a.csv": "a\n",
        f"{RUNTIME}/base/options.h": (
            'inline constexpr char kCountVariable[] = "TF_COUNT";\n'
            'inline constexpr char kCountAllVariable[] =\n    "TF_COUNT_ALL";\n'
        ),
        f"{RUNTIME}/base/options.cc": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def append(path: pathlib.Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def only_problem(root: pathlib.Path) -> str:
    (problem,) = check_links.problems(root)
    return problem


def test_nothing_wrong_is_nothing_said(root: pathlib.Path) -> None:
    assert check_links.problems(root) == []


@pytest.mark.parametrize(
    "page", ["README.md", "docs/memory.md", "docs/deep/er.md", "examples/a.md"]
)
def test_link_to_no_file_is_named_with_its_page_and_line(root: pathlib.Path, page: str) -> None:
    (root / page).parent.mkdir(exist_ok=True)
    (root / page).touch()
    line = len((root / page).read_text().splitlines()) + 1
    append(root / page, "[gone](gone.md)\n")
    problem = only_problem(root)
    assert problem.startswith(f"{page}:{line}: link to gone.md: there is no ")


def test_link_with_a_title_in_brackets_or_by_reference_is_followed(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", '[a](gone1.md "title") [b](<gone2.md>) [c]\n\n[c]: gone3.md\n')
    first, second, third = check_links.problems(root)
    assert "gone1.md" in first and "gone2.md" in second and "gone3.md" in third


def test_anchor_of_no_heading_is_named(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "[a](../README.md#three-commands)\n")
    assert "README.md has no heading of that name" in only_problem(root)


def test_anchor_within_the_page_is_followed(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "[a](#memory) [b](#streams)\n")
    assert "link to #streams: docs/memory.md has no heading" in only_problem(root)


def test_anchor_into_what_is_no_page_is_wrong(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "[a](../benchmarks/a.csv#a)\n")
    assert "an anchor leads into a page" in only_problem(root)


def test_second_heading_of_a_name_has_a_number(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "## Memory\n[a](#memory) [b](#memory-1) [c](#memory-2)\n")
    assert "link to #memory-2:" in only_problem(root)


def test_heading_in_a_block_of_code_is_no_anchor(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "```\n# not shown\n```\n[a](#not-shown)\n")
    assert "#not-shown" in only_problem(root)


def test_link_out_of_the_repository_is_wrong(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "[a](../../elsewhere.md) [b](/etc/hosts)\n")
    assert all("is not below" in problem for problem in check_links.problems(root))
    assert len(check_links.problems(root)) == 2


def test_what_looks_like_a_link_in_code_is_none(root: pathlib.Path) -> None:
    append(root / "docs/memory.md", "`[a](gone.md)`\n\n~~~\n[b](gone.md)\n```\n~~~\n")
    assert check_links.problems(root) == []


def test_readme_of_151_lines_is_too_long(root: pathlib.Path) -> None:
    readme = root / "README.md"
    append(readme, "\n" * (150 - len(README.splitlines())))
    assert check_links.problems(root) == []
    append(readme, "\n")
    assert only_problem(root).startswith("README.md has 151 lines; at most 150.")


@pytest.mark.parametrize("variable", ["TF_COUNT", "TF_COUNT_ALL"])
def test_variable_that_the_page_of_variables_does_not_name(
    root: pathlib.Path, variable: str
) -> None:
    page = root / "docs/variables.md"
    page.write_text(page.read_text().replace(f"`{variable}`", ""))
    assert only_problem(root) == f"docs/variables.md does not name {variable}, which options.h has"


def test_variable_of_options_cc_counts(root: pathlib.Path) -> None:
    append(root / RUNTIME / "base/options.cc", 'constexpr char kNewVariable[] = "TF_NEW";\n')
    assert only_problem(root).startswith("docs/variables.md does not name TF_NEW,")


def test_sources_without_variables_are_an_error(root: pathlib.Path) -> None:
    (root / RUNTIME / "base/options.h").write_text("")
    with pytest.raises(BuildError, match="name no variable"):
        check_links.problems(root)


@pytest.mark.parametrize("page", ["README.md", "docs/variables.md"])
def test_page_that_must_be_there_is_missed(root: pathlib.Path, page: str) -> None:
    (root / page).unlink()
    with pytest.raises(BuildError, match=f"There is no {page}"):
        check_links.problems(root)


def test_command_ends_with_what_is_wrong(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["check_links.py", "--root", str(root)])
    check_links.main()
    assert capsys.readouterr().out == "4 pages, 7 links, 2 variables: all there\n"
    append(root / "README.md", "[a](gone.md)\n")
    with pytest.raises(BuildError, match=r"README\.md:\d+: link to gone\.md"):
        check_links.main()
