# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.advise`: the settings that are measured, and the report about them."""

import contextlib
import dataclasses
import os
import pickle
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tensorflow.python.multistream.advise import model
from tensorflow.python.multistream.advise.process import (
    SERVING,
    SIGNATURE,
    Child,
    ChildError,
    Turn,
    distance,
)

THREADS = 16
SECONDS = 15.0

_TURNS = 5
_STOCK = "stock"
_LEAST_GAIN = 1.03  # a smaller gain is not worth a variable
_FEWEST_CALLS = 5  # the figures of a turn with fewer calls mean nothing

# Advice for a reason of `tf.cuda.capture_report`: that of the first pattern found in the reason.
_WHAT_TO_DO = {
    "on the host$": "TensorFlow keeps int32 on the host: make the value int64, or a constant",
    "[Rr]andom": "draw random numbers outside the function, and pass them as an argument",
    "lazy_compilation": "export TF_XLA_FLAGS=--tf_xla_enable_lazy_compilation=false as well",
    "an axis or a size": "make the value a constant of the program",
    "CAPTURE_MB": "raise TF_MULTI_STREAM_CAPTURE_MB",
    "first of its shapes": "set TF_MULTI_STREAM_CAPTURE_BATCHES and _LENGTHS, which pad",
    "^in pieces": "nothing, if few launches are left: the rest of the graph is captured",
    "": "split the function at this op, and decorate the parts with tf.cuda.captured",
}


@dataclasses.dataclass(frozen=True)
class AdviceRow:
    """The speed of a model with one setting and number of threads: medians of turns.

    Attributes:
      setting: the setting's name; "stock" has none of the runtime's variables.
      variables: environment variables to export for the setting.
      threads: how many threads call at once.
      calls: number of calls in the turn with the fewest.
      calls_per_second: of all threads.
      lowest: calls a second in the slowest turn.
      highest: calls a second in the fastest turn.
      p50_ms: the median of a call's time, in milliseconds.
      p99_ms: the 99th percentile, in milliseconds.
      wrong: number of results that differ from stock TensorFlow's.
      in_the_way: why most steps were not replayed, if the setting captures steps.
    """

    setting: str
    variables: dict[str, str]
    threads: int
    calls: int
    calls_per_second: float
    lowest: float
    highest: float
    p50_ms: float
    p99_ms: float
    wrong: int
    in_the_way: str


@dataclasses.dataclass(frozen=True)
class Advice:
    """What `tf.cuda.advise` returns. Prints as a table that says what to export.

    Attributes:
      rows: the measurements.
      variables: environment variables to export: the best for all threads, or if none is faster
        there, the best for one thread; empty if no setting is faster.
      gain: calls a second with these variables divided by stock TensorFlow's; 1.0 without any.
      errors: settings that failed or gave wrong results.
      text: the report.
    """

    rows: tuple[AdviceRow, ...]
    variables: dict[str, str]
    gain: float
    errors: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


class _Setting(NamedTuple):
    name: str
    variables: dict[str, str]
    call: str = SIGNATURE


def _settings(groups: Sequence[int]) -> list[_Setting]:
    """The settings: stock first, then in the order of how much a program has to change."""
    counts = {f"{n} groups": {"TF_GPU_STREAM_GROUP_COUNT": str(n)} for n in groups}
    grouped = {name: {**x, "TF_MULTI_STREAM_CAPTURE": "marked"} for name, x in counts.items()}
    captured = {
        f"{name}, captured": {**variables, "TF_MULTI_STREAM_CAPTURE": "auto"}
        for name, variables in {"1 group": {}, **counts}.items()
    }
    served = [_Setting(f"{name}, {SERVING}", x, SERVING) for name, x in captured.items()]
    return [_Setting(*x) for x in {_STOCK: {}, **grouped, **captured}.items()] + served


