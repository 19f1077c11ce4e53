# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pictures of what was measured, drawn by Matplotlib.

A picture is drawn with a theme, whose colours also are names: in a page they become variables of
its style sheet, so that one drawing is light and dark.
"""

import dataclasses
import io
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from .peers import PEERS
from .results import Results, Row
from .tables import best_rows
from .workloads import Workload

Theme = Mapping[str, str]
# Colours of Okabe and Ito, which people tell apart whatever colours they see; each theme has shades
# that show on its ground. Every colour of LIGHT differs, see `svg`.
LIGHT: Theme = {
    "ground": "#fefefe",
    "ink": "#1f2328",
    "faint": "#d0d7de",
    "grey": "#6e7781",
    "blue": "#0072b2",
    "sky": "#3aa0dc",
    "green": "#009e73",
    "orange": "#d98200",
    "red": "#d55e00",
    "pink": "#b85c94",
    "violet": "#6f4fc4",
}
DARK: Theme = {
    "ground": "#15191f",
    "ink": "#e6edf3",
    "faint": "#3d444d",
    "grey": "#9aa4af",
    "blue": "#4aa8ff",
    "sky": "#8fd0ff",
    "green": "#2fd0a0",
    "orange": "#f0b040",
    "red": "#ff8552",
    "pink": "#eb9ccb",
    "violet": "#b49cff",
}
# Of each peer: colour, marker and dashes. What is ours is drawn with whole lines.
_STYLES: Mapping[str, tuple[str, str, str]] = {
    "stock": ("grey", "o", "-"),
    "virtual": ("grey", "^", ":"),
    "processes": ("orange", "s", ":"),
    "mps": ("orange", "D", "--"),
    "xla_auto": ("pink", "v", "--"),
    "xla": ("pink", "o", ":"),
    "groups": ("sky", "o", "-"),
    "captured": ("blue", "s", "-"),
    "captured_xla": ("green", "D", "-"),
    "marks": ("sky", "o", "-"),
    "policy": ("green", "D", "-"),
    "pytorch": ("red", "^", ":"),
    "pytorch_graphs": ("red", "v", "--"),
    "onnxruntime": ("violet", "s", ":"),
    "onnxruntime_graphs": ("violet", "D", "--"),
    "jax": ("ink", "x", "--"),
}
# So narrow that letters can be read where a telephone shows the picture at its own width.
_WIDTH, _HEIGHT, _LEGEND_LINE, _POINTS = 4.4, 2.7, 0.19, 8.5


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of a picture."""

    peer: str
    x: Sequence[float]  # of its points
    y: Sequence[float]
    low: Sequence[float] = ()  # the lowest y of the rounds; empty without
    high: Sequence[float] = ()  # the highest
    level: bool = False  # whether it is one value, drawn across the picture


@dataclasses.dataclass(frozen=True)
class Picture:
    """What a picture shows."""

    name: str  # of its file
    title: str  # above it
    x: str  # what its x axis is
    y: str
    lines: Sequence[Line]  # what is drawn
    # Whether both axes are logarithmic, to base 10; otherwise x is to base 2, and y begins at 0.
    logarithmic: bool = False


def pictures(results: Results, workload: Workload) -> list[Picture]:
    """Makes all pictures of a workload that the figures are enough for."""
    found = []
    best = best_rows(results)
    for batch in workload.batches:
        rows, of_best = (
            [
                row
                for row in some
                if row.configuration.team.workload == workload.name
                and row.configuration.batch == batch
            ]
            for some in (results.measured, best)
        )
        name = f"{workload.name}_batch_{batch}" if len(workload.batches) > 1 else workload.name
        title = name.replace("_", " ")
        if workload.training:
            lines = _lines(rows, _parallel, "p50_ms", spread=True, by_parallel=True)
            found.append(
                Picture(f"step_{name}", f"{title}: a step", "stream groups", "ms a step", lines)
            )
            continue
        found += [
            Picture(
                f"throughput_{name}",
                f"{title}: throughput",
                "clients",
                "queries a second",
                _lines(of_best, _clients, "queries_per_second", spread=True),
            ),
            Picture(
                f"latency_{name}",
                f"{title}: latency",
                "queries a second; a point for each number of clients",
                "p99, ms",
                _lines(of_best, lambda row: row.median("queries_per_second"), "p99_ms"),
                logarithmic=True,
            ),
            _memory(name, title, rows),
        ]
    return [picture for picture in found if picture.lines]


def _clients(row: Row) -> int:
    return row.configuration.clients


def _parallel(row: Row) -> int:
    return row.configuration.team.parallel


def _lines(
    rows: Iterable[Row],
    x: Callable[[Row], float],
    y: str,
    spread: bool = False,
    by_parallel: bool = False,
) -> list[Line]:
    """A line for each peer, of medians of a field; `spread` adds the range of the rounds."""
    lines = []
    for peer, of_peer in _by_peer(rows).items():
        of = sorted(of_peer, key=_parallel) if by_parallel else of_peer
        lines.append(
            Line(
                peer,
                [x(row) for row in of],
                [row.median(y) for row in of],
                [min(row.values(y)) for row in of] if spread else (),
                [max(row.values(y)) for row in of] if spread else (),
                level=by_parallel and not PEERS[peer].parallel,
            )
        )
    return lines


