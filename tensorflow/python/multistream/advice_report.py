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
"""What `tf.cuda.advise` says of what it has measured: what to export, what it gains, or why not."""

import dataclasses
import statistics
from collections.abc import Sequence

from tensorflow.python.multistream.advice_process import (
    SERVING,
    SIGNATURE,
    TOLERANCE,
    TOLERANCE_OF_HALVES,
    Turn,
)

STOCK = "stock"

# What is less is not worth a variable, as for `tf.cuda.tune`; nor is so much more worth another.
_LEAST_GAIN = 1.03
# With fewer calls in a turn its figures are chance.
_FEWEST_CALLS = 5
_NEAR = (
    f"{100 * TOLERANCE:g} % of a result's largest number "
    f"({100 * TOLERANCE_OF_HALVES:g} % for 16-bit types)"
)
# From these parts on, CPUs are said to be what is waited for, or not to be.
_CPU_BOUND = 0.8
_CPU_IDLE = 0.5


@dataclasses.dataclass(frozen=True)
class AdviceRow:
    """How fast a model is with one setting and so many threads: medians over turns.

    Attributes:
      setting: its name; "stock" has none of the runtime's variables.
      call: how the model is called: "signature", or "serving_callable".
      variables: what to export.
      threads: how many call at once.
      turns: how often it was measured; 1 if it was left out after the first pass.
      calls: in the turn that had the fewest.
      calls_per_second: of all threads.
      lowest: in the slowest turn.
      highest: in the fastest turn.
      p50_ms: the median of a call's time, in milliseconds.
      p50_lowest: in the fastest turn.
      p50_highest: in the slowest turn.
      p99_ms: the 99th percentile, in milliseconds.
      peak_bytes: the most device memory that the process has had in use.
      cpu_ms: CPU time of the process for each call, in milliseconds.
      differing: results that had other bits than stock TensorFlow's.
      far: those of them that are not even near.
      wrong: those that count as wrong: `differing`, or `far` if stock TensorFlow itself gives other
        bits each time.
      replayed: the part of the steps that was replayed, from 0 to 1.
      not_replayed: why others were not, where steps are captured.
    """

    setting: str
    call: str
    variables: dict[str, str]
    threads: int
    turns: int
    calls: int
    calls_per_second: float
    lowest: float
    highest: float
    p50_ms: float
    p50_lowest: float
    p50_highest: float
    p99_ms: float
    peak_bytes: int
    cpu_ms: float
    differing: int
    far: int
    wrong: int
    replayed: float
    not_replayed: str

    @property
    def name(self) -> str:
        """Setting and call."""
        if self.setting == STOCK and self.call == SERVING:
            return f"{SERVING} alone"
        return self.setting if self.call == SIGNATURE else f"{self.setting}, {self.call}"


@dataclasses.dataclass(frozen=True)
class AdviceGain:
    """What a setting gains.

    Attributes:
      row: of the setting.
      stock: stock TensorFlow's best row to compare with.
      ratio: of calls a second, or of the median times of a call: above 1 is faster.
    """

    row: AdviceRow
    stock: AdviceRow
    ratio: float


@dataclasses.dataclass(frozen=True)
class Advice:
    """What `tf.cuda.advise` returns. Prints as a report.

    Attributes:
      rows: what was measured.
      variables: what to export: what gains throughput, else what gains latency, else nothing.
      gain: of those variables, in throughput or latency; 1.0 if nothing is gained.
      throughput: what gains the most calls a second; None if nothing does.
      latency: what makes a single call the shortest; None if nothing does.
      errors: settings that gave wrong results or failed.
      text: the report.
    """

    rows: tuple[AdviceRow, ...]
    variables: dict[str, str]
    gain: float
    throughput: AdviceGain | None
    latency: AdviceGain | None
    errors: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Measured:
    """All that was measured.

    Attributes:
      rows: one for each setting, call and number of threads.
      failures: what settings failed with.
      notes: what else the reader should know.
      stock_varies: stock TensorFlow gave other bits each time.
      seconds: the budget.
      cores: how many CPU cores the process may use.
    """

    rows: tuple[AdviceRow, ...]
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    stock_varies: bool
    seconds: float
    cores: int


