# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sampled calls are in files of TFRecords; calls do not notice what becomes of their logs."""

import contextlib
import os
import pathlib
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import example_calls_test as examples
import numpy as np
import pytest
import serving_kit
import tensorflow as tf
import tritonclient.grpc
import tritonclient.http
from google.protobuf import text_format
from kserve_test import infer
from loaded_model import LoadedModel, Signature
from model_config import LogConfig
from request_log import Entry, RequestLog
from serving_kit import REST_PREDICT, FakeFront, Saved, failure, request, until
from tensorflow.python.multistream.serving.served_models import Devices
from tensorflow_serving.apis import (
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

SAMPLED = (("x-sampled", "1"),)
MESSAGE = predict_pb2.PredictRequest(), predict_pb2.PredictResponse()


def logs(prefix: pathlib.Path) -> list[Any]:
    """All logs of the files with a prefix."""
    files = sorted(map(str, prefix.parent.glob(f"{prefix.name}.*")))
    records = tf.data.TFRecordDataset(files).as_numpy_iterator()
    return [prediction_log_pb2.PredictionLog.FromString(record) for record in records]


@pytest.fixture
def entry(tmp_path: pathlib.Path) -> Callable[..., Entry]:
    """Makes entries of a model, with the prefix `log`."""

    def made(messages: Any = lambda _: MESSAGE, size: int = 1, **fields: Any) -> Entry:
        config = LogConfig(str(tmp_path / "log"), 1)
        return Entry("m", 1, "s", config, "predict_log", size, messages, 1.5)._replace(**fields)

    return made


def settled(log: RequestLog, count: int) -> None:
    """Waits until some entries are written or dropped."""
    until(lambda: log.logged.total() + log.dropped.total() >= count)


def test_what_does_not_fit_is_dropped_and_counted(entry: Any, tmp_path: pathlib.Path) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def waits(_: Any) -> Any:
        begun.set()
        assert goes_on.wait(20)
        return MESSAGE

    log = RequestLog(10_000)
    log.offer(entry(waits, 9_000))
    assert begun.wait(20)  # its bytes count until it is written
    log.offer(entry(size=1_001))
    assert log.dropped == {("m", "queue"): 1}
    for _ in range(1_002):
        log.offer(entry(size=0))
    assert log.dropped == {("m", "queue"): 3}
    goes_on.set()
    settled(log, 1_004)
    log.offer(entry(size=10_000))
    assert log.close(20)
    assert log.logged == {"m": 1_002} and len(logs(tmp_path / "log")) == 1_002


def test_file_that_is_large_or_old_is_followed_by_another(
    entry: Any, tmp_path: pathlib.Path
) -> None:
    large, old = RequestLog(1 << 20, file_bytes=100), RequestLog(1 << 20, file_seconds=0)
    for i, log in enumerate((large, old)):
        for count in range(1, 5):
            log.offer(entry(config=LogConfig(str(tmp_path / str(i)), 1)))
            settled(log, count)
        assert log.close(20)
        assert len(logs(tmp_path / str(i))) == 4
    size = len(entry().record()) + 16
    assert {x.stat().st_size for x in tmp_path.glob("0.*")} == {-(-100 // size) * size}
    assert len(list(tmp_path.glob("1.*"))) == 4


def test_full_disk_and_lost_folder_leave_whole_records(
    entry: Any, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, folder = RequestLog(1 << 20), tmp_path / "folder"
    large = predict_pb2.PredictRequest(output_filter=["x" * 100_000]), MESSAGE[1]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, before[1]))
    try:
        for _ in range(3):
            log.offer(entry(lambda _: large))
        settled(log, 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert log.logged == {"m": 2} and log.dropped == {("m", "error"): 1}
    assert len(logs(tmp_path / "log")) == 2
    (said,) = caplog.messages
    assert f"requests are not logged to {tmp_path / 'log'}: " in said

    lost = LogConfig(str(folder / "log"), 1)
    for count in (4, 5):
        log.offer(entry(config=lost))
        settled(log, count)
    log.offer(entry(lambda _: 1 / 0))
    folder.mkdir()
    log.offer(entry(config=lost))
    log.offer(entry())
    assert log.close(20)
    assert log.dropped == {("m", "error"): 4}
    assert len(logs(folder / "log")) == 1 and len(logs(tmp_path / "log")) == 3
    assert len(caplog.messages) == 1  # few lines, however many logs are lost


class Logging:
    """A server whose models are logged as its configuration says, and the files of its logs."""

    def __init__(self, saved: Saved, folder: pathlib.Path) -> None:
        self.saved = saved
        self.folder = folder
        self.config = folder / "models.config"
        self.server: Any = None
        saved.copy(folder / "toy", 1)

    def text(self, rates: dict[str, float], prefix: str = "log") -> str:
        """The configuration: models of these rates, whose prefixes are `prefix`-NAME."""
        models = [
            f'config {{ name: "{name}" base_path: "{self.folder / name}" logging_config {{ '
            f'log_collector_config {{ filename_prefix: "{self.folder}/{prefix}-{name}" }} '
            f"sampling_config {{ sampling_rate: {rate} }} }} }}"
            for name, rate in rates.items()
        ]
        return f"model_config_list {{ {' '.join(models)} }}"

    def reload(self, channel: Any, *config: Any) -> None:
        """Has the server take another configuration."""
        asked = model_management_pb2.ReloadConfigRequest()
        text_format.Parse(self.text(*config), asked.config)
        model_service_pb2_grpc.ModelServiceStub(channel).HandleReloadConfigRequest(
            asked, timeout=60
        )

    def count(self, what: str = "logged") -> float:
        """How many calls were logged."""
        return float(self.server.total(f"model_server_requests_{what}_total"))

    def logs_of(self, name: str, *calls: Callable[[], Any]) -> list[Any]:
        """The logs that calls bring."""
        before = self.count()
        seen = len(logs(self.folder / f"log-{name}"))
        for call in calls:
            call()
        until(lambda: self.count() == before + len(calls))
        return logs(self.folder / f"log-{name}")[seen:]


@pytest.fixture(scope="module")
def logging(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logging]:
    """A server of `toy`, of `unlogged`, and of `m`, which takes tf.Examples."""
    found = Logging(saved, tmp_path_factory.mktemp("logging"))
    saved.copy(found.folder / "unlogged", 1)
    code = f"example_calls_test.save_model({str(found.folder / 'm' / '1')!r})"
    done = serving_kit.run_here(f"import example_calls_test\n{code}", 60)
    assert done.returncode == 0, done.stderr
    found.config.write_text(found.text({"toy": 1, "unlogged": 1e-9, "m": 1}))
    options = (f"--model-config-file={found.config}", "--no-warm-up")
    with serving_kit.serving(*options, log=found.folder / "server.txt") as found.server:
        yield found


def test_call_by_grpc_is_logged_as_it_was(logging: Logging, tmp_path: pathlib.Path) -> None:
    server, x = logging.server, logging.saved.x
    filtered = request(signature="pair", a=np.ones([1, 2], np.float32), b=np.int32([4]))
    filtered.output_filter.append("sum")
    answers = []

    def call(asked: Any) -> Callable[[], None]:
        return lambda: answers.append((asked, server.predictions.Predict(asked, timeout=20)))

    found = logging.logs_of("toy", call(request(x=x)), call(filtered))
    assert [(log.predict_log.request, log.predict_log.response) for log in found] == answers
    metadata = [log.log_metadata for log in found]
    assert [(m.model_spec.name, m.model_spec.version.value) for m in metadata] == [("toy", 1)] * 2
    assert [m.model_spec.signature_name for m in metadata] == ["serving_default", "pair"]
    assert all(m.sampling_config.sampling_rate == 1 and m.timestamp_secs for m in metadata)
    assert list(metadata[0].saved_model_tags) == ["serve"]


def test_call_by_rest_and_by_the_open_protocol_is_logged_as_a_predict(logging: Logging) -> None:
    server, x = logging.server, logging.saved.x
    pair = {"a": ("FP32", np.ones([1, 2], np.float32)), "b": ("INT32", np.int32([4]))}
    asked = {"inputs": pair, "outputs": ["sum"], "parameters": {"signature_name": "pair"}}
    with contextlib.ExitStack() as stack:
        clients = []
        for module, address in (
            (tritonclient.grpc, server.address),
            (tritonclient.http, server.url.partition("//")[2]),
        ):
            client = stack.enter_context(module.InferenceServerClient(address))
            clients.append((module, client))
        found = logging.logs_of(
            "toy",
            lambda: server.rest(REST_PREDICT, {"instances": x.tolist()}),
            lambda: server.rest(REST_PREDICT, {"inputs": ["é"], "signature_name": "text"}),
            lambda: infer(clients[0], **asked),
            lambda: infer(clients[1], **asked),
        )
    rows, text, *infers = (log.predict_log for log in found)
    assert rows.request.model_spec.name == rows.response.model_spec.name == "toy"
    assert np.array_equal(tf.make_ndarray(rows.request.inputs["x"]), x)
    assert logging.saved.right(1, tf.make_ndarray(rows.response.outputs["y"]))
    assert text.request.model_spec.signature_name == "text"
    assert tf.make_ndarray(text.request.inputs["s"]).tolist() == ["é".encode()]
    for log in infers:
        assert tf.make_ndarray(log.request.inputs["b"]).tolist() == [4]
        assert list(log.request.output_filter) == list(log.response.outputs) == ["sum"]
        assert log.request.model_spec.signature_name == "pair"


def test_calls_of_examples_are_logged(logging: Logging) -> None:
    server, answers = logging.server, []
    predictions = server.predictions
    classify = examples.asked(examples.CLASSIFY, "classify")
    regress = examples.asked(examples.REGRESS, "regress")
    both = examples.tasks(("m", "classify", "classify"), ("m", "regress", "regress"))
    rows = [{"x": x, "name": name.decode()} for x, name in examples.ROWS]

    def by_rest(verb: str) -> Callable[[], Any]:
        body = {"examples": rows, "signature_name": verb}
        return lambda: server.rest(f"/v1/models/m:{verb}", body)

    found = logging.logs_of(
        "m",
        lambda: answers.append(predictions.Classify(classify, timeout=20)),
        lambda: answers.append(predictions.Regress(regress, timeout=20)),
        lambda: answers.append(predictions.MultiInference(both, timeout=20)),
        by_rest("classify"),
        by_rest("regress"),
    )
    kinds = [log.WhichOneof("log_type") for log in found]
    assert kinds == ["classify_log", "regress_log", "multi_inference_log", *kinds[:2]]
    parts = [getattr(log, kind) for log, kind in zip(found, kinds, strict=True)]
    assert [part.request for part in parts[:3]] == [classify, regress, both]
    assert [part.response for part in parts[:3]] == answers
    for of_rest, answer, asked in zip(parts[3:], answers, (classify, regress), strict=False):
        assert of_rest.request == asked
        assert of_rest.response == answer


def test_failed_calls_and_those_that_are_not_sampled_are_not_logged(logging: Logging) -> None:
    server, x = logging.server, logging.saved.x
    unlogged = request("unlogged", x=x)
    found = logging.logs_of("toy", lambda: server.predict(x))
    failure(lambda: server.predictions.Predict(request(z=x), timeout=20))
    for _ in range(20):  # without a front the metadata is any client's
        server.predictions.Predict(unlogged, timeout=20, metadata=SAMPLED)
    found += logging.logs_of("toy", lambda: server.predict(x))
    assert len(found) == 2 and not logs(logging.folder / "log-unlogged")
    assert "model_server_requests_log_dropped_total{" not in server.rest("/metrics")[1]


def test_reload_changes_rates_and_prefixes_and_fails_no_call(logging: Logging) -> None:
    server, x = logging.server, logging.saved.x
    models = {"toy": 1.0, "unlogged": 0.0, "m": 1.0}
    stopped, failed, called = threading.Event(), [], []

    def call_on() -> None:
        while not stopped.is_set():
            try:
                called.append(server.predict(x))
            except Exception as error:
                failed.append(str(error))

    def more_calls(count: int) -> None:
        before = len(called)
        until(lambda: len(called) >= before + count)

    thread = threading.Thread(target=call_on, daemon=True)
    thread.start()
    try:
        logging.reload(server.channel, models, "log2")
        until(lambda: logs(logging.folder / "log2-toy"))
        logging.reload(server.channel, {**models, "toy": 0.0}, "log2")
        more_calls(5)  # those that had begun have ended
        before = logging.count()
        more_calls(30)
        assert logging.count() == before
        logging.reload(server.channel, models)
        until(lambda: logging.count() > before)
    finally:
        stopped.set()
        thread.join(20)
    assert failed == [] and server.text().count("toy version 1 is served") == 1


def test_logs_outlast_a_kill_and_warm_a_version_up(
    logging: Logging, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, rows = logging.server, np.full([3, 8], 0.5, np.float32)
    count = len(logs(logging.folder / "log-toy")) + 1
    logging.logs_of("toy", lambda: server.predict(rows))
    server.kill()
    found = logs(logging.folder / "log-toy")
    assert len(found) == count
    folder = logging.saved.copy(tmp_path / "toy", 1) / "1"
    (folder / "assets.extra").mkdir()
    (file,) = logging.folder.glob("log-toy.*")
    shutil.copy(file, folder / "assets.extra" / "tf_serving_warmup_requests")
    called: list[Any] = []
    plain = Signature.call_on

    def calls(self: Signature, number: int, arrays: Any) -> Any:
        called.append(arrays)
        return plain(self, number, arrays)

    monkeypatch.setattr(Signature, "call_on", calls)
    LoadedModel(folder, Devices(["/CPU:0"])).warm_up()
    assert any(np.array_equal(arrays.get("x"), rows) for arrays in called)
    assert len(called) >= len(found)


SLOW_WRITER = """
import request_log, time
write = request_log.RequestLog._write
request_log.RequestLog._write = lambda self, entry: time.sleep(0.02) or write(self, entry)
"""


def test_front_is_told_the_share_and_stop_writes_what_waits(
    saved: Saved, tmp_path: pathlib.Path
) -> None:
    front, logging = FakeFront(tmp_path), Logging(saved, tmp_path)
    saved.copy(tmp_path / "rare", 1)
    saved.copy(tmp_path / "other", 1)
    logging.config.write_text(logging.text({"toy": 0.25, "rare": 1e-9}))
    options = (
        f"--model-config-file={logging.config}",
        f"--model=other={tmp_path / 'other'}",
        f"--request-log={tmp_path / 'option'}",
        "--request-log-rate=0.5",
        f"--front={front.program}",
        "--no-warm-up",
    )
    log = tmp_path / "server.txt"
    with serving_kit.serving(*options, log=log, before=SLOW_WRITER) as server:
        logging.server = server
        until(lambda: len(front.said()) >= 3)
        assert set(front.said()) == {"sample toy 0.25", "sample rare 1e-09", "sample other 0.5"}
        with front.channel() as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            for name, metadata in (("rare", SAMPLED), ("rare", ()), ("other", SAMPLED)):
                for _ in range(40):
                    stub.Predict(request(name, x=saved.x), timeout=20, metadata=metadata)
            logging.reload(channel, {"toy": 0, "rare": 0.5})
            until(lambda: "sample other 0" in front.said())
            assert {"sample toy 0", "sample rare 0.5"} <= set(front.said())
            assert logging.count() < 80
            os.kill(server.pid, 15)
        assert server.status() == 0, server.text()
    found = [logs(tmp_path / prefix) for prefix in ("log-rare", "option.other")]
    assert [len(x) for x in found] == [40, 40]
    assert {x.log_metadata.sampling_config.sampling_rate for x in found[1]} == {0.5}
