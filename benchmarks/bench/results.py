# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What was measured, as a JSON file."""

import dataclasses
import json
import pathlib
import statistics
import types
import typing
from collections.abc import Sequence
from typing import Any

from .sweep import Configuration

SCHEMA = 1


class ResultsError(Exception):
    """A file is not what it should be; says which field."""


@dataclasses.dataclass(frozen=True)
class Round:
    """What one configuration gave in one round."""

    queries: int  # that ended; of a training, steps
    wrong: int  # of their results
    queries_per_second: float  # of all clients together
    p50_ms: float  # the median of the queries' times, in milliseconds
    p95_ms: float  # their 95th percentile
    p99_ms: float  # their 99th percentile
    max_ms: float  # the longest
    cpu_us: float  # CPU time of all processes for a query, in microseconds
    replays: int  # queries, or parts of them, that were captured steps


@dataclasses.dataclass
class Row:
    """All rounds of a configuration."""

    configuration: Configuration  # what was measured
    rounds: list[Round] = dataclasses.field(default_factory=list)
    # The most memory of the GPU so far of the processes that ran it, see `Results.memory`; None if
    # it is not known.
    memory_mib: float | None = None
    failure: str = ""  # what went wrong; empty if nothing did

    def median(self, field: str) -> float:
        return float(statistics.median(self.values(field)))

    def values(self, field: str) -> list[float]:
        return [getattr(one, field) for one in self.rounds]

    @property
    def wrong(self) -> int:
        return sum(one.wrong for one in self.rounds)


@dataclasses.dataclass
class Results:
    """A run of the benchmark."""

    date: str  # when it began, as YYYY-MM-DD
    command: str  # its command line
    commit: str  # of the repository
    machine: dict[str, str]  # `cpu`, `cores`, `gpu`, `driver`
    emulated: bool  # whether the GPU was emulated: times mean nothing then
    seconds: float  # of each measurement
    size: str  # of the models, `small` or `full`
    memory: str  # what `Row.memory_mib` counts.
    versions: dict[str, str] = dataclasses.field(default_factory=dict)  # of frameworks, by peer
    # Why peers did not run, by name.
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)
    # What there was no time for, a sentence each.
    left_out: list[str] = dataclasses.field(default_factory=list)
    rows: list[Row] = dataclasses.field(default_factory=list)  # what was measured

    @property
    def measured(self) -> list[Row]:
        return [row for row in self.rows if row.rounds]

    @property
    def bad(self) -> list[Row]:
        """Rows of which something failed, or a result was wrong."""
        return [row for row in self.rows if row.failure or row.wrong]

    def save(self, path: pathlib.Path) -> None:
        """Writes the file, whole or not at all."""
        text = json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, indent=1)
        new = path.with_name(path.name + ".new")
        new.write_text(text + "\n", encoding="utf-8")
        new.replace(path)


def load(path: pathlib.Path) -> Results:
    """Reads a file of `Results.save`; raises a ResultsError, which names the wrong field."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ResultsError(f"{path} is no JSON: {error}") from error
    if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
        raise ResultsError(f"{path}: 'schema' is not {SCHEMA}: it is no file of this benchmark's")
    try:
        results: Results = _make(Results, data, "")
    except ResultsError as error:
        raise ResultsError(f"{path}: {error}") from error
    return results


def merge(runs: Sequence[Results]) -> Results:
    """Puts runs together, as one that was measured in parts: a configuration's rounds in one row.

    Raises ResultsError with the name of what differs: the kind of machine, or the size.
    """
    first = runs[0]
    for name in ("machine", "emulated", "size", "memory"):
        for other in runs[1:]:
            if getattr(other, name) != getattr(first, name):
                raise ResultsError(
                    f"runs cannot be put together: '{name}' is {getattr(first, name)!r} of one and"
                    f" {getattr(other, name)!r} of another"
                )
    rows: dict[Configuration, Row] = {}
    for row in (row for run in runs for row in run.rows):
        if (known := rows.get(row.configuration)) is None:
            rows[row.configuration] = dataclasses.replace(row, rounds=list(row.rounds))
        else:
            known.rounds += row.rounds
            known.memory_mib = max(known.memory_mib or 0.0, row.memory_mib or 0.0) or None
            known.failure = known.failure or row.failure
    return dataclasses.replace(
        first,
        date=", ".join(dict.fromkeys(run.date for run in runs)),
        command="; ".join(dict.fromkeys(run.command for run in runs)),
        commit=", ".join(dict.fromkeys(run.commit for run in runs)),
        versions={name: version for run in runs for name, version in run.versions.items()},
        skipped={name: why for run in runs for name, why in run.skipped.items()},
        left_out=[line for run in runs for line in run.left_out],
        rows=list(rows.values()),
    )


# What JSON may give for a field's type, where that is not the type alone.
_ALLOWED: dict[Any, Any] = {float: (int, float), float | None: (int, float, types.NoneType)}


def _make(kind: Any, data: Any, at: str) -> Any:
    """Makes what a type hint says, such as a dataclass, of JSON; an error names the field."""
    is_object = dataclasses.is_dataclass(kind)
    allowed = dict if is_object else typing.get_origin(kind) or kind
    allowed = _ALLOWED.get(kind, allowed)
    if not isinstance(data, allowed) or (isinstance(data, bool) and kind is not bool):
        name = getattr(kind, "__name__", kind)
        raise ResultsError(f"'{at}' is {data!r}, and should be {name}")
    if isinstance(data, list):
        (of,) = typing.get_args(kind)
        return [_make(of, one, f"{at}[{i}]") for i, one in enumerate(data)]
    if not is_object:
        return data
    hints, prefix = typing.get_type_hints(kind), f"{at}." if at else ""
    for field in dataclasses.fields(kind):
        optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if field.name not in data and not optional:
            raise ResultsError(f"'{prefix}{field.name}' is missing")
    for name in data:
        if name not in hints:
            raise ResultsError(f"'{prefix}{name}' is unknown")
    return kind(**{name: _make(hints[name], x, prefix + name) for name, x in data.items()})
