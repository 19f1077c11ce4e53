# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Which settings `tf.cuda.advise` measures, how often and for how long."""

import dataclasses
import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from tensorflow.python.multistream import advice_process, advice_report
from tensorflow.python.multistream.advice_process import (
    NOT_CAPTURED,
    SERVING,
    SIGNATURE,
    ChildEndedError,
    ChildError,
    Turn,
)

# Of the budget, for the first pass over all settings.
_FIRST_PART = 0.4
_TURNS = 5
# How many go on to be measured in turns with stock, by throughput and by latency.
_FINALISTS = 2
# Larger numbers of groups are not tried once one was so much slower than the best before.
_SLOWER = 0.97


class Measurer(Protocol):
    """What `advice_process.Child` is for the search."""

    @property
    def ready(self) -> advice_process.Ready:
        """What it says once it has loaded the model."""

    def measure(self, call: str, threads: int, seconds: float) -> Turn:
        """Calls the model for a while."""

    def close(self) -> None:
        """Ends the process."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """Variables, and their name in reports."""

    name: str
    variables: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is timed: a setting, a way to call, and a number of threads."""

    setting: Setting
    call: str
    threads: int


_STOCK = Setting(advice_report.STOCK)


def _grouped(count: int) -> Setting:
    return Setting(f"{count} groups", (("TF_GPU_STREAM_GROUP_COUNT", str(count)),))


def _captured(count: int) -> Setting:
    capture = ("TF_MULTI_STREAM_CAPTURE", "auto")
    if count == 1:
        return Setting("captured", (capture,))
    return Setting(f"{count} groups, captured", (*_grouped(count).variables, capture))


def _split(count: int, policy: str) -> Setting:
    variables = (*_grouped(count).variables, ("TF_MULTI_STREAM_POLICY", policy))
    return Setting(f"{count} groups, policy {policy}", variables)


