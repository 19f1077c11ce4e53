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
"""`tf.cuda.advise` advises what is faster beyond noise and right, and says why nothing is."""

import dataclasses
from collections.abc import Callable

import pytest
from tensorflow.python.multistream import advice_report, advice_search
from tensorflow.python.multistream.advice_process import (
    NOT_CAPTURED,
    SERVING,
    SIGNATURE,
    ChildEndedError,
    ChildError,
    Ready,
    Turn,
)

CAPTURE = {"TF_MULTI_STREAM_CAPTURE": "auto"}
EIGHT = {"TF_GPU_STREAM_GROUP_COUNT": "8"}

# Calls a second of a setting's process, by how it is asked to call, from so many threads.
Speed = Callable[[str, str, int], float]


def turn(rate: float, threads: int = 1, cpu_ms: float = 0.1, calls: int = 100) -> Turn:
    p50 = 1e3 * threads / rate
    return Turn(calls, rate, p50, 2 * p50, cpu_ms, peak_bytes=1 << 20)


class Process:
    """A process whose calls take as long as the test says."""

    def __init__(self, machine: "Machine", variables: dict[str, str], name: str) -> None:
        self.machine, self.variables, self.name = machine, variables, name
        self.ready = Ready(emulated=False, differing=machine.stock_differs and not variables)
        self.open = True
        self.turns = 0

    def measure(self, call: str, threads: int, seconds: float) -> Turn:
        assert self.open
        self.turns += 1
        self.machine.asked.append((self.name, call, threads, seconds))
        return self.machine.turn(self.name, call, threads)

    def close(self) -> None:
        self.open = False


class Machine:
    """Processes that were started; a test replaces `turn`."""

    def __init__(self, turn: Callable[[str, str, int], Turn], stock_differs: bool = False) -> None:
        self.turn = turn
        self.stock_differs = stock_differs
        self.asked: list[tuple[str, str, int, float]] = []
        self.started: list[Process] = []
        self.most_open = 0

    def start(self, variables: dict[str, str], name: str) -> Process:
        self.started.append(Process(self, variables, name))
        self.most_open = max(self.most_open, sum(process.open for process in self.started))
        return self.started[-1]

    def measured(
        self,
        threads: tuple[int, ...] = (1, 4, 8, 16),
        groups: tuple[int, ...] = (1, 2, 4, 8, 16),
    ) -> advice_report.Measured:
        search = advice_search.Search(self.start, threads, groups, ["cost"], 60, progress=False)
        return search.run()

    def advice(self, **options: tuple[int, ...]) -> advice_report.Advice:
        return advice_report.advice_of(self.measured(**options))


def of_speed(speed: Speed) -> Callable[[str, str, int], Turn]:
    return lambda name, call, threads: turn(speed(name, call, threads), threads)


def flat(name: str, call: str, threads: int) -> float:
    return 100


def captured_is_fast(name: str, call: str, threads: int) -> float:
    if name == "8 groups, captured" and call == SIGNATURE:
        return 250 * threads
    if name == "captured":
        return 260
    return 100


def test_a_clear_gain_is_what_to_export() -> None:
    advice = Machine(of_speed(captured_is_fast)).advice()
    assert advice.throughput and advice.latency
    assert advice.variables == advice.throughput.row.variables == EIGHT | CAPTURE
    assert advice.gain == pytest.approx(40) and advice.throughput.row.threads == 16
    assert advice.latency.row.variables == CAPTURE
    assert advice.latency.ratio == pytest.approx(2.6)
    assert not advice.errors
    lines = str(advice).splitlines()
    throughput = lines.index(
        "For throughput: 8 groups, captured, 40.00 times as fast as stock TensorFlow"
    )
    assert lines[throughput + 2 : throughput + 4] == [
        "export TF_GPU_STREAM_GROUP_COUNT=8",
        "export TF_MULTI_STREAM_CAPTURE=auto",
    ]
    assert lines[throughput + 4].startswith("For latency of single calls: captured, 2.60 times")


def test_what_is_as_fast_with_fewer_variables_is_advised() -> None:
    def speed(name: str, call: str, threads: int) -> float:
        captured = {"captured": 300, "8 groups, captured": 301}.get(name, 100)
        return captured if threads == 1 and call == SIGNATURE else 100

    advice = Machine(of_speed(speed)).advice()
    assert advice.latency and advice.latency.row.variables == CAPTURE


def test_a_callable_alone_needs_no_variable() -> None:
    advice = Machine(of_speed(lambda n, call, t: 300 if call == SERVING else 100)).advice()
    assert advice.throughput and advice.variables == {} and advice.gain == pytest.approx(3)
    assert "serving_callable alone, 3.00 times" in advice.text
    assert "tf.cuda.serving_callable(signature)" in advice.text


def test_a_callable_alone_is_measured_in_turns_even_if_others_looked_faster() -> None:
    def speed(name: str, call: str, threads: int) -> float:
        first = sum(asked[:3] == (name, call, threads) for asked in machine.asked) == 1
        if call == SERVING:
            return 299 if first and name == "stock" else 300
        return 100

    machine = Machine(of_speed(speed))
    advice = machine.advice()
    assert advice.throughput and advice.throughput.row.name == "serving_callable alone"


