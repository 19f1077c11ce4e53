# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics: calls by model, method and status, versions, and stream groups."""

import bisect
import collections
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import prometheus_client
import tensorflow as tf
from call_queue import CallQueue
from grpc_front import SECONDS, Figures, Front
from model_versions import Model, State
from prometheus_client import core
from request_log import RequestLog

# Field of tf.cuda.stream_stats(), whether it only grows, and what it is.
_GROUP_FIGURES = (
    ("steps_started", True, "Steps that the group has been given."),
    ("steps_failed", True, "Steps that ended with an error."),
    ("steps_replayed", True, "Steps that were launched as one recording."),
    ("pieces_replayed", True, "Pieces of other steps that were launched as a recording each."),
    ("recordings_made", True, "How often a step was recorded."),
    ("steps_running", False, "Steps that are not done."),
    ("steps_waiting", False, "Parts of steps that wait for a thread which launches their ops."),
    ("recordings", False, "Recordings that there are."),
    ("recording_bytes", False, "Memory of the recordings."),
    ("bytes_in_use", False, "Memory that the group's allocator has handed out."),
    ("peak_bytes_in_use", False, "The most that bytes_in_use has been."),
    ("bytes_limit", False, "Memory that the group's allocator may hand out."),
    ("bytes_held", False, "Memory of others that is kept until the group has used it."),
    (
        "longest_launch_wait_micros",
        False,
        "The longest wait for a thread that launches, in this minute and the last one.",
    ),
)
_FRONT_METHOD = "Predict"
_Labels = tuple[str, str, str]  # model, method, status


class _Histogram:
    def __init__(self) -> None:
        self.sum = 0.0
        self.counts = [0] * (len(SECONDS) + 1)

    def add(self, total: float, counts: list[int]) -> None:
        self.sum += total
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]