def advise(
    function: Any,
    example: Any = None,
    *,
    signature: str = model.SIGNATURE,
    batch: int = 1,
    threads: int = THREADS,
    groups: Sequence[int] = (4, 8),
    seconds: float = SECONDS,
) -> Advice:
    """Measures a model with several settings, and says which variables to export.

    ```python
    print(tf.cuda.advise("path/to/saved_model"))
    print(tf.cuda.advise(model, [images]))
    ```

    Stock TensorFlow, stream groups, captured steps and `tf.cuda.serving_callable` are measured in
    turns, each setting in a process of its own, from one thread and from several. Every result is
    compared with stock TensorFlow's. A setting is advised only if its slowest turn is faster than
    stock TensorFlow's fastest.

    Args:
      function: a SavedModel's directory or signature, a concrete function, a `tf.function`, a
        `tf.Module` that can be called, or a Keras model.
      example: arrays for the model's arguments, by name or as a sequence. Without an example, a
        directory's signature gets random inputs.
      signature: the signature to call, if `function` is a directory.
      batch: the size of unknown dimensions in random inputs.
      threads: how many threads call at once; one thread is measured as well.
      groups: numbers of stream groups to try.
      seconds: how long to measure in total. Starting the processes takes more time.

    Returns:
      The advice. Prints as a report.

    Raises:
      OSError: the directory has no SavedModel.
      TypeError: `function` is none of these, or the example does not fit its arguments.
      ValueError: `threads` or `seconds` is not positive, the directory has no such signature, or
        `function` cannot be saved.
      RuntimeError: stock TensorFlow fails with this model. The message has the error.
    """
    if threads < 1 or not seconds > 0:
        raise ValueError(f"tf.cuda.advise: {threads=}, {seconds=}: both must be above 0")
    with tempfile.TemporaryDirectory(prefix="advise") as folder:
        if isinstance(function, str | os.PathLike):
            directory = os.path.abspath(function)
        else:
            directory, signature = str(Path(folder, "model")), model.SIGNATURE
            example = model.save_function(function, example, directory)
        queries = model.queries_of(directory, signature, example, batch)
        job = Path(folder, "job")
        job.write_bytes(pickle.dumps((directory, signature, queries)))
        kind = "random numbers" if example is None else "the example"
        takes = ", ".join(f"{name}: {x.dtype}{list(x.shape)}" for name, x in queries[0].items())
        notes = [f"Inputs: {kind}, {takes or 'none'}"]
        rows, errors, more = _measured(job, _settings(groups), sorted({1, threads}), seconds)
        return _advice(rows, errors, notes + more)


def _measured(
    job: Path, settings: Sequence[_Setting], counts: Sequence[int], seconds: float
) -> tuple[list[AdviceRow], list[str], list[str]]:
    """The rows, the errors, and notes for the reader."""
    each = seconds / (len(settings) * len(counts) * _TURNS)
    turns: dict[tuple[int, int], list[Turn]] = {}
    failed: dict[int, str] = {}
    with contextlib.ExitStack() as processes:

        def start(variables: dict[str, str]) -> Child:
            return processes.enter_context(contextlib.closing(Child(job, variables)))

        by_variables = {str(setting.variables): setting.variables for setting in settings}
        children = {key: start(variables) for key, variables in by_variables.items()}
        right, spread, notes = _right_results(children[str({})], start({}))
        for turn in range(1 + _TURNS):  # turn 0 is a warm-up, in which recordings are made
            for i, setting in enumerate(settings):
                child = children[str(setting.variables)]
                try:
                    if turn == 0:
                        child.ask("expect", right, 2 * spread)
                    for threads in counts if i not in failed else ():
                        measured = child.ask("measure", setting.call, threads, each)
                        turns.setdefault((i, threads), []).append(measured)
                except ChildError as error:
                    failed.setdefault(i, f"{setting.name}: {error}")
                    if setting.name == _STOCK:
                        raise RuntimeError(f"tf.cuda.advise: {failed[i]}") from error
    rows = [
        _row(settings[i], threads, of_row[1:])
        for (i, threads), of_row in sorted(turns.items())
        if i not in failed
    ]
    wrong = [f"{x.setting}, {_with(x.threads)}: {x.wrong} wrong results" for x in rows if x.wrong]
    return rows, [*failed.values(), *wrong], notes


