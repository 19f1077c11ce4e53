# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Calls are traced as their clients and --trace-rate say, and do not notice the collector."""

import concurrent.futures
import json
import pathlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import server_options
import serving_kit
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from predict_calls import Origin
from serving_kit import REST_PREDICT, FakeFront, Saved, Server, failure, request, until
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tracing import Traces

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=x"}
NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
ERROR = 2
SERVER = 2
Span = Any


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector of OTLP by gRPC, which keeps all spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.url = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Export(self, asked: Any, context: Any) -> Any:  # noqa: N802
        """Takes spans."""
        for resource in asked.resource_spans:
            named = attributes_of(resource.resource)
            self.services.add(named["service.name"])
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def calls(self) -> list[Span]:
        """The spans of whole calls."""
        return [span for span in self.spans if span.kind == SERVER]

    def call(self, count: int = 3) -> tuple[Span, dict[str, Span]]:
        """The span of the only call, and those within it, by name; `count` spans together."""
        until(lambda: len(self.spans) >= count and self.calls())
        (span,) = self.calls()
        within = [x for x in self.spans if x is not span]
        assert len(within) == count - 1
        for child in within:
            assert child.parent_span_id == span.span_id and child.trace_id == span.trace_id
        self.spans.clear()
        return span, {child.name: child for child in within}

    def stop(self) -> None:
        """Closes the port."""
        self._server.stop(0).wait()