def row_of(
    setting: str,
    call: str,
    variables: dict[str, str],
    threads: int,
    turns: Sequence[Turn],
    stock_varies: bool,
) -> AdviceRow:
    """Makes the row of turns.

    Args:
      setting: its name.
      call: how the model was called.
      variables: what to export.
      threads: how many.
      turns: what was measured.
      stock_varies: as of `Measured`.

    Returns:
      The row.
    """
    rates = [turn.calls_per_second for turn in turns]
    medians = [turn.p50_ms for turn in turns]
    differing, far = sum(turn.differing for turn in turns), sum(turn.far for turn in turns)
    return AdviceRow(
        setting=setting,
        call=call,
        variables=variables,
        threads=threads,
        turns=len(turns),
        calls=min(turn.calls for turn in turns),
        calls_per_second=statistics.median(rates),
        lowest=min(rates),
        highest=max(rates),
        p50_ms=statistics.median(medians),
        p50_lowest=min(medians),
        p50_highest=max(medians),
        p99_ms=statistics.median(turn.p99_ms for turn in turns),
        peak_bytes=max(turn.peak_bytes for turn in turns),
        cpu_ms=statistics.median(turn.cpu_ms for turn in turns),
        differing=differing,
        far=far,
        wrong=far if stock_varies else differing,
        replayed=statistics.median(turn.replayed for turn in turns),
        not_replayed=turns[-1].not_replayed,
    )


def advice_of(measured: Measured) -> Advice:
    """Chooses.

    Args:
      measured: what was measured.

    Returns:
      What to export for throughput and for latency, if it gains anything.
    """
    rows = measured.rows
    stock = [row for row in rows if _is_stock(row)]
    cannot_compare = any(row.wrong for row in stock)
    wrong = [row for row in rows if row.wrong and not (cannot_compare or _is_stock(row))]
    errors = [*_errors_of(wrong), *measured.failures]
    bad = {row.setting for row in wrong}
    finals = [r for r in rows if r.turns > 1 and (_is_stock(r) or r.setting not in bad)]
    throughput, rate_noise = _best(finals, stock, by_rate=True)
    single = [row for row in finals if row.threads == 1]
    latency, time_noise = _best(single, [row for row in stock if row.threads == 1], by_rate=False)
    if cannot_compare:
        throughput = latency = None
    lines = [_table(rows), *measured.notes]
    if measured.stock_varies:
        lines.append(
            "Stock TensorFlow itself gives other bits from run to run: results may differ by "
            f"{_NEAR}."
        )
    lines += [f"ERROR: {error}" for error in errors]
    too_small = _too_small(measured)
    lines += too_small
    if cannot_compare:
        lines.append(
            "Nothing is advised: stock TensorFlow's own results differ by more from run to run, so "
            "that wrong results could not be seen. Save the model without randomness."
        )
    elif throughput is None and latency is None:
        lines += [line for line in (rate_noise, time_noise) if line]
        faster = f"Nothing of ours makes this model faster: {_why_not(measured)}"
        lines.append("Nothing is advised." if too_small else faster)
    else:
        lines += _says("throughput", throughput, rate_noise)
        if any(row.threads == 1 for row in stock):
            lines += _says("latency of single calls", latency, time_noise)
    chosen = throughput or latency
    return Advice(
        rows=rows,
        variables=dict(chosen.row.variables) if chosen else {},
        gain=chosen.ratio if chosen else 1.0,
        throughput=throughput,
        latency=latency,
        errors=tuple(errors),
        text="\n".join(lines),
    )


def _is_stock(row: AdviceRow) -> bool:
    return row.setting == STOCK and row.call == SIGNATURE


def _threads(row: AdviceRow) -> str:
    return "1 thread" if row.threads == 1 else f"{row.threads} threads"


def _errors_of(wrong: Sequence[AdviceRow]) -> list[str]:
    return [
        f"{row.name}, {_threads(row)}: {row.wrong} wrong results, with other bits than stock "
        f"TensorFlow's, {row.far} of them by more than {_NEAR}. It is not advised."
        for row in wrong
    ]


def _best(
    finals: Sequence[AdviceRow], all_stock: Sequence[AdviceRow], by_rate: bool
) -> tuple[AdviceGain | None, str]:
    """What gains the most and more than the noise; else what only looks as if it did, in words."""
    stock = [row for row in finals if _is_stock(row)]
    others = [row for row in finals if not _is_stock(row)]
    if not stock or not others:
        return None, ""
    if by_rate:
        base = max(stock, key=lambda row: row.calls_per_second)
        gains = [AdviceGain(r, base, r.calls_per_second / base.calls_per_second) for r in others]
        real = [gain for gain in gains if gain.row.lowest > max(row.highest for row in all_stock)]
    else:
        base = min(stock, key=lambda row: row.p50_ms)
        gains = [AdviceGain(row, base, base.p50_ms / row.p50_ms) for row in others]
        real = [
            gain for gain in gains if gain.row.p50_highest < min(r.p50_lowest for r in all_stock)
        ]
    real = [
        gain
        for gain in real
        if gain.ratio >= _LEAST_GAIN and min(gain.row.calls, gain.stock.calls) >= _FEWEST_CALLS
    ]
    if real:
        most = max(gain.ratio for gain in real)
        alike = [gain for gain in real if gain.ratio >= most / _LEAST_GAIN]
        return min(alike, key=lambda gain: (len(gain.row.variables), -gain.ratio)), ""
    best = max(gains, key=lambda gain: gain.ratio)
    if best.ratio < _LEAST_GAIN:
        return None, ""
    what = "calls a second" if by_rate else "the time of a call"
    return None, (
        f"{best.row.name}, {_threads(best.row)}, looked {best.ratio:.2f} times as fast by "
        f"{what}, which may be noise. A larger --seconds may tell."
    )


