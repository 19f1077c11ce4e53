# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""OpenTelemetry traces of calls, sent to a collector by OTLP; needs requirements-tracing.txt.

the span of the call -> "wait": until the call has a thread
                     -> "step": of a signature, on the call's thread
"""

import contextlib
import os
import threading
from types import TracebackType
from typing import Any

import grpc
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace.propagation import tracecontext
from predict_calls import Origin
from serving_error import ServingError

_NAME = "model_server"
_PROPAGATOR = tracecontext.TraceContextTextMapPropagator()


class CallSpan(contextlib.AbstractContextManager[None]):
    """The span of a call, from its arrival to its answer, as a context manager."""

    def __init__(self, tracer: trace.Tracer, span: trace.Span, by_grpc: bool) -> None:
        self._tracer = tracer
        self._span = span
        self._by_grpc = by_grpc
        self._context = trace.set_span_in_context(span, Context())
        self._waits: list[trace.Span] = []

    def waits(self, version: int) -> None:
        """The call, which holds a version, waits for a thread."""
        self._span.set_attribute(f"{_NAME}.version", version)
        self._waits.append(self._tracer.start_span("wait", self._context))

    def runs(self) -> None:
        """The call has a thread, or has given up."""
        with contextlib.suppress(IndexError):
            self._waits.pop().end()

    def step(self, signature: str) -> contextlib.AbstractContextManager[Any]:
        """A step of the call, which runs meanwhile; an error is recorded."""
        key = f"{_NAME}.signature"
        if self._span.is_recording():  # or the call has given up
            self._span.set_attribute(key, signature)
        span: contextlib.AbstractContextManager[Any] = self._tracer.start_as_current_span(
            "step", self._context, attributes={key: signature}
        )
        return span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        code, http_status = grpc.StatusCode.OK, 200
        if isinstance(error, ServingError):
            code, http_status = error.code, error.http_status
            self._span.record_exception(error)
            if http_status >= 500:  # what is wrong with a request is no fault of the server's
                self._span.set_status(trace.StatusCode.ERROR, error.message)
        elif error is not None:
            code, http_status = grpc.StatusCode.CANCELLED, 499
        if self._by_grpc:
            self._span.set_attribute("rpc.grpc.status_code", code.value[0])
        else:
            self._span.set_attribute("http.response.status_code", http_status)
        self.runs()
        self._span.end()


class Traces:
    """Traces a share of calls, and all whose clients say by `traceparent` that they trace them.

    Args:
      endpoint: the URL of a collector of OTLP by gRPC.
      rate: the share of the calls without a `traceparent` that are traced.
    """

    def __init__(self, endpoint: str, rate: float) -> None:
        self.rate = rate
        name = os.environ.get("OTEL_SERVICE_NAME", _NAME)
        self._provider = TracerProvider(
            ALWAYS_ON, Resource.create({"service.name": name}), shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(endpoint, insecure=endpoint.startswith("http:"))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_NAME)

    def begin(self, origin: Origin, draw: float, model: str) -> CallSpan | None:
        """Begins the span of a call, if the call is traced.

        Args:
          origin: how the call has come.
          draw: a random number from 0 to 1.
          model: its name, as the client has given it.
        """
        context = _PROPAGATOR.extract(origin.headers, Context())
        parent = trace.get_current_span(context).get_span_context()
        if not (parent.trace_flags.sampled if parent.is_valid else draw < self.rate):
            return None
        attributes = {**origin.attributes, f"{_NAME}.model": model[:200]}
        span = self._tracer.start_span(
            origin.name, context, trace.SpanKind.SERVER, attributes=attributes
        )
        return CallSpan(self._tracer, span, "rpc.system" in attributes)

    def close(self, patience: float) -> bool:
        """Sends what was not sent; False if that takes longer than `patience` seconds."""
        thread = threading.Thread(target=self._provider.shutdown, daemon=True)
        thread.start()
        thread.join(patience)
        return not thread.is_alive()
