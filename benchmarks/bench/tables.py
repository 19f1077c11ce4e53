# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of what was measured, in Markdown and, of the same rows, in a report."""

from __future__ import annotations

from collections.abc import Sequence

from .peers import PEERS
from .results import Results, Row, best
from .workloads import WORKLOADS

COLUMNS = (
    "workload",
    "batch",
    "clients",
    "peer",
    "best setting",
    "a second",
    "lowest to highest",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "max ms",
    "CPU us",
    "memory MiB",
    "wrong",
)


def best_rows(results: Results) -> list[Row]:
    """The best setting of each peer, for each workload, batch and number of clients."""
    cases: dict[tuple[str, int, int, str], list[Row]] = {}
    for row in results.measured:
        one = row.configuration
        key = (one.team.workload, one.batch, one.clients, one.team.peer)
        cases.setdefault(key, []).append(row)
    order, peers = list(WORKLOADS), list(PEERS)
    found = [first for rows in cases.values() if (first := best(rows)) is not None]
    return sorted(
        found,
        key=lambda row: (
            order.index(row.configuration.team.workload),
            row.configuration.batch,
            row.configuration.clients,
            peers.index(row.configuration.team.peer),
        ),
    )


def setting(row: Row) -> str:
    """The groups or copies and the way to call of a row, where the peer has several."""
    one = row.configuration
    peer = PEERS[one.team.peer]
    parts = [f"{one.team.parallel} {peer.parallel}"] if peer.parallel else []
    parts += [one.call] if len(peer.calls) > 1 else []
    return ", ".join(parts).replace("1 groups", "1 group").replace("_", " ")


def cells(row: Row) -> list[str]:
    """The cells of a row, of `COLUMNS`."""
    one = row.configuration
    rates = row.values("queries_per_second")
    memory = row.memory_mib
    return [
        one.team.workload,
        str(one.batch),
        str(one.clients),
        one.team.peer,
        setting(row),
        f"{row.median('queries_per_second'):,.0f}",
        f"{min(rates):,.0f} to {max(rates):,.0f}",
        *(f"{row.median(name):.3f}" for name in ("p50_ms", "p95_ms", "p99_ms")),
        f"{max(row.values('max_ms')):.3f}",
        f"{row.median('cpu_us'):,.0f}",
        "" if memory is None else f"{memory:,.1f}" if memory < 10 else f"{memory:,.0f}",
        str(row.wrong),
    ]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def best_table(results: Results) -> str:
    """The table of the best setting of each peer."""
    return markdown(COLUMNS, [cells(row) for row in best_rows(results)])


def wrong_table(results: Results) -> str:
    """What failed, and what gave wrong results, a line each."""
    lines = [
        f"{row.configuration.team}: {row.failure}"
        if row.failure
        else f"{row.configuration}: {row.wrong} wrong results"
        for row in results.bad
    ]
    return "\n".join(dict.fromkeys(lines))
