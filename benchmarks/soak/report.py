# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of a soak: one table, and all problems."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from draw import BRANCHES, DEPTH, GROUP_WITH_SMS, KINDS, Round
from watcher import LIMITS, MEBI, Growth, growth

# Seconds at the start of a round that do not count for the slowest one.
WARM_UP = 5
# Kinds of work that use all groups: whole steps or, at node level, branches with scopes.
SPREAD = ("function", "session", "saved_model")


@dataclasses.dataclass
class Outcome:
    """The outcome of a round."""

    round: Round
    # Of each kind of work, the fields of tally.Counts.
    counts: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    # Of the process, the fields of watcher.Sample.
    samples: list[dict[str, float]] = dataclasses.field(default_factory=list)
    # Problems of the round as a whole.
    problems: list[str] = dataclasses.field(default_factory=list)
    # Steps that each stream group started; at node level the leader starts all.
    steps_of_groups: list[int] = dataclasses.field(default_factory=list)
    # The most memory that each stream group has used.
    peak_bytes_of_groups: list[int] = dataclasses.field(default_factory=list)
    # When the load began and ended, in seconds as in `counts` and `samples`.
    load: tuple[float, float] = (0.0, 0.0)

    def growth(self) -> dict[str, Growth]:
        """How much each sampled figure has grown; empty if the round was too short to say."""
        samples = [s for s in self.samples if self.load[0] <= s["seconds"] <= self.load[1]]
        seconds = [sample["seconds"] for sample in samples]
        found = {name: growth(seconds, [s[name] for s in samples]) for name in LIMITS}
        return {name: grown for name, grown in found.items() if grown is not None}

    def failures(self) -> list[str]:
        """All problems of the round, a sentence each."""
        failures = list(self.problems)
        for kind, counts in self.counts.items():
            if counts["wrong"] or counts["unexpected"]:
                failures.append(
                    f"{kind}: {counts['wrong']} wrong, {counts['unexpected']} unexpected errors"
                )
                failures += [f"{kind}: {example}" for example in counts["examples"]]
            if not counts["results"]:
                failures.append(f"{kind}: no result at all")
        for name, grown in self.growth().items():
            if grown.exceeds(LIMITS[name]):
                failures.append(
                    f"{grown.in_all:.0f} {LIMITS[name].what} more at the end,"
                    f" {grown.per_minute:.1f} a minute; {LIMITS[name].per_minute:g} are allowed"
                )
        if any(kind in SPREAD for kind in self.counts):
            steps, used = list(self.steps_of_groups), list(self.peak_bytes_of_groups)
            apart = "TF_GPU_STREAM_GROUP_SMS" in self.round.settings
            if apart and not self.round.node_level and "pinned" not in self.counts:
                used.pop(GROUP_WITH_SMS)
                if unnamed := steps.pop(GROUP_WITH_SMS):
                    failures.append(f"{unnamed} steps ran on a group that no call has named")
            if not self.round.node_level and not all(steps):
                failures.append(f"a stream group ran nothing: steps {self.steps_of_groups}")
            if self.round.node_level:
                used = used[: BRANCHES * DEPTH]
            # A policy decides how many groups it uses.
            if not self.round.policy and not all(used):
                failures.append(f"a stream group used no memory: {self.peak_bytes_of_groups}")
        return failures


def rates(by_second: Mapping[str, int], load: tuple[float, float]) -> list[int]:
    """Results in each whole second of the load (its begin and end) after the warm-up."""
    first, end = int(load[0]) + 1 + WARM_UP, int(load[1])
    return [by_second.get(str(second), 0) for second in range(first, end)]


# Columns of the table that are sums, and what `Counts` calls them.
SUMS = {
    "steps": "steps",
    "results": "results",
    "wrong": "wrong",
    "errors as expected": "expected_errors",
    "unexpected": "unexpected",
}


def table(outcomes: Sequence[Outcome]) -> str:
    """The table of a soak, a line for each kind of work and one for all."""

    def row(kind: str, counts: Sequence[Mapping[str, Any]], seconds: Sequence[int]) -> list[str]:
        return [
            kind,
            *(f"{sum(c[name] for c in counts):,}" for name in SUMS.values()),
            *((f"{min(seconds)}", f"{statistics.median(seconds):g}") if seconds else ("", "")),
            f"{max((c['longest_gap'] for c in counts), default=0):.1f}",
        ]

    head = ["work", *SUMS, "results/s: slowest second", "median", "longest gap s", "rounds"]
    rows = []
    for kind in KINDS:
        having = [outcome for outcome in outcomes if kind in outcome.counts]
        if having:
            counts = [outcome.counts[kind] for outcome in having]
            seconds = [n for o in having for n in rates(o.counts[kind]["by_second"], o.load)]
            rows.append([*row(kind, counts, seconds), f"{len(having)}"])
    everything = [c for outcome in outcomes for c in outcome.counts.values()]
    rows.append([*row("all", everything, []), f"{len(outcomes)}"])
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def growth_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The growth of each figure of the processes, a line each."""
    lines = []
    for name, limit in LIMITS.items():
        grown = [(o.growth()[name], o) for o in outcomes if name in o.growth()]
        values = [sample[name] for outcome in outcomes for sample in outcome.samples]
        if not grown:
            lines.append(f"{limit.what}: rounds were too short to say whether they grow")
            continue
        most, where = max(grown, key=lambda pair: pair[0].per_minute)
        lines.append(
            f"{limit.what}: {statistics.median(g.per_minute for g, _ in grown):+.1f} a minute"
            f" (median of {len(grown)} rounds), {most.per_minute:+.1f} at most (round"
            f" {where.round.number}, {most.in_all:+.1f} in all, {'' if most.steady else 'not '}"
            f"steady); {limit.per_minute:g} steady are allowed; most at once {max(values):.0f}"
        )
    return lines


def report(outcomes: Sequence[Outcome], seconds: float) -> str:
    """Everything that is printed at the end of a soak that took so many seconds."""
    lines = [table(outcomes), ""]
    if ran := [outcome for outcome in outcomes if outcome.steps_of_groups]:
        steps = [sum(of_group) for of_group in zip(*(o.steps_of_groups for o in ran), strict=True)]
        lines.append(f"steps of {len(steps)} stream groups: {', '.join(f'{n:,}' for n in steps)}")
    for level, name in ((False, "graph"), (True, "node")):
        if peaks := [o.peak_bytes_of_groups for o in ran if o.round.node_level == level]:
            most = [f"{max(of_group) / MEBI:.1f}" for of_group in zip(*peaks, strict=True)]
            lines.append(f"most MiB in use by each at {name} level: {', '.join(most)}")
    lines += growth_lines(outcomes)
    failed = [outcome for outcome in outcomes if outcome.failures()]
    for outcome in failed:
        lines += ["", f"FAILED: {outcome.round}"]
        lines += [f"  - {failure}" for failure in outcome.failures()]
    lines += [
        "",
        f"{len(outcomes)} rounds in {seconds / 60:.1f} minutes, {len(failed)} of them failed",
    ]
    return "\n".join(lines)