def _memory(name: str, title: str, rows: Sequence[Row]) -> Picture:
    most = max(map(_clients, rows), default=0)
    counted = [row for row in rows if _clients(row) == most and row.memory_mib is not None]
    lines = []
    for peer, of in _by_peer(counted).items():
        numbers = sorted({_parallel(row) for row in of})
        values = [max(row.memory_mib or 0.0 for row in of if _parallel(row) == n) for n in numbers]
        lines.append(Line(peer, numbers, values, level=not PEERS[peer].parallel))
    return Picture(
        f"memory_{name}",
        f"{title}: memory, {most} clients",
        "stream groups, or copies of the model",
        "memory of the GPU, MiB",
        [] if all(line.level for line in lines) else lines,
    )


def _by_peer(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {name: [] for name in PEERS}
    for row in rows:
        found[row.configuration.team.peer].append(row)
    return {name: of for name, of in found.items() if of}


def draw(picture: Picture, theme: Theme, note: str = "") -> Figure:
    """Draws a picture in the colours of a theme, with a note, a line, below it."""
    legend_lines = (len(picture.lines) + 1) // 2 + bool(note)
    below = 0.45 + _LEGEND_LINE * legend_lines + 0.05
    height = _HEIGHT + below
    colours = {
        "ink": ("text.color", "axes.labelcolor", "xtick.color", "ytick.color"),
        "faint": ("axes.edgecolor", "grid.color"),
        "ground": ("axes.facecolor", "figure.facecolor"),
    }
    settings = {part: theme[name] for name, parts in colours.items() for part in parts}
    with mpl.rc_context({"font.size": _POINTS, "font.family": "sans-serif", **settings}):
        figure = Figure(figsize=(_WIDTH, height))
        axes = figure.add_axes((0.155, below / height, 0.82, (_HEIGHT - 0.3) / height))
        for line in picture.lines:
            _draw_line(axes, line, theme)
        _set_axes(axes, picture)
        axes.set_title(picture.title, loc="left", fontsize=_POINTS + 1, fontweight="bold")
        figure.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, (_LEGEND_LINE if note else 0.0) / height),
            ncols=2,
            frameon=False,
            fontsize=_POINTS - 0.5,
            handlelength=2.2,
            columnspacing=0.6,
            labelspacing=0.3,
        )
        if note:
            figure.text(0.5, 0.04 / height, note, ha="center", fontsize=_POINTS - 2)
        return figure


def _draw_line(axes: Any, line: Line, theme: Theme) -> None:
    colour, marker, dashes = _STYLES[line.peer]
    style = {"color": theme[colour], "linestyle": dashes, "label": PEERS[line.peer].title}
    width = 1.9 if PEERS[line.peer].ours else 1.2
    if line.level:
        axes.axhline(line.y[0], linewidth=width, **style)
        return
    axes.plot(line.x, line.y, marker=marker, markersize=4, linewidth=width, **style)
    if line.low:
        axes.fill_between(line.x, line.low, line.high, color=theme[colour], alpha=0.15, linewidth=0)


def _set_axes(axes: Any, picture: Picture) -> None:
    axes.set_xlabel(picture.x)
    axes.set_ylabel(picture.y)
    axes.grid(True, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    readable = FuncFormatter(lambda value, _: _number(value))
    if not picture.logarithmic:
        axes.yaxis.set_major_formatter(readable)
        axes.set_xscale("log", base=2)
        marks = sorted({x for line in picture.lines if not line.level for x in line.x} or {1})
        axes.set_xticks(marks, [f"{x:g}" for x in marks])
        axes.xaxis.set_minor_locator(NullLocator())
        if len(marks) == 1:
            axes.set_xlim(marks[0] / 1.5, marks[0] * 1.5)
        axes.set_ylim(bottom=0)
        return
    axes.loglog()
    some = FuncFormatter(lambda value, _: _number(value) if f"{value:e}"[0] in "25" else "")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(readable)
        low, high = axis.get_view_interval()
        # Less than two powers of ten would have one label, or none.
        axis.set_minor_formatter(some if high / low < 100 else NullFormatter())
        axis.set_tick_params(which="minor", labelsize=_POINTS - 1.5)


def _number(value: float) -> str:
    return f"{value / 1000:,.3g}k" if value >= 10_000 else f"{value:,.4g}"


def svg(picture: Picture, note: str = "") -> str:
    """Draws a picture for a page: its colours are variables `--NAME` of the themes' names."""
    text = _saved(picture, LIGHT, "svg", note).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Names such as line2d_3, which nothing uses, and which another picture has, too.
    text = re.sub(r' id="[\w.]+_\d+"', "", text)
    for name, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{name})")
    return text


def _saved(picture: Picture, theme: Theme, kind: str, note: str) -> bytes:
    file = io.BytesIO()
    figure = draw(picture, theme, note)
    # Names inside the file are made of the salt: pictures of one page must not share any.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": picture.name}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(file, format=kind, dpi=200, metadata=metadata)
    return file.getvalue()


def style() -> str:
    """The themes as a style sheet, which is light or dark as the reader prefers."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in theme.items()) for theme in (LIGHT, DARK)
    )
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def write(found: Sequence[Picture], folder: pathlib.Path, note: str) -> None:
    """Writes NAME.svg, light and dark, NAME-light.png and NAME-dark.png, each with the note."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in found:
        head, end, rest = svg(picture, note).partition(">")
        text = f"{head}{end}<style>{style()}</style>{rest}"
        (folder / f"{picture.name}.svg").write_text(text, encoding="utf-8")
        for name, theme in (("light", LIGHT), ("dark", DARK)):
            path = folder / f"{picture.name}-{name}.png"
            path.write_bytes(_saved(picture, theme, "png", note))