def _right_results(stock: Child, again: Child) -> tuple[list[model.Query], float, list[str]]:
    """Results of all queries, the spread of stock's own results, and notes for the reader."""
    try:
        results, emulated = stock.ask("results")
        results += again.ask("results")[0]
    except ChildError as error:
        raise RuntimeError(
            f"tf.cuda.advise: stock TensorFlow fails with this model: {error}\nIf this process has "
            "the GPU's memory, set TF_FORCE_GPU_ALLOW_GROWTH=true before it starts."
        ) from error
    again.close()
    spread = max(
        distance(x, y) for of_all in results for x, y in zip(of_all, results[0], strict=True)
    )
    if np.isinf(spread):
        raise RuntimeError(
            "tf.cuda.advise: stock TensorFlow's own results change in kind from call to call, so "
            "wrong results could not be seen. Save the model without randomness."
        )
    notes = []
    if emulated:
        notes.append("The GPU is emulated: results count, and times mean nothing.")
    if spread:
        notes.append(f"Stock's own results differ by up to {spread:.3g}; others may by twice that.")
    return results[0], spread, notes


def _row(setting: _Setting, threads: int, turns: Sequence[Turn]) -> AdviceRow:
    calls, rates, p50_ms, p99_ms, wrong, in_the_way = zip(*turns, strict=True)
    return AdviceRow(
        *(setting.name, setting.variables, threads, min(calls)),
        *(statistics.median(rates), min(rates), max(rates)),
        *(statistics.median(p50_ms), statistics.median(p99_ms), sum(wrong), in_the_way[-1]),
    )


def _advice(rows: list[AdviceRow], errors: list[str], notes: list[str]) -> Advice:
    lines = [*notes, _table(rows), *(f"ERROR: {error}" for error in errors)]
    variables: dict[str, str] = {}
    gain = 1.0
    for threads in sorted({row.threads for row in rows}):
        # Stock's best of fewer threads counts: a server could then call from one thread only.
        stock = [row for row in rows if row.setting == _STOCK and row.threads <= threads]
        base = max(stock, key=lambda row: row.calls_per_second)
        fastest = max(row.highest for row in stock)
        others = [row for row in rows if row.setting != _STOCK and row.threads == threads]
        best = _best(others, base, fastest)
        if best is None:
            lines.append(f"{_with(threads)}: no setting is faster than stock in every turn.")
            continue
        variables, gain = dict(best.variables), best.calls_per_second / base.calls_per_second
        lines.append(
            f"{_with(threads)}: {best.setting}: {gain:.2f} times stock's calls/s (its slowest turn "
            f"{best.lowest:.0f}, stock's fastest {fastest:.0f})"
        )
        lines += [f"export {name}={value}" for name, value in variables.items()]
        if best.setting.endswith(SERVING):
            lines.append("Call tf.cuda.serving_callable(signature) in place of the signature.")
    if (fewest := min(row.calls for row in rows)) < _FEWEST_CALLS:
        lines.append(f"A turn had only {fewest} calls: measure for more seconds.")
    if reasons := [row.in_the_way for row in rows if row.in_the_way]:
        reason = statistics.mode(reasons)
        lines.append(f"In the way of captured steps: {reason}")
        lines.append(
            f"What to do: {next(x for y, x in _WHAT_TO_DO.items() if re.search(y, reason))}"
        )
    return Advice(tuple(rows), dict(variables), gain, tuple(errors), "\n".join(lines))


def _best(rows: Sequence[AdviceRow], base: AdviceRow, fastest: float) -> AdviceRow | None:
    """The fastest row that beats stock in every turn; of about equals, the first in `rows`."""
    better = [
        row
        for row in rows
        if row.lowest > fastest
        and row.calls_per_second >= _LEAST_GAIN * base.calls_per_second
        and min(row.calls, base.calls) >= _FEWEST_CALLS
        and not row.wrong + base.wrong
    ]
    most = max((row.calls_per_second for row in better), default=0.0)
    return next((row for row in better if row.calls_per_second >= most / _LEAST_GAIN), None)


def _with(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _table(rows: Sequence[AdviceRow]) -> str:
    width = max(len(row.setting) for row in rows)
    lines = [f"{'setting':{width}}  threads  calls/s (lowest to highest)  p50 ms   p99 ms    wrong"]
    for row in rows:
        rate = f"{row.calls_per_second:.0f} ({row.lowest:.0f} to {row.highest:.0f})"
        times = f"{row.p50_ms:7.3f}  {row.p99_ms:7.3f}"
        lines.append(f"{row.setting:{width}}  {row.threads:7}  {rate:27}  {times}  {row.wrong:5}")
    return "\n".join(lines)
