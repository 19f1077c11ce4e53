# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics: calls by model, method and status, and what each stream group does."""

import collections
from collections.abc import Iterator
from typing import Any

import prometheus_client
import tensorflow as tf
from call_queue import CallQueue
from model_versions import Models
from prometheus_client import core

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
# Field of tf.cuda.stream_stats(), whether it only grows, and what it is.
_GROUP_FIGURES = (
    ("steps_started", True, "Steps that the group has been given."),
    ("steps_failed", True, "Steps that ended with an error."),
    ("steps_replayed", True, "Steps that were launched as one recording."),
    ("recordings_made", True, "How often a step was recorded."),
    ("steps_running", False, "Steps that are not done."),
    ("recordings", False, "Recordings that there are."),
    ("recording_bytes", False, "Memory of the recordings."),
    ("bytes_in_use", False, "Memory that the group's allocator has handed out."),
    ("peak_bytes_in_use", False, "The most that bytes_in_use has been."),
    ("bytes_limit", False, "Memory that the group's allocator may hand out."),
    ("longest_launch_wait_micros", False, "The longest wait for a thread that launches."),
)


class ServerMetrics:
    """The metrics of a server; `in_flight` calls have arrived and are not answered."""

    def __init__(self, queue: CallQueue, models: Models) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._calls = prometheus_client.Counter(
            "model_server_calls",
            "Calls that were answered. The model is empty where it is not one that is served.",
            ("model", "method", "status"),
            registry=self.registry,
        )
        self._seconds = prometheus_client.Histogram(
            "model_server_call_seconds",
            "Time from a request's arrival to its answer, in seconds, of calls that succeeded.",
            ("model", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.in_flight = 0
        for name, what, figure in (
            ("running", "Calls that have a thread.", lambda: queue.running),
            ("waiting", "Calls that wait for a thread.", lambda: queue.waiting),
            (
                "in_flight",
                "Calls that have arrived and are not answered.",
                lambda: self.in_flight,
            ),
        ):
            gauge = prometheus_client.Gauge(
                f"model_server_calls_{name}", what, registry=self.registry
            )
            gauge.set_function(figure)
        self.statuses: collections.Counter[str] = collections.Counter()
        self._models = models
        self.registry.register(self)

    def answered(self, model: str, method: str, status: str, seconds: float) -> None:
        """Counts a call, by gRPC's or REST's method and the name of gRPC's status code.

        `model` is empty if no such model is served, as anybody may make up names.
        """
        self.statuses[status] += 1
        self._calls.labels(model, method, status).inc()
        if status == "OK":
            self._seconds.labels(model, method).observe(seconds)

    def text(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return bytes(prometheus_client.generate_latest(self.registry))

    def collect(self) -> Iterator[Any]:
        """What prometheus_client asks at each scrape."""
        served = core.GaugeMetricFamily(
            "model_server_version_served",
            "1 for each version that is served.",
            labels=("model", "version"),
        )
        for model in self._models:
            for version in model.served():
                served.add_metric((model.name, str(version)), 1)
        yield served
        groups = tf.cuda.stream_stats()
        for field, grows, what in _GROUP_FIGURES:
            kind = core.CounterMetricFamily if grows else core.GaugeMetricFamily
            family = kind(f"model_server_group_{field}", what, labels=("gpu", "group"))
            for group in groups:
                family.add_metric((str(group.gpu), str(group.group)), getattr(group, field))
            yield family

    def describe(self) -> list[Any]:
        """Says nothing, so that registering does not ask for the figures."""
        return []
