# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of report.py and pictures.py."""

from __future__ import annotations

import html.parser
import pathlib
import re
import xml.etree.ElementTree

import pytest

from .made_up import all_kinds
from .pictures import DARK, LIGHT, pictures
from .report import page, write_pictures
from .results import load
from .workloads import WORKLOADS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What has no end tag.
VOID = ("meta", "br")
# Names of XML, which nothing loads.
NAMESPACES = ("http://www.w3.org/", "http://purl.org/dc/", "http://creativecommons.org/")


class Balanced(html.parser.HTMLParser):
    """Fails where an end tag is not that of what is open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures = 0
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open += [] if tag in VOID else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pictures += tag == "svg"
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text() -> str:
    return page(all_kinds())


def test_the_page_is_html_with_all_pictures_inside(text: str) -> None:
    parser = Balanced(text)
    assert parser.open == []
    expected = sum(len(pictures(all_kinds(), workload)) for workload in WORKLOADS.values())
    assert parser.pictures == expected == 4
    assert 'name="viewport"' in text and "prefers-color-scheme:dark" in text
    # A name that two pictures have would make one use the other's markers and edges.
    assert len(set(parser.ids)) == len(parser.ids) > 20
    # What comes from data is escaped.
    assert "A &lt;CPU&gt;" in text and "A <CPU>" not in text
    for said in ("jax: jax is not installed", "lstm: 1 of 3 rounds", "main.py --quick"):
        assert said in text
    assert 'id="recommender"' in text and 'id="lstm"' not in text


def test_the_page_loads_nothing(text: str) -> None:
    found = re.findall(r"https?://[^\s\"'<>)]*", text)
    assert [url for url in found if not url.startswith(NAMESPACES)] == []
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\((?!#)", text)


def test_colours_are_variables_in_the_page(text: str) -> None:
    drawn = re.sub(r"<style>.*?</style>", "", text, count=1, flags=re.DOTALL)
    assert not [colour for colour in LIGHT.values() if colour in drawn]
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert set(re.findall(r"var\(--(\w+)\)", text)) <= LIGHT.keys()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_lines_and_letters_stand_out_from_the_ground(theme: dict[str, str]) -> None:
    """As the Web's guidelines ask: 4.5 for letters; for lines half of that."""

    def luminance(code: str) -> float:
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name in theme.keys() - {"ground", "faint"}:
        dark, light = sorted((luminance(theme[name]), luminance(theme["ground"])))
        least = 4.5 if name in ("ink", "blue") else 2.5
        assert (light + 0.05) / (dark + 0.05) >= least, name


def test_pictures_are_the_figures() -> None:
    found = {picture.name: picture for picture in pictures(all_kinds(), WORKLOADS["recommender"])}
    throughput = {line.peer: line for line in found["throughput_recommender"].lines}
    # Of 4 clients and 4 groups: rounds of 1600 and 90.
    assert list(throughput["captured"].x) == [1, 4]
    assert throughput["captured"].y[1] == 845.0
    assert (throughput["captured"].low[1], throughput["captured"].high[1]) == (90.0, 1600.0)
    memory = {line.peer: line for line in found["memory_recommender"].lines}
    assert (list(memory["captured"].x), list(memory["captured"].y)) == ([1, 4], [100.0, 400.0])
    assert memory["stock"].level and not memory["captured"].level
    (training,) = pictures(all_kinds(), WORKLOADS["wide_and_deep_4"])
    assert [(line.peer, list(line.x)) for line in training.lines] == [
        ("stock", [1]), ("marks", [2, 4])
    ]  # fmt: skip


def test_files_are_png_and_svg_light_and_dark(tmp_path: pathlib.Path) -> None:
    write_pictures(all_kinds(), tmp_path)
    assert len(list(tmp_path.iterdir())) == 4 * 3
    text = (tmp_path / "step_wide_and_deep_4.svg").read_text()
    xml.etree.ElementTree.fromstring(text)
    assert (
        LIGHT["ground"] in text
        and DARK["ground"] in text
        and "A GPU, 2 CPU cores, 2026-01-02" in text
    )
    assert (tmp_path / "step_wide_and_deep_4-light.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_of_the_documentation_are_those_of_the_data(tmp_path: pathlib.Path) -> None:
    """As `bench.sh --load DATA --pictures docs/pictures` writes them."""
    data = ROOT / "benchmarks/results/bench_recommender_h100_2026-11-25.json"
    write_pictures(load(data), tmp_path)
    drawn, shown = (
        {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")}
        for folder in (tmp_path, ROOT / "docs/pictures")
    )
    assert drawn == shown and drawn
