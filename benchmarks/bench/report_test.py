# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of report.py and pictures.py."""

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

# Names of XML, which nothing loads.
NAMESPACES = ("http://www.w3.org/", "http://purl.org/dc/", "http://creativecommons.org/")


@pytest.fixture(scope="module")
def text() -> str:
    return page(all_kinds())


def test_the_page_is_html_with_all_pictures_inside(text: str) -> None:
    expected = sum(len(pictures(all_kinds(), workload)) for workload in WORKLOADS.values())
    assert text.count("<svg") == text.count("</svg>") == expected == 4
    assert 'name="viewport"' in text and "prefers-color-scheme:dark" in text
    # A name that two pictures have would make one use the other's markers and edges.
    ids = re.findall(r'\bid="(.*?)"', text)
    assert len(set(ids)) == len(ids) > 20
    # What comes from data is escaped.
    assert "A &lt;CPU&gt;" in text and "A <CPU>" not in text
    for said in ("jax: jax is not installed", "lstm: 1 of 3 rounds", "main.py --quick"):
        assert said in text
    assert 'id="recommender"' in text and 'id="lstm"' not in text


def test_the_page_loads_nothing(text: str) -> None:
    found = re.findall(r"https?://[^\s\"'<>)]*", text)
    assert [url for url in found if not url.startswith(NAMESPACES)] == []
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\((?!#)", text)


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
