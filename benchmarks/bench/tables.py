# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of what was measured, in Markdown and in a report, and what is faster or slower now."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Sequence

from .peers import PEERS
from .results import Results, Row
from .sweep import Configuration
from .workloads import WORKLOADS

# A change is beyond noise if it is more than what rounds of one run differ.
FASTER, SLOWER, NOISE = "faster", "slower", "within noise"
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
    """The setting of the most queries a second: of each workload, batch, clients and peer."""
    workloads, peers = list(WORKLOADS), list(PEERS)

    def case(row: Row) -> tuple[int, ...]:
        one = row.configuration
        team = workloads.index(one.team.workload), peers.index(one.team.peer)
        return team[0], one.batch, one.clients, team[1]

    return [
        max(rows, key=lambda row: row.median("queries_per_second"))
        for _, rows in itertools.groupby(sorted(results.measured, key=case), case)
    ]


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


@dataclasses.dataclass(frozen=True)
class Change:
    """What became of one configuration."""

    configuration: Configuration  # which
    ratio: float  # of queries a second, new to old, medians of the rounds
    # The lowest and the highest ratio that a round of one to a round of the other has.
    noise: tuple[float, float]
    # `FASTER` if all rounds are faster than all of the old ones, `SLOWER` if all are slower, or
    # else `NOISE`.
    verdict: str


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All changes."""

    changes: list[Change]  # of the configurations that both runs have
    only_old: int  # configurations that the new run has not
    only_new: int  # configurations that the old run had not
    # What else differs, so that the figures may not be comparable, a sentence each.
    notes: list[str]

    @property
    def slower(self) -> bool:
        """Whether anything is slower beyond noise."""
        return any(change.verdict == SLOWER for change in self.changes)

    def __str__(self) -> str:
        rows = [
            [str(c.configuration), f"{c.ratio:.2f}", "{:.2f} to {:.2f}".format(*c.noise), c.verdict]
            for c in self.changes
            if c.verdict != NOISE
        ]
        table = markdown(["configuration", "ratio", "of rounds", "verdict"], rows)
        count = Counter(change.verdict for change in self.changes)
        return "\n".join(
            [
                *(f"note: {note}" for note in self.notes),
                *([table] if rows else []),
                f"{len(self.changes)} compared: {count[FASTER]} faster, {count[SLOWER]} slower,"
                f" {count[NOISE]} within noise; {self.only_old} in the old run only,"
                f" {self.only_new} in the new one only",
            ]
        )


def compare(old: Results, new: Results) -> Comparison:
    """Compares two runs: what became of each configuration that both have measured."""
    before = {row.configuration: row for row in old.measured}
    after = {row.configuration: row for row in new.measured}
    notes = [
        f"{what}: {was!r} then, {now!r} now"
        for what, was, now in (
            *((name, old.machine.get(name), new.machine.get(name)) for name in ("gpu", "cores")),
            ("size", old.size, new.size),
            ("seconds of a measurement", old.seconds, new.seconds),
            ("emulated", old.emulated, new.emulated),
        )
        if was != now
    ]
    if min((len(row.rounds) for row in (*old.measured, *new.measured)), default=2) < 2:
        notes.append("some configurations have one round only, which shows no noise")
    return Comparison(
        [_change(before[one], after[one]) for one in after if one in before],
        len(before.keys() - after.keys()),
        len(after.keys() - before.keys()),
        notes,
    )


def _change(old: Row, new: Row) -> Change:
    was, now = old.values("queries_per_second"), new.values("queries_per_second")
    ratio = new.median("queries_per_second") / old.median("queries_per_second")
    noise = (min(now) / max(was), max(now) / min(was))
    verdict = NOISE
    if min(len(was), len(now)) > 1:  # one round shows no noise
        verdict = FASTER if noise[0] > 1 else SLOWER if noise[1] < 1 else NOISE
    return Change(new.configuration, ratio, noise, verdict)