def attributes_of(of: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {x.key: getattr(x.value, x.value.WhichOneof("value")) for x in of.attributes}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def traced(
    saved: Saved, collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that traces the calls that come with a sampled traceparent."""
    folder = tmp_path_factory.mktemp("traced")
    toy = saved.copy(folder / "toy", 1)
    options = (f"--model=toy={toy}", f"--otlp-endpoint={collector.url}", "--trace-rate=0")
    more = {"OTEL_BSP_SCHEDULE_DELAY": "50"}
    with serving_kit.serving(*options, "--no-warm-up", log=folder / "log", **more) as server:
        yield server


def rest(server: Server, body: Any, headers: dict[str, str], path: str = REST_PREDICT) -> int:
    """The status of a request with these headers."""
    data = json.dumps(body).encode()
    asked = urllib.request.Request(server.url + path, data, headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def test_call_by_grpc_has_a_span_with_spans_within(
    traced: Server, collector: Collector, saved: Saved
) -> None:
    traced.predict(saved.x, metadata=tuple(SAMPLED.items()))
    span, within = collector.call()
    assert span.name == "tensorflow.serving.PredictionService/Predict"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.trace_state == "vendor=x"
    assert attributes_of(span) == {
        "rpc.system": "grpc",
        "rpc.service": "tensorflow.serving.PredictionService",
        "rpc.method": "Predict",
        "rpc.grpc.status_code": 0,
        "model_server.model": "toy",
        "model_server.version": 1,
        "model_server.signature": "serving_default",
    }
    assert within.keys() == {"wait", "step"}
    assert attributes_of(within["step"]) == {"model_server.signature": "serving_default"}
    assert within["wait"].end_time_unix_nano <= within["step"].start_time_unix_nano
    assert within["step"].end_time_unix_nano <= span.end_time_unix_nano
    assert collector.services == {"model_server"}


def test_call_by_rest_has_a_span_with_spans_within(traced: Server, collector: Collector) -> None:
    x = [[0.0] * 8]
    for path, body, route in (
        (REST_PREDICT, {"instances": x}, "/v1/models/{name}:predict"),
        (
            "/v2/models/toy/infer",
            {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": x}]},
            "/v2/models/{name}/infer",
        ),
    ):
        assert rest(traced, body, SAMPLED, path) == 200
        span, within = collector.call()
        assert (span.name, span.parent_span_id.hex()) == (f"POST {route}", PARENT)
        assert attributes_of(span) == {
            "http.request.method": "POST",
            "http.route": route,
            "url.path": path,
            "http.response.status_code": 200,
            "model_server.model": "toy",
            "model_server.version": 1,
            "model_server.signature": "serving_default",
        }
        assert within.keys() == {"wait", "step"}


def test_errors_are_recorded(traced: Server, collector: Collector, saved: Saved) -> None:
    metadata = tuple(SAMPLED.items())
    nobody = request("nobody", x=saved.x)
    failure(lambda: traced.predictions.Predict(nobody, timeout=20, metadata=metadata))
    span, _ = collector.call(1)
    assert attributes_of(span)["rpc.grpc.status_code"] == grpc.StatusCode.NOT_FOUND.value[0]
    assert "is not served" in str(span.events[0]) and span.status.code != ERROR
    forever = request(signature="slow", n=np.int32(serving_kit.FOREVER))
    failure(lambda: traced.predictions.Predict(forever, timeout=0.5, metadata=metadata))
    span, within = collector.call()
    assert attributes_of(span)["rpc.grpc.status_code"] in (1, 4)  # cancelled, or the deadline
    assert within["step"].status.code == ERROR and within["step"].events
    assert rest(traced, {"instances": [[0.0]]}, SAMPLED) == 400
    span, within = collector.call()
    assert attributes_of(span)["http.response.status_code"] == 400
    assert "takes" in str(span.events[0])


def test_client_and_rate_say_what_is_traced(collector: Collector, traced: Server) -> None:
    for headers in ({}, NOT_SAMPLED, {"traceparent": "nonsense"}):
        assert rest(traced, {"instances": [[0.0] * 8]}, headers) == 200
    assert rest(traced, {"instances": [[0.0] * 8]}, SAMPLED) == 200
    collector.call()  # the others would have come before
    traces = Traces(collector.url, 0.25)
    for headers, draw, is_traced in (
        ({}, 0.2, True),
        ({}, 0.3, False),
        ({"traceparent": "nonsense"}, 0.2, True),
        (SAMPLED, 0.9, True),
        (NOT_SAMPLED, 0.0, False),
    ):
        assert (traces.begin(Origin("x", {}, headers), draw, "toy") is not None) == is_traced
    assert traces.close(20)


def test_dead_collector_fails_no_call_and_no_stop(
    traced: Server, collector: Collector, saved: Saved
) -> None:
    collector.stop()
    for _ in range(100):
        traced.predict(saved.x, metadata=tuple(SAMPLED.items()))
    until(lambda: "UNAVAILABLE" in traced.text())
    assert traced.stop() == 0
    traces = Traces(collector.url, 1)
    with traces.begin(Origin("x", {}, {}), 0, "toy"):
        pass
    assert not traces.close(0.1)  # it does not wait longer for what cannot be sent


def test_front_passes_traced_calls_and_stop_sends_what_waits(
    saved: Saved, tmp_path: pathlib.Path
) -> None:
    front, collector = FakeFront(tmp_path), Collector()
    options = (
        f"--model=toy={saved.copy(tmp_path / 'toy', 1)}",
        f"--front={front.program}",
        f"--otlp-endpoint={collector.url}",
        "--trace-rate=1e-9",
        f"--request-log={tmp_path / 'log'}",
        "--request-log-rate=1e-12",
        "--no-warm-up",
    )
    more = {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_SERVICE_NAME": "mine"}
    with serving_kit.serving(*options, log=tmp_path / "server.txt", **more) as server:
        until(lambda: len(front.said()) >= 2)
        assert front.said() == ["trace 1", "sample toy 1e-09"]  # the larger of the two rates
        with front.channel() as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            for metadata in ((("x-sampled", "1"),), tuple(SAMPLED.items()), ()):
                stub.Predict(request(x=saved.x), timeout=20, metadata=metadata)
        assert not collector.spans
        assert server.stop() == 0
    calls = collector.calls()
    assert len(calls) == 2 and TRACE in [span.trace_id.hex() for span in calls]
    assert collector.services == {"mine"}
    collector.stop()


@pytest.mark.parametrize("url", ["collector:4317", "ftp://collector", "http://"])
def test_wrong_endpoint_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        server_options.parse(["--model=toy=.", f"--otlp-endpoint={url}"])
    assert f"{url!r} is not http://HOST:PORT or https://HOST:PORT" in capsys.readouterr().err


def test_packages_are_imported_only_with_the_option_which_names_them() -> None:
    code = """
import model_server, server_options
given = ["--model=toy=."]
server_options.parse(given)
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
sys.modules["opentelemetry"] = None
server_options.parse([*given, "--otlp-endpoint=http://collector:4317"])
"""
    done = serving_kit.run_here(code, 60)
    assert done.returncode == 2, done.stderr
    assert "pip install -r examples/serving/requirements-tracing.txt (" in done.stderr
