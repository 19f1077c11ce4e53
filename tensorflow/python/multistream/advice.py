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
"""`tf.cuda.advise`: measures a model, and says which variables to export for it."""

import contextlib
import dataclasses
import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from tensorflow.python.eager import context
from tensorflow.python.framework import config
from tensorflow.python.multistream import advice_model, advice_process, advice_report
from tensorflow.python.multistream.advice_process import ChildEndedError, ChildError, Turn
from tensorflow.python.multistream.advice_report import SERVING, SIGNATURE, Advice

THREADS = (1, 4, 8, 16)
GROUPS = (1, 2, 4, 8, 16)
# "cost" tries the plans of the other policies, too (docs/policies.md).
POLICIES = ("cost",)
SECONDS = 60.0
MAX_INT = 9

_ALL_POLICIES = ("embedding", "full_graph", "cost")
_LONGEST = 3600
# Of the budget, for the first pass over all settings.
_FIRST_PART = 0.4
_TURNS = 5
# How many go on to be measured in turns with stock, by throughput and by latency.
_FINALISTS = 2
# Larger numbers of groups are not tried once one was so much slower than the best before.
_SLOWER = 0.97
_NOT_CAPTURED = "signature, not captured"


def advise(
    fn: Any,
    example: Any = None,
    *,
    signature: str = advice_model.SIGNATURE,
    seconds: float = SECONDS,
    threads: Sequence[int] = THREADS,
    groups: Sequence[int] = GROUPS,
    policies: Sequence[str] = POLICIES,
    batch: int = 1,
    max_int: int = MAX_INT,
    progress: bool = True,
) -> Advice:
    """Measures a model with several settings, and says which variables to export for it.

    ```python
    print(tf.cuda.advise("path/to/saved_model"))
    print(tf.cuda.advise(model, [images]))
    ```

    It measures stock TensorFlow, stream groups, captured steps, `tf.cuda.serving_callable` and
    policies, each in a process of its own and from several threads; then the best again, in turns
    with stock. Every result is compared with stock TensorFlow's.

    Args:
      fn: a SavedModel's directory or signature, a concrete function, a `tf.function`, a `tf.Module`
        that can be called, or a Keras model. What is no directory is saved in a temporary one. On
        a GPU, memory must grow in this process (`TF_FORCE_GPU_ALLOW_GROWTH=true`).
      example: what to call it with: arrays, or tensors, for its arguments, by name or as a
        sequence (of a directory's signature in the order of their names). None: random numbers, if
        it is known what it takes.
      signature: of a directory, which one to call.
      seconds: how long to measure, all in all, 1 to 3600. The processes need more time to start.
      threads: how many threads call at once.
      groups: which numbers of stream groups to try, in ascending order.
      policies: which to try, of those of `tf.cuda.auto_stream`, for one thread.
      batch: of random inputs, the size of unknown dimensions.
      max_int: of random inputs, the largest integer.
      progress: whether to say on stderr what is measured.

    Returns:
      The advice. Prints as a report.

    Raises:
      FileNotFoundError: there is no such directory, or no SavedModel in it.
      TypeError: `fn` is none of these; or the example has other arguments or types.
      ValueError: an argument is not one that is allowed, an array of the example has another shape,
        there is no such signature, or `fn` cannot be saved.
      RuntimeError: there is no GPU, its memory is taken by this process, or the process with stock
        TensorFlow failed; the message has its last lines.
    """
    threads, groups = tuple(threads), tuple(groups)
    _check(seconds, threads, groups, policies, batch, max_int)
    with tempfile.TemporaryDirectory(prefix="advise") as temporary:
        folder = Path(temporary)
        if isinstance(fn, str | os.PathLike):
            directory = os.fspath(fn)
        else:
            directory, signature = str(folder / "model"), advice_model.SIGNATURE
            example = advice_model.save_function(fn, example, directory)
        specs = advice_model.signature_specs(directory, signature)
        if example is None:
            queries = advice_model.random_queries(specs, batch, max_int)
        else:
            queries = [advice_model.example_query(specs, example)]
        _check_memory()
        advice_process.write_job(folder, directory, signature, queries)

        def start(variables: dict[str, str], name: str) -> advice_process.Child:
            return advice_process.Child(folder, variables, name)

        kind = "random numbers" if example is None else "the example"
        notes = [f"Inputs: {kind}, {advice_model.text_of(queries)}"]
        search = Search(start, threads, groups, policies, seconds, progress)
        return advice_report.advice_of(search.run(notes))


