# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report: one page that needs no network, and its pictures as files."""

import html
import pathlib
from collections.abc import Sequence

from programs import TIMES_MEAN_NOTHING

from .peers import PEERS
from .pictures import pictures, style, svg, write
from .results import Results, Row
from .tables import COLUMNS, best_rows, cells
from .workloads import WORKLOADS

_STYLE = """
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 90rem; background: var(--ground);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 0; padding-top: 1rem;
  border-top: 1px solid var(--faint); }
a { color: var(--blue); }
nav a { display: inline-block; padding: 0.3rem 0.9rem 0.3rem 0; }
.pictures { display: grid; gap: 1rem 2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
.pictures svg { display: block; width: 100%; height: auto; max-width: 34rem; }
figure { margin: 1rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.45rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--faint); }
.text { text-align: left; }
.ours { font-weight: 600; }
.bad { color: var(--red); font-weight: 600; }
code { overflow-wrap: anywhere; }
summary { cursor: pointer; padding: 0.5rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
"""
# Columns of a workload's own table: without its name.
_FIRST = 1
_TEXT = ("peer", "best setting", "setting")


def machine(results: Results) -> str:
    """The machine in a few words."""
    of = results.machine
    name = "an emulated GPU" if results.emulated else of.get("gpu") or "no GPU"
    return f"{name}, {of.get('cores', '?')} CPU cores"


def _table(rows: Sequence[Row], setting: str) -> str:
    columns = [setting if name == "best setting" else name for name in COLUMNS[_FIRST:]]
    kinds = ["text" if name in _TEXT else "" for name in columns]

    def line(tag: str, values: Sequence[str], classes: str = "") -> str:
        cells_of_line = "".join(
            f'<{tag} class="{kind}">{html.escape(value)}</{tag}>'
            for kind, value in zip(kinds, values, strict=True)
        )
        return f'<tr class="{classes}">{cells_of_line}</tr>'

    def classes(row: Row) -> str:
        ours = PEERS[row.configuration.team.peer].ours
        return "bad" if row.wrong else "ours" if ours else ""

    body = "".join(line("td", cells(row)[_FIRST:], classes(row)) for row in rows)
    return (
        f'<div class="wide"><table><thead>{line("th", columns)}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _section(name: str, results: Results) -> str:
    """What the page says of a workload; empty if it was not measured."""

    def of(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row.configuration.team.workload == name]

    if not of(results.measured):
        return ""
    drawn = "".join(
        f'<figure role="img" aria-label="{html.escape(picture.title)}">{svg(picture)}</figure>'
        for picture in pictures(results, WORKLOADS[name])
    )
    return (
        f'<section id="{name}"><h2>{html.escape(name.replace("_", " "))}</h2>'
        f"<p>{html.escape(WORKLOADS[name].title)}.</p>"
        f'<div class="pictures">{drawn}</div>'
        f"<details open><summary>Best setting of each peer</summary>"
        f"{_table(of(best_rows(results)), 'best setting')}</details>"
        f"<details><summary>All settings</summary>{_table(of(results.measured), 'setting')}"
        "</details></section>"
    )


def _facts(results: Results) -> str:
    facts = {
        "machine": f"{machine(results)}; {results.machine.get('cpu', '')}",
        "date": results.date,
        "command": results.command,
        "commit": results.commit,
        "versions": ", ".join(sorted(set(results.versions.values()))),
        "memory": results.memory,
        "a measurement": f"{results.seconds:g} s; models of size {results.size}",
        "wrong results": str(sum(row.wrong for row in results.rows)),
    }
    failures = [f"{row.configuration.team}: {row.failure}" for row in results.rows if row.failure]
    others = {
        "skipped": [f"{name}: {why}" for name, why in results.skipped.items()],
        "no time for": results.left_out,
        "failed": list(dict.fromkeys(failures)),
    }
    lines = {name: f"<code>{html.escape(value)}</code>" for name, value in facts.items() if value}
    lines |= {name: "<br>".join(map(html.escape, each)) for name, each in others.items() if each}
    return (
        f"<dl>{''.join(f'<dt>{name}</dt><dd>{value}</dd>' for name, value in lines.items())}</dl>"
    )


def page(results: Results) -> str:
    """Makes the page, HTML with its pictures inside."""
    sections = {name: _section(name, results) for name in WORKLOADS}
    links = "".join(
        f'<a href="#{name}">{html.escape(name.replace("_", " "))}</a>'
        for name, section in sections.items()
        if section
    )
    warning = f'<p class="bad">Note: {TIMES_MEAN_NOTHING}.</p>' if results.emulated else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Stream groups and peers, {html.escape(results.date)}</title>"
        f"<style>{style()}{_STYLE}</style></head><body>"
        "<h1>TensorFlow with stream groups, and its peers</h1>"
        f"{warning}"
        "<p>Medians of the rounds; shades and ranges are the lowest and the highest round. Each"
        " peer has its best setting, by queries a second. Every result was compared with that of"
        " TensorFlow on one stream.</p>"
        f"<nav>{links}</nav>{''.join(sections.values())}"
        f"<section><h2>How it was measured</h2>{_facts(results)}</section></body></html>\n"
    )


def write_pictures(results: Results, folder: pathlib.Path) -> None:
    """Writes the pictures as files, see pictures.py."""
    note = f"{machine(results)}, {results.date}"
    for workload in WORKLOADS.values():
        write(pictures(results, workload), folder, note)
