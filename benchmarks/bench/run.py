# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a sweep: workload after workload, the configurations of each in turn."""

import dataclasses
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence

from .fleet import Fleet, WorkerError
from .peers import REFERENCE, Peer
from .results import Results, Row
from .sweep import Configuration, Sweep, Team, configurations, order_of_round
from .workloads import Workload


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is measured."""

    seconds: float  # of each measurement
    rounds: int  # measurements of each configuration
    warm_seconds: float  # after which a configuration counts as warm, before its first measurement
    minutes: float  # after which nothing more is begun; what remains is shared among the workloads


@dataclasses.dataclass
class Run:
    """A run of the benchmark."""

    results: Results  # gets what is measured; each time that a workload is done, `save` is called
    peers: Sequence[Peer]  # that can run here
    sweep: Sweep  # what is swept
    effort: Effort  # how much is measured
    pythons: Mapping[str, str]  # as of Fleet
    variables: Mapping[str, str]  # as of Fleet
    folder: pathlib.Path  # for files of the workers
    say: Callable[[str], None]  # prints a line
    save: Callable[[], None]  # writes the results so far

    def all(self, workloads: Sequence[Workload]) -> None:
        """Measures workloads, each for its share of the time that is left."""
        self._began = time.monotonic()
        end = self._began + 60 * self.effort.minutes
        lists = {w.name: configurations(w, self.peers, self.sweep) for w in workloads}
        # Measurements, of which some may be left out.
        self._total = self.effort.rounds * sum(len(one) for one in lists.values())
        self._done = 0
        for i, workload in enumerate(workloads):
            share = (end - time.monotonic()) / (len(workloads) - i)
            with Fleet(self.results.size, self.pythons, self.variables, self.folder) as fleet:
                rows = {one: Row(one) for one in lists[workload.name]}
                self.results.rows += rows.values()
                self._workload(workload, fleet, rows, time.monotonic() + share)
            self.save()

    def _did(self, what: str) -> None:
        """Counts a measurement, and says how long the others will take."""
        self._done += 1
        each = (time.monotonic() - self._began) / self._done
        left = each * (self._total - self._done)
        duration = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
        self.say(f"[{self._done}/{self._total}, {duration} left] {what}")

    def _workload(
        self, workload: Workload, fleet: Fleet, rows: Mapping[Configuration, Row], end: float
    ) -> None:
        """Measures a workload until `end`, of time.monotonic()."""
        expected = self.folder / f"{workload.name}.npz"
        failed = self._start(workload, fleet, [one.team for one in rows], expected)
        for one, row in rows.items():
            row.failure = failed.get(one.team, "")
        for number in range(self.effort.rounds):
            took = self._round(number, fleet, rows, expected, end)
            left = self.effort.rounds - number - 1
            if left and time.monotonic() + took > end:
                self._total -= left * len(rows)
                self.results.left_out.append(
                    f"{workload.name}: {number + 1} of {self.effort.rounds} rounds"
                )
                break

    def _start(
        self, workload: Workload, fleet: Fleet, wanted: Sequence[Team], expected: pathlib.Path
    ) -> dict[Team, str]:
        """Starts all that run a workload, writes the expected results; returns why teams failed."""
        reference = Team(workload.name, REFERENCE.name, 1)
        teams = list(dict.fromkeys([reference, *wanted]))
        self.say(f"{workload.name} ({workload.title}): starting {len(teams)} kinds of processes")
        failed = fleet.start(teams)
        for team in teams:
            if team not in failed:
                try:
                    self.results.versions[team.peer] = fleet[team].make()
                    if team == reference:
                        fleet[team].reference(expected)
                except WorkerError as error:
                    failed[team] = str(error)
        if reference in failed:
            why = f"there is nothing to compare with: {REFERENCE.name}: {failed[reference]}"
            self.say(f"failed: {workload.name}: {why}")
            return dict.fromkeys(teams, why)
        for team, why in failed.items():
            self.say(f"failed: {team}: {why}")
        return failed

    def _round(
        self,
        number: int,
        fleet: Fleet,
        rows: Mapping[Configuration, Row],
        expected: pathlib.Path,
        end: float,
    ) -> float:
        """Measures each configuration once; returns the seconds of another round, all warm."""
        took = 0.0
        for one in order_of_round(list(rows), number):
            row = rows[one]
            no_time = number == 0 and time.monotonic() >= end
            if row.failure or no_time or (number > 0 and not row.rounds):
                self._total -= 1
                if no_time and not row.failure:
                    self.results.left_out.append(f"not measured: {one}")
            else:
                took += self._measure(fleet, row, expected)
        return took

    def _measure(self, fleet: Fleet, row: Row, expected: pathlib.Path) -> float:
        """Measures a configuration once; returns the seconds that took when it was warm."""
        one = row.configuration
        try:
            workers = fleet[one.team]
            workers.warm(one, self.effort.warm_seconds)
            began = time.monotonic()
            done = workers.measure(one, expected, self.effort.seconds)
        except WorkerError as error:
            row.failure = str(error)
            self._did(f"{one}: failed: {error}")
            return 0.0  # it is not measured again
        row.rounds.append(done)
        row.memory_mib = workers.memory_mib or None
        wrong = f", {done.wrong} WRONG" if done.wrong else ""
        self._did(f"{one}: {done.queries_per_second:,.0f}/s, p99 {done.p99_ms:.2f} ms{wrong}")
        return time.monotonic() - began