def _check(
    seconds: float,
    threads: Sequence[int],
    groups: Sequence[int],
    policies: Sequence[str],
    batch: int,
    max_int: int,
) -> None:
    if not 1 <= seconds <= _LONGEST:
        raise ValueError(f"tf.cuda.advise: seconds={seconds!r} is not from 1 to {_LONGEST}")
    for name, values, most in (("threads", threads, 256), ("groups", groups, 64)):
        for value in values:
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(
                    f"tf.cuda.advise: {name} has {value!r}, which is not a whole number from 1 to "
                    f"{most}"
                )
    if not threads:
        raise ValueError("tf.cuda.advise: threads is empty: give at least one number")
    for policy in policies:
        if policy not in _ALL_POLICIES:
            raise ValueError(
                f"tf.cuda.advise: policies has {policy!r}; there are {', '.join(_ALL_POLICIES)}"
            )
    for name, value in (("batch", batch), ("max_int", max_int)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"tf.cuda.advise: {name}={value!r} is not a whole number above 0")


def _check_memory() -> None:
    """Other processes find no memory if this one has taken all, as TensorFlow does by default."""
    if os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "").lower() in ("true", "1"):
        return
    if os.environ.get("TF_MULTI_STREAM_EMULATED_GPUS", "").strip() not in ("", "0"):
        return
    if context.context_safe() is None or not context.context()._initialized:
        return
    for gpu in config.list_physical_devices("GPU")[:1]:
        if not config.get_memory_growth(gpu) and not config.get_logical_device_configuration(gpu):
            raise RuntimeError(
                "tf.cuda.advise: this process has taken all memory of the GPU, and other processes "
                "measure. Set TF_FORCE_GPU_ALLOW_GROWTH=true before TensorFlow is imported, or "
                "save the model and run python -m tensorflow.python.multistream.advise DIRECTORY."
            )