class ServerMetrics:
    """The metrics of a server, of its front included."""

    def __init__(self, queue: CallQueue, models: Iterable[Model]) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.python_in_flight = 0  # calls that Python has and has not answered
        self.front: Front | None = None
        self.request_log: RequestLog | None = None
        self._queue = queue
        self._models = models
        self._answered: dict[_Labels, _Histogram] = collections.defaultdict(_Histogram)
        self.registry.register(self)
        # Memory, CPU time and open files, of this process and of the front's.
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.ProcessCollector(
            "model_server_front",
            lambda: self.front.process() if self.front is not None else "none",
            registry=self.registry,
        )

    @property
    def in_flight(self) -> int:
        """How many calls have arrived and are not answered."""
        return self.python_in_flight + int(self._of_front().open)

    def answered(self, model: str, method: str, status: str, seconds: float) -> None:
        """Counts a call, by gRPC's or REST's method and the name of gRPC's status code.

        `model` is empty if no such model is served, as anybody may make up names.
        """
        histogram = self._answered[model, method, status]
        histogram.sum += seconds
        histogram.counts[bisect.bisect_left(SECONDS, seconds)] += 1

    def statuses(self) -> dict[str, int]:
        """How many calls were answered with each status."""
        found: collections.Counter[str] = collections.Counter()
        for (_, _, status), histogram in self._all_answered(self._of_front()).items():
            found[status] += sum(histogram.counts)
        return found

    def _of_front(self) -> Figures:
        return self.front.figures() if self.front is not None else Figures()

    def text(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return bytes(prometheus_client.generate_latest(self.registry))

    def collect(self) -> Iterator[Any]:
        """What prometheus_client asks at each scrape."""
        front = self._of_front()
        yield from self._of_calls(front)
        for name, what, figure in (
            ("running", "Calls that have a thread.", self._queue.running + front.running),
            ("waiting", "Calls that wait for a thread.", self._queue.waiting + front.waiting),
            (
                "in_flight",
                "Calls that have arrived and are not answered.",
                self.python_in_flight + front.open,
            ),
        ):
            yield core.GaugeMetricFamily(f"model_server_calls_{name}", what, figure)
        for name, what, total in (
            ("batches", "Batches of calls that may share steps.", front.batches),
            ("batched_calls", "Calls in these batches.", front.batched),
        ):
            yield core.CounterMetricFamily(f"model_server_{name}", what, total)
        yield from self._of_versions()
        if self.request_log is not None:
            yield from self._of_log(self.request_log)
        groups = tf.cuda.stream_stats()
        for field, grows, what in _GROUP_FIGURES:
            kind = core.CounterMetricFamily if grows else core.GaugeMetricFamily
            family = kind(f"model_server_group_{field}", what, labels=("gpu", "group"))
            for group in groups:
                family.add_metric((str(group.gpu), str(group.group)), getattr(group, field))
            yield family

    def _all_answered(self, front: Figures) -> dict[_Labels, _Histogram]:
        found: dict[_Labels, _Histogram] = collections.defaultdict(_Histogram)
        for labels, histogram in self._answered.items():
            found[labels].add(histogram.sum, histogram.counts)
        for model, status, total, counts in front.answers:
            found[model, _FRONT_METHOD, status].add(total, counts)
        return found

    def _of_calls(self, front: Figures) -> Iterator[Any]:
        of_calls = ("model", "method", "status")
        calls = core.CounterMetricFamily(
            "model_server_calls",
            "Calls that were answered. The model is empty where it is not one that is served.",
            labels=of_calls,
        )
        seconds = core.HistogramMetricFamily(
            "model_server_call_seconds",
            "Time from a request's arrival to its answer, in seconds.",
            labels=of_calls,
        )
        bounds = (*map(str, SECONDS), "+Inf")
        for labels, histogram in self._all_answered(front).items():
            calls.add_metric(labels, sum(histogram.counts))
            buckets = list(zip(bounds, itertools.accumulate(histogram.counts), strict=True))
            seconds.add_metric(labels, buckets, histogram.sum)
        yield calls
        yield seconds

    def _of_versions(self) -> Iterator[Any]:
        of_version = ("model", "version")
        served = core.GaugeMetricFamily(
            "model_server_version_served", "1 for each version that is served.", labels=of_version
        )
        failed = core.GaugeMetricFamily(
            "model_server_version_failed",
            "1 for each version that could not be loaded; its error is told by GetModelStatus.",
            labels=of_version,
        )
        calls = core.CounterMetricFamily(
            "model_server_version_calls",
            "Calls that a version in memory has computed, failed ones included.",
            labels=of_version,
        )
        variable_bytes = core.GaugeMetricFamily(
            "model_server_version_variable_bytes",
            "Memory of the variables of a version in memory, on all its devices.",
            labels=of_version,
        )
        for model in self._models:
            for version in model.statuses():
                if version.state is State.AVAILABLE:
                    served.add_metric((model.name, str(version.number)), 1)
                elif version.error:
                    failed.add_metric((model.name, str(version.number)), 1)
            for figures in model.figures():
                labels = (model.name, str(figures.number))
                calls.add_metric(labels, figures.calls)
                variable_bytes.add_metric(labels, figures.variable_bytes)
        yield from (served, failed, calls, variable_bytes)

    def _of_log(self, log: RequestLog) -> Iterator[Any]:
        logged = core.CounterMetricFamily(
            "model_server_requests_logged", "Requests that were logged.", labels=("model",)
        )
        for model, count in list(log.logged.items()):
            logged.add_metric((model,), count)
        dropped = core.CounterMetricFamily(
            "model_server_requests_log_dropped",
            "Sampled requests that were not logged, as the queue was full, or by an error.",
            labels=("model", "reason"),
        )
        for labels, count in list(log.dropped.items()):
            dropped.add_metric(labels, count)
        yield logged
        yield dropped

    def describe(self) -> list[Any]:
        """Says nothing, so that registering does not ask for the figures."""
        return []