class Search:
    """A short pass over all settings, then the best of them in turns with stock.

    Two processes are stock TensorFlow, whose results and times show what is chance. Those of
    settings that are left behind end at once, as they have memory of the GPU.

    Args:
      start: starts a process with variables, for a setting's name.
      threads: as of `advise`, like the others.
      groups: see there.
      policies: see there.
      seconds: see there.
      progress: see there.
    """

    def __init__(
        self,
        start: Callable[[dict[str, str], str], Measurer],
        threads: Sequence[int],
        groups: Sequence[int],
        policies: Sequence[str],
        seconds: float,
        progress: bool,
    ) -> None:
        self._start_process = start
        self._threads = sorted(set(threads))
        # More groups than threads have nothing to do.
        self._groups = sorted(count for count in set(groups) if count <= max(threads))
        self._policies = policies if 1 in threads and max(self._groups, default=1) > 1 else ()
        self._seconds = seconds
        self._progress = progress
        self._calls = [SIGNATURE, SERVING]
        self._first: dict[Entry, Turn] = {}
        self._turns: dict[Entry, list[Turn]] = {}
        self._failed: set[Setting] = set()
        self._failures: list[str] = []
        self._notes: list[str] = []
        self._running: dict[Setting, Measurer] = {}
        self._stock: list[Measurer] = []

    def run(self, notes: Sequence[str] = ()) -> advice_report.Measured:
        """Measures.

        Args:
          notes: what else the report says.

        Returns:
          All that was measured.

        Raises:
          RuntimeError: a process with stock TensorFlow failed.
        """
        try:
            self._pass_over_all()
            self._measure_in_turns()
        except ChildError as error:
            raise RuntimeError(f"tf.cuda.advise: {error}") from error
        finally:
            for child in [*self._running.values(), *self._stock]:
                child.close()
        found = {
            **{entry: [turn] for entry, turn in self._first.items()},
            **{e: turns for e, turns in self._turns.items() if e.setting not in self._failed},
        }
        varies = self._stock_varies()
        return advice_report.Measured(
            rows=tuple(
                advice_report.row_of(
                    entry.setting.name,
                    entry.call,
                    dict(entry.setting.variables),
                    entry.threads,
                    turns,
                    varies,
                )
                for entry, turns in found.items()
            ),
            failures=tuple(self._failures),
            notes=(*notes, *self._notes),
            stock_varies=varies,
            seconds=self._seconds,
            cores=len(os.sched_getaffinity(0)),
        )

    def _say(self, what: str) -> None:
        if self._progress:
            sys.stderr.write(f"advise: {what}\n")
            sys.stderr.flush()

    def _start(self, setting: Setting) -> Measurer:
        return self._start_process(dict(setting.variables), setting.name)

    def _pass_over_all(self) -> None:
        each = len(self._threads)
        several = [count for count in self._groups if count > 1]
        entries = 2 * each + 3 * each * len(several) + 2 * (1 in self._groups) + len(self._policies)
        slot = _FIRST_PART * self._seconds / entries
        self._say("two processes of stock TensorFlow")
        self._stock.append(self._start(_STOCK))
        self._stock.append(self._start(_STOCK))
        ready = [child.ready for child in self._stock]  # none loads while another one measures
        if ready[0].emulated:
            self._notes.append("The GPU is emulated on the CPU: results count, times mean nothing.")
        for threads in self._threads:
            entry = Entry(_STOCK, SIGNATURE, threads)
            self._first[entry] = self._stock[0].measure(SIGNATURE, threads, slot)
        try:
            for threads in self._threads:
                entry = Entry(_STOCK, SERVING, threads)
                self._first[entry] = self._stock[0].measure(SERVING, threads, slot)
        except ChildEndedError:
            raise
        except ChildError as error:
            self._notes.append(f"tf.cuda.serving_callable was left out: {error}")
            self._calls.remove(SERVING)
        if 1 in self._groups and 1 in self._threads:
            alone = _captured(1)
            self._try(alone, [(Entry(alone, call, 1), call) for call in self._calls], slot)
        best = 0.0
        for count in several:
            self._try(_captured(count), self._entries_of(count), slot)
            rate = self._best_rate(_captured(count), _grouped(count))
            if 0 < rate < _SLOWER * best:
                break
            best = max(best, rate)
        count = max(several, key=lambda count: self._best_rate(_grouped(count)), default=1)
        for policy in self._policies:
            setting = _split(count, policy)
            self._try(setting, [(Entry(setting, SIGNATURE, 1), SIGNATURE)], slot)

    def _entries_of(self, count: int) -> list[tuple[Entry, str]]:
        """What a process with captured steps measures, and how it is asked to call."""
        entries = [
            (Entry(_grouped(count), SIGNATURE, threads), NOT_CAPTURED) for threads in self._threads
        ]
        return entries + [
            (Entry(_captured(count), call, threads), call)
            for call in self._calls
            for threads in self._threads
        ]

    def _best_rate(self, *settings: Setting) -> float:
        """Calls a second in the first pass; 0 if they failed."""
        rates = [t.calls_per_second for e, t in self._first.items() if e.setting in settings]
        return max(rates, default=0.0)

    def _try(self, setting: Setting, entries: Sequence[tuple[Entry, str]], slot: float) -> None:
        """Measures what one process can; a failure is the setting's, and the search goes on."""
        self._say(setting.name)
        child = self._running[setting] = self._start(setting)
        for entry, call in entries:
            if entry.setting in self._failed:
                continue
            try:
                self._first[entry] = child.measure(call, entry.threads, slot)
            except ChildError as error:
                self._fail(entry.setting, error)
                if isinstance(error, ChildEndedError):
                    break
        kept = {entry.setting for entry in self._finalists()}
        for other in list(self._running):
            if other not in kept:
                self._running.pop(other).close()

    def _fail(self, setting: Setting, error: ChildError) -> None:
        self._failed.add(setting)
        self._failures.append(str(error))

    def _stock_varies(self) -> bool:
        """Whether stock TensorFlow has given other bits so far."""
        stock = [turn for entry, turn in self._first.items() if _is_stock(entry)]
        stock += [t for entry, turns in self._turns.items() if _is_stock(entry) for t in turns]
        return any(child.ready.differing for child in self._stock) or any(
            turn.differing for turn in stock
        )

    def _finalists(self) -> list[Entry]:
        """What goes on: the best of the settings and calls by throughput, and by latency.

        So does what needs no variable: what else is advised should be faster than that.
        """
        varies = self._stock_varies()
        others = {entry: turn for entry, turn in self._first.items() if not _is_stock(entry)}
        wrong = {e.setting for e, t in others.items() if (t.far if varies else t.differing)}
        others = {e: t for e, t in others.items() if e.setting not in wrong | self._failed}
        by_rate = sorted(others, key=lambda entry: -others[entry].calls_per_second)
        by_time = sorted(
            (entry for entry in others if entry.threads == 1), key=lambda e: others[e].p50_ms
        )
        found: list[Entry] = []
        for ranked in (by_rate, by_time):
            ways: set[tuple[Setting, str]] = set()
            for entry in ranked:
                way = (entry.setting, entry.call)
                if way not in ways and (len(ways) < _FINALISTS or entry.setting == _STOCK):
                    found.append(entry)
                ways.add(way)
        return list(dict.fromkeys(found))

    def _measure_in_turns(self) -> None:
        finalists = self._finalists()
        for setting in dict.fromkeys(entry.setting for entry in finalists):
            if setting != _STOCK and setting not in self._running:
                self._say(f"{setting.name}, by itself")
                self._running[setting] = self._start(setting)
                try:
                    _ = self._running[setting].ready
                except ChildError as error:
                    self._fail(setting, error)
        stock = {entry: turn for entry, turn in self._first.items() if _is_stock(entry)}
        entries = [max(stock, key=lambda entry: stock[entry].calls_per_second)]
        entries += [entry for entry in stock if entry.threads == 1 and entry not in entries]
        entries += finalists
        slot = (1 - _FIRST_PART) * self._seconds / (_TURNS * len(entries))
        self._say(f"{len(entries)} of them in turns")
        # So that none always follows the same one.
        order = random.Random(1)
        for turn in range(_TURNS):
            for entry in order.sample(entries, len(entries)):
                if entry.setting not in self._failed:
                    self._measure_turn(entry, turn, slot)

    def _measure_turn(self, entry: Entry, turn: int, slot: float) -> None:
        child = self._running.get(entry.setting) or self._stock[turn % len(self._stock)]
        try:
            done = child.measure(entry.call, entry.threads, slot)
        except ChildError as error:
            if entry.setting == _STOCK:
                raise
            self._fail(entry.setting, error)
        else:
            self._turns.setdefault(entry, []).append(done)


def _is_stock(entry: Entry) -> bool:
    return entry.setting == _STOCK and entry.call == SIGNATURE