class Measurer(Protocol):
    """What `advice_process.Child` is for the search."""

    ready: advice_process.Ready

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
        ready = [child.ready for child in self._stock]
        found = {entry: [turn] for entry, turn in self._first.items()} | self._turns
        varies = any(x.differing for x in ready) or any(
            turn.differing for entry in found if _is_stock(entry) for turn in found[entry]
        )
        if ready[0].emulated:
            self._notes.append("The GPU is emulated on the CPU: results count, times mean nothing.")
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
        self._stock = [self._start(_STOCK)]
        self._stock.append(self._start(_STOCK))
        for threads in self._threads:
            self._measure_first(self._stock[0], Entry(_STOCK, SIGNATURE, threads), slot)
        try:
            for threads in self._threads:
                self._measure_first(self._stock[0], Entry(_STOCK, SERVING, threads), slot)
        except ChildEndedError:
            raise
        except ChildError as error:
            self._notes.append(f"tf.cuda.serving_callable was left out: {error}")
            self._calls.remove(SERVING)
        if 1 in self._groups and 1 in self._threads:
            entries_of_one = [(Entry(_captured(1), call, 1), call) for call in self._calls]
            self._try(_captured(1), entries_of_one, slot)
        best = 0.0
        for count in several:
            self._try(_captured(count), self._entries_of(count), slot)
            rates = [
                turn.calls_per_second
                for entry, turn in self._first.items()
                if entry.setting in (_captured(count), _grouped(count))
            ]
            if max(rates, default=0.0) < _SLOWER * best:
                break
            best = max(rates, default=0.0)
        count = self._best_count(several)
        for policy in self._policies:
            setting = _split(count, policy)
            self._try(setting, [(Entry(setting, SIGNATURE, 1), SIGNATURE)], slot)

    def _entries_of(self, count: int) -> list[tuple[Entry, str]]:
        """What a process with captured steps measures, and how it is asked to call."""
        entries = [
            (Entry(_grouped(count), SIGNATURE, threads), _NOT_CAPTURED) for threads in self._threads
        ]
        return entries + [
            (Entry(_captured(count), call, threads), call)
            for call in self._calls
            for threads in self._threads
        ]

    def _best_count(self, several: Sequence[int]) -> int:
        rates = {
            count: max(
                (t.calls_per_second for e, t in self._first.items() if e.setting == setting),
                default=0.0,
            )
            for count in several
            for setting in [_grouped(count)]
        }
        return max(rates, key=lambda count: rates[count], default=1)

    def _try(self, setting: Setting, entries: Sequence[tuple[Entry, str]], slot: float) -> None:
        """Measures what one process can; a failure is the setting's, and the search goes on."""
        self._say(setting.name)
        try:
            self._running[setting] = self._start(setting)
            failed = None
            for entry, call in entries:
                if call != failed:
                    failed = self._measure_or_note(self._running[setting], entry, call, slot)
        except ChildError as error:
            self._failures.append(str(error))
        kept = {entry.setting for entry in self._finalists()}
        for other in list(self._running):
            if other not in kept:
                self._running.pop(other).close()

    def _measure_or_note(self, child: Measurer, entry: Entry, call: str, slot: float) -> str | None:
        """Returns the call if it failed."""
        try:
            self._first[entry] = child.measure(call, entry.threads, slot)
        except ChildEndedError:
            raise
        except ChildError as error:
            self._failures.append(str(error))
            return call
        return None

    def _measure_first(self, child: Measurer, entry: Entry, slot: float) -> None:
        self._first[entry] = child.measure(entry.call, entry.threads, slot)

    def _finalists(self) -> list[Entry]:
        """What goes on: the best of the settings and calls by throughput, and by latency."""
        others = {e: t for e, t in self._first.items() if not _is_stock(e)}
        by_rate = sorted(others, key=lambda entry: -others[entry].calls_per_second)
        by_time = sorted(
            (entry for entry in others if entry.threads == 1), key=lambda e: others[e].p50_ms
        )
        found: list[Entry] = []
        for ranked in (by_rate, by_time):
            ways: set[tuple[Setting, str]] = set()
            for entry in ranked:
                if len(ways) < _FINALISTS and (entry.setting, entry.call) not in ways:
                    ways.add((entry.setting, entry.call))
                    found.append(entry)
        return list(dict.fromkeys(found))

    def _measure_in_turns(self) -> None:
        finalists = self._finalists()
        for setting in {entry.setting for entry in finalists} - self._running.keys() - {_STOCK}:
            self._say(f"{setting.name}, by itself")
            try:
                self._running[setting] = self._start(setting)
            except ChildError as error:
                self._failures.append(str(error))
        stock = {entry: turn for entry, turn in self._first.items() if _is_stock(entry)}
        entries = [max(stock, key=lambda entry: stock[entry].calls_per_second)]
        entries += [entry for entry in stock if entry.threads == 1 and entry not in entries]
        entries += [e for e in finalists if e.setting == _STOCK or e.setting in self._running]
        slot = (1 - _FIRST_PART) * self._seconds / (_TURNS * len(entries))
        self._say(f"{len(entries)} of them in turns")
        # So that none always follows the same one.
        order = random.Random(1)
        for turn in range(_TURNS):
            for entry in order.sample(entries, len(entries)):
                child = self._running.get(entry.setting) or self._stock[turn % len(self._stock)]
                with self._only_stock_must_not_fail(entry, entries):
                    done = child.measure(entry.call, entry.threads, slot)
                    self._turns.setdefault(entry, []).append(done)

    @contextlib.contextmanager
    def _only_stock_must_not_fail(self, entry: Entry, entries: list[Entry]) -> Any:
        try:
            yield
        except ChildError as error:
            if entry.setting == _STOCK:
                raise
            self._failures.append(str(error))
            self._turns.pop(entry, None)
            entries.remove(entry)


def _is_stock(entry: Entry) -> bool:
    return entry.setting == _STOCK and entry.call == SIGNATURE