def _says(what: str, gain: AdviceGain | None, noise: str) -> list[str]:
    if gain is None:
        return [f"For {what}: nothing of ours is faster. {noise}".rstrip()]
    row, stock = gain.row, gain.stock
    lines = [f"For {what}: {row.name}, {gain.ratio:.2f} times as fast as stock TensorFlow"]
    if what == "throughput":
        lines.append(
            f"({row.calls_per_second:.0f} calls/s with {_threads(row)}; stock "
            f"{stock.calls_per_second:.0f} with {stock.threads})"
        )
    else:
        lines.append(f"({row.p50_ms:.3f} ms a call; stock {stock.p50_ms:.3f})")
    lines += [f"export {name}={value}" for name, value in row.variables.items()]
    if row.call == SERVING:
        lines.append(
            "Call tf.cuda.serving_callable(signature), made once, in place of the signature."
        )
    return lines


def _too_small(measured: Measured) -> list[str]:
    fewest = min((row.calls for row in measured.rows if row.turns > 1), default=0)
    if fewest >= _FEWEST_CALLS:
        return []
    needed = measured.seconds * _FEWEST_CALLS / max(fewest, 1)
    return [
        f"The budget of {measured.seconds:g} s was too small to tell: a turn had {fewest} calls. "
        f"Take --seconds {needed:.0f} or more."
    ]


def _why_not(measured: Measured) -> str:
    """The reason that can be seen."""
    stock = [row for row in measured.rows if _is_stock(row)]
    single = min(stock, key=lambda row: row.threads)
    best = max(stock, key=lambda row: row.calls_per_second)
    reasons = []
    busy = best.cpu_ms / 1e3 * best.calls_per_second / measured.cores
    if busy >= _CPU_BOUND:
        reasons.append(
            f"the CPUs are busy: {_threads(best)} used {busy:.0%} of {measured.cores} cores"
        )
    if single.threads == 1 and single.cpu_ms >= _CPU_BOUND * single.p50_ms:
        reasons.append(
            f"it is bound by Python and launches: CPU time of a call ({single.cpu_ms:.3f} ms) is "
            f"about its time ({single.p50_ms:.3f} ms)"
        )
    if (
        busy < _CPU_IDLE
        and single.threads == 1
        and best.calls_per_second < 1.1 * single.calls_per_second
    ):
        reasons.append(
            "the GPU is busy with one call already: more threads make no more calls, and CPUs "
            "are idle"
        )
    for row in measured.rows:
        if row.not_replayed:
            reasons.append(f"steps are not replayed, as {row.not_replayed}")
            break
    return "; ".join(reasons or ["no reason can be seen in the figures"]) + "."


def _table(rows: Sequence[AdviceRow]) -> str:
    """Stock's rows, those that were measured in turns, and the best of the others."""
    width = max(len(row.name) for row in rows)
    lines = [
        f"{'setting':{width}}  threads  calls/s (lowest to highest)     p50 ms     p99 ms  "
        "peak MB  CPU ms a call  wrong"
    ]
    for row in _shown(rows):
        rate = f"{row.calls_per_second:.0f}"
        if row.turns > 1:
            rate += f" ({row.lowest:.0f} to {row.highest:.0f})"
        lines.append(
            f"{row.name:{width}}  {row.threads:7}  {rate:27}  {row.p50_ms:9.3f}  {row.p99_ms:9.3f}"
            f"  {row.peak_bytes / 1e6:7.1f}  {row.cpu_ms:13.3f}  {row.wrong:5}"
        )
    return "\n".join(lines)


def _shown(rows: Sequence[AdviceRow]) -> list[AdviceRow]:
    best: dict[str, AdviceRow] = {}
    for row in rows:
        if row.name not in best or row.calls_per_second > best[row.name].calls_per_second:
            best[row.name] = row
    return [row for row in rows if _is_stock(row) or row.turns > 1 or best[row.name] is row]