def test_without_a_gain_it_says_so() -> None:
    advice = Machine(of_speed(flat)).advice()
    assert advice.throughput is advice.latency is None
    assert advice.variables == {} and advice.gain == 1.0
    assert "Nothing of ours makes this model faster" in advice.text
    assert "export" not in advice.text


@pytest.mark.parametrize(
    ("rate", "cpu_ms", "not_replayed", "reason"),
    [
        (lambda threads: 100 * threads, 9.5, "", "bound by Python and launches"),
        (lambda threads: 100, 0.1, "", "the GPU is busy with one call already"),
        (lambda threads: 1e9, 1.0, "", "the CPUs are busy"),
        (lambda threads: 100 * threads, 0.1, "", "no reason can be seen"),
        (lambda threads: 100 * threads, 0.1, "op x is random", "not replayed, as op x is random."),
    ],
)
def test_why_nothing_is_faster(
    rate: Callable[[int], float], cpu_ms: float, not_replayed: str, reason: str
) -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        seen = not_replayed if "captured" in name else ""
        return dataclasses.replace(turn(rate(threads), threads, cpu_ms), not_replayed=seen)

    text = Machine(measure).advice().text
    (why,) = [line for line in text.splitlines() if line.startswith("Nothing of ours")]
    assert reason in why


def test_noise_is_not_a_gain() -> None:
    """The median is 1.2 times stock's, but a turn of stock was as fast."""

    def speed(name: str, call: str, threads: int) -> float:
        before = sum(asked[:3] == (name, call, threads) for asked in machine.asked) - 1
        swing = 80 + 20 * (before % 3)
        return 1.2 * swing if name == "8 groups, captured" else swing

    machine = Machine(of_speed(speed))
    advice = machine.advice()
    assert advice.throughput is advice.latency is None
    assert "may be noise" in advice.text and "--seconds" in advice.text


def test_a_gain_that_is_small_is_none() -> None:
    advice = Machine(of_speed(lambda n, c, t: 102 if "captured" in n else 100)).advice()
    assert advice.throughput is advice.latency is None


def with_wrong(name: str, call: str, threads: int) -> Turn:
    """What is fast gives other bits, if it is called from 4 threads."""
    found = turn(captured_is_fast(name, call, threads), threads)
    if name == "8 groups, captured" and call == SIGNATURE and threads == 4:
        found = dataclasses.replace(found, differing=3, far=1)
    return found


def test_a_setting_with_wrong_results_is_an_error() -> None:
    advice = Machine(with_wrong).advice()
    assert advice.throughput and advice.throughput.row.setting == "captured"
    assert {row.turns for row in advice.rows if row.setting == "8 groups, captured"} == {1}
    (error,) = advice.errors
    assert error.startswith("8 groups, captured, 4 threads: 3 wrong results, with other bits")
    assert "1 of them by more than 0.1 %" in error
    assert f"ERROR: {error}" in advice.text


def test_results_that_turn_wrong_later_are_an_error() -> None:
    machine = Machine(with_wrong)

    def measure(name: str, call: str, threads: int) -> Turn:
        found = turn(captured_is_fast(name, call, threads), threads)
        again = sum(asked[:3] == (name, call, threads) for asked in machine.asked) > 1
        return dataclasses.replace(found, differing=int(again and bool(name != "stock")))

    machine.turn = measure
    advice = machine.advice()
    assert advice.throughput is advice.latency is None
    assert any("8 groups, captured" in error for error in advice.errors)


def test_where_stock_varies_results_need_only_be_near() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        return dataclasses.replace(
            turn(captured_is_fast(name, call, threads), threads), differing=9
        )

    advice = Machine(measure, stock_differs=True).advice()
    assert advice.throughput and advice.throughput.row.setting == "8 groups, captured"
    assert not advice.errors
    assert "may differ by 0.1 % of a result's largest" in advice.text


def test_where_stock_varies_widely_nothing_is_advised() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        found = turn(captured_is_fast(name, call, threads), threads)
        random = 9 if name == "stock" else 0
        return dataclasses.replace(found, differing=random, far=random)

    advice = Machine(measure).advice()
    assert advice.throughput is advice.latency is None
    assert "wrong results could not be seen" in advice.text and not advice.errors


def test_a_setting_that_crashes_is_an_error_and_others_go_on() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        if name == "4 groups, captured" and call == SIGNATURE:
            raise ChildEndedError(f"{name}: its process ended, signal 11\n  the last line")
        return turn(captured_is_fast(name, call, threads), threads)

    machine = Machine(measure)
    advice = machine.advice()
    (error,) = advice.errors
    assert "signal 11" in error and "the last line" in advice.text
    assert advice.throughput and advice.throughput.row.setting == "8 groups, captured"
    assert not any(process.open for process in machine.started)


def test_a_setting_that_crashes_in_its_last_turn_is_not_advised() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        seen = sum(asked[0] == name and asked[2] == 16 for asked in machine.asked)
        if name == "8 groups, captured" and call == SIGNATURE and seen > 6:
            raise ChildEndedError(f"{name}: its process ended")
        return turn(captured_is_fast(name, call, threads), threads)

    machine = Machine(measure)
    advice = machine.advice()
    assert advice.throughput and advice.throughput.row.setting == "captured"
    assert len(advice.errors) == 1


def test_a_call_that_fails_leaves_the_other_settings_of_its_process() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        if call == NOT_CAPTURED and name == "8 groups, captured":
            raise ChildError(f"{name}: InternalError: no")
        return turn(captured_is_fast(name, call, threads), threads)

    advice = Machine(measure).advice()
    assert advice.errors == ("8 groups, captured: InternalError: no",)
    assert advice.throughput and advice.throughput.row.setting == "8 groups, captured"


def test_if_stock_crashes_there_is_no_advice() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        raise ChildEndedError("stock: its process ended, exit status 1\n  the last line")

    machine = Machine(measure)
    with pytest.raises(RuntimeError, match=r"stock: its process ended.*\n.*the last line"):
        machine.advice()
    assert not any(process.open for process in machine.started)


def test_a_model_that_no_callable_takes_is_measured_without() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        if call == SERVING:
            raise ChildError(f"{name}: TypeError: argument s is of type string")
        return turn(captured_is_fast(name, call, threads), threads)

    machine = Machine(measure)
    advice = machine.advice()
    assert advice.throughput and not advice.errors
    assert "serving_callable was left out: stock: TypeError: argument s" in advice.text
    assert sum(call == SERVING for _, call, _, _ in machine.asked) == 1


def test_a_budget_that_is_too_small_is_named() -> None:
    def measure(name: str, call: str, threads: int) -> Turn:
        return turn(captured_is_fast(name, call, threads), threads, calls=2)

    advice = Machine(measure).advice()
    assert advice.throughput is advice.latency is None
    assert "60 s was too small to tell: a turn had 2 calls. Take --seconds 150" in advice.text
    assert advice.text.endswith("Nothing is advised.")


def test_the_time_of_all_turns_is_the_budget() -> None:
    machine = Machine(of_speed(captured_is_fast))
    machine.advice()
    assert sum(seconds for *_, seconds in machine.asked) == pytest.approx(60, rel=0.01)


def test_few_processes_are_started_and_fewer_run_at_once() -> None:
    """Of what is left behind none is kept: it has memory of the GPU."""
    machine = Machine(of_speed(captured_is_fast))
    machine.advice(threads=(1, 8, 32), groups=(1, 2, 4, 8, 16, 32))
    assert [process.name for process in machine.started] == [
        "stock",
        "stock",
        "captured",
        "2 groups, captured",
        "4 groups, captured",
        "8 groups, captured",
        "16 groups, captured",  # slower: 32 would not be tried
        "2 groups, policy cost",
    ]
    assert machine.most_open <= 6


def test_larger_groups_are_not_tried_once_one_was_slower() -> None:
    machine = Machine(of_speed(lambda n, c, t: 50 if n.startswith("4") else 100))
    machine.advice()
    names = {process.name for process in machine.started}
    assert "4 groups, captured" in names and "8 groups, captured" not in names


def test_groups_are_at_most_as_many_as_threads() -> None:
    machine = Machine(of_speed(flat))
    machine.advice(threads=(1, 4))
    assert not {p.name for p in machine.started} & {"8 groups, captured", "16 groups, captured"}


def test_groups_without_captured_steps_are_measured_by_themselves() -> None:
    """In the end with their variables alone, and not in a process that captures."""

    def speed(name: str, call: str, threads: int) -> float:
        groups = (name == "2 groups, captured" and call == NOT_CAPTURED) or name == "2 groups"
        return 100 * threads if groups else 90

    machine = Machine(of_speed(speed))
    advice = machine.advice(threads=(1, 2), groups=(2,))
    assert advice.variables == {"TF_GPU_STREAM_GROUP_COUNT": "2"}
    (alone,) = [p for p in machine.started if p.name == "2 groups"]
    assert alone.variables == advice.variables


def test_policies_split_single_calls_on_the_best_number_of_groups() -> None:
    def speed(name: str, call: str, threads: int) -> float:
        if "policy" in name:
            return 300
        return 200 if name.startswith("4") and call == NOT_CAPTURED else 100

    machine = Machine(of_speed(speed))
    advice = machine.advice()
    assert {asked[2] for asked in machine.asked if "policy" in asked[0]} == {1}
    assert advice.latency and advice.latency.row.variables == {
        "TF_GPU_STREAM_GROUP_COUNT": "4",
        "TF_MULTI_STREAM_POLICY": "cost",
    }


def test_finalists_take_turns_with_both_processes_of_stock() -> None:
    machine = Machine(of_speed(captured_is_fast))
    rows = machine.measured().rows
    finals = [row for row in rows if row.turns > 1]
    assert {row.turns for row in finals} == {5}
    assert {"stock", "8 groups, captured", "captured"} <= {row.setting for row in finals}
    assert all(process.turns > 1 for process in machine.started if process.name == "stock")
