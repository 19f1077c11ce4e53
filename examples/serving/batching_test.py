# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Calls share steps where they may, each has its own rows, and models keep to their shares."""

import concurrent.futures
import itertools
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import batching
import grpc
import numpy as np
import pytest
import server_options
import serving_kit
from grpc_front import Front
from serving_kit import FRONT, Saved, Server, failure, request, slow, until
from tensorflow.python.multistream.serving.served_models import ServedModels

_CLIENTS, _CALLS = 12, 40


@pytest.fixture(scope="module")
def sharing(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose steps are of up to 8 rows, two at once.

    `other` may run one call, no more, and `placed` has stream groups 2 and 3.
    """
    folder = tmp_path_factory.mktemp("sharing")
    models = (
        f"--model={name}={saved.copy(folder / name, version)}"
        for name, version in (("toy", 1), ("other", 2), ("placed", 2))
    )
    options = ("--max-batch=8", "--batch-steps=2", "--batch-timeout-us=20000", "--poll-seconds=0.2")
    with serving_kit.serving(
        *(*models, *options, f"--front={FRONT}", "--share=other=steps:1,queue:0"),
        "--groups=placed=2-3",
        log=folder / "log",
        TF_MULTI_STREAM_CAPTURE="auto",
    ) as server:
        yield server


def check_rows(
    server: Server, saved: Saved, begin: int, rows: int, versions: tuple[int, ...]
) -> int:
    """The version that has answered for some rows; the last bits may be those of any batch."""
    asked = slice(begin, begin + rows)
    got = server.predict(saved.x[asked])
    for version in versions:
        want = saved.answers[f"y{version}"][asked]
        if got.shape == want.shape and np.allclose(got, want, rtol=0, atol=serving_kit.OF_BATCHES):
            return version
    raise AssertionError(f"rows {begin} to {begin + rows}: {got}")


def test_calls_share_steps_and_each_has_its_rows(sharing: Server, saved: Saved) -> None:
    names = ("batches_total", "batched_calls_total", "group_steps_started_total")
    computed = sharing.by_version("calls_total")[1]

    def figures() -> np.ndarray:
        return np.array([sharing.total(f"model_server_{name}") for name in names])

    def client(number: int) -> None:
        for i in range(_CALLS):
            rows = 1 + (number + i) % 3
            check_rows(sharing, saved, (5 * number + i) % (len(saved.x) - rows), rows, (1,))

    began = figures()
    with concurrent.futures.ThreadPoolExecutor(_CLIENTS) as clients:
        list(clients.map(client, range(_CLIENTS)))
    batches, calls, steps = figures() - began
    assert calls == _CLIENTS * _CALLS
    assert batches < calls
    assert steps == batches, "a batch is one step"
    assert sharing.by_version("calls_total") == {1: computed + _CLIENTS * _CALLS}


def test_signatures_whose_calls_cannot_share_steps_are_named(sharing: Server) -> None:
    assert "calls of toy version 1, signature slow, do not share steps: LoopCond" in sharing.text()
    assert "signature serving_default, do not" not in sharing.text()
    assert sharing.predictions.Predict(slow(3), timeout=20).outputs["y"].dtype == 1


def test_versions_change_under_calls_that_share_steps(sharing: Server, saved: Saved) -> None:
    ended = threading.Event()
    seen: set[int] = set()
    wrong: list[BaseException] = []

    def client(number: int) -> None:
        for i in itertools.count():
            if ended.is_set():
                return
            try:
                seen.add(check_rows(sharing, saved, (number + i) % 12, 1 + i % 4, (1, 2)))
            except BaseException as error:
                wrong.append(error)
                return

    clients = [
        threading.Thread(target=client, args=(number,), daemon=True) for number in range(_CLIENTS)
    ]
    for each in clients:
        each.start()
    try:
        saved.copy(pathlib.Path(sharing.options[0].rpartition("=")[2]), 2)
        until(lambda: "toy version 1 is dropped" in sharing.text() or wrong, 60)
    finally:
        ended.set()
        for each in clients:
            each.join(60)
    assert not wrong, wrong[0]
    assert seen == {1, 2}


def test_a_model_keeps_to_its_share_and_others_do_not_notice(sharing: Server, saved: Saved) -> None:
    busy = slow(serving_kit.FOREVER)
    busy.model_spec.name = "other"
    running = sharing.predictions.Predict.future(busy, timeout=5)
    until(lambda: sharing.running() == 1)
    code, text = failure(
        lambda: sharing.predictions.Predict(request("other", x=saved.x[:1]), timeout=20)
    )
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert text.startswith("as many calls of model other wait as may, 0 (--share)")
    check_rows(sharing, saved, 0, 2, (1, 2))
    assert failure(running.result)[0] == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_model_keeps_to_its_groups(sharing: Server, saved: Saved) -> None:
    def steps() -> list[float]:
        started = sharing.metric("model_server_group_steps_started_total")
        return [started[f'{{gpu="0",group="{i}"}}'] for i in range(serving_kit.GROUPS)]

    def ran(call: Callable[[], Any]) -> tuple[float, float]:
        """Of 8 calls, how many ran on groups 0 and 1, and on 2 and 3."""
        before = steps()
        for _ in range(8):
            call()
        more = [now - then for now, then in zip(steps(), before, strict=True)]
        return more[0] + more[1], more[2] + more[3]

    plain = request("placed", x=saved.x)
    assert ran(lambda: sharing.predictions.Predict(plain, timeout=20)) == (0, 8)
    by_python = request("placed", x=saved.x)
    by_python.output_filter.append("y")
    assert ran(lambda: sharing.predictions.Predict(by_python, timeout=20)) == (0, 8)
    assert ran(lambda: check_rows(sharing, saved, 0, 2, (1, 2)))[0] > 0  # of another model


def test_front_of_another_build_is_refused() -> None:
    class Newer(ServedModels):
        def frames(self) -> int:
            return 99

    options = server_options.parse(["--model=a=.", "--port=0", f"--front={FRONT}"])
    arguments = {"read-timeout-ms": 1000, "most-streams": 1, "idle-ms": 1000}
    with pytest.raises(OSError, match=r"not of the same build.*scripts/build_front.sh"):
        Front(options, "nowhere", Newer(), [], arguments)


def test_samples_and_traced_calls_go_to_python_and_say_so(tmp_path: pathlib.Path) -> None:
    """What a client says of samples itself is not passed on."""
    seen: list[dict[str, Any]] = []

    class Python(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            seen.append(dict(details.invocation_metadata))
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    python = grpc.server(concurrent.futures.ThreadPoolExecutor(1), handlers=[Python()])
    python.add_insecure_port(f"unix:{tmp_path}/grpc")
    python.start()
    options = server_options.parse(["--model=a=.", "--port=0", f"--front={FRONT}"])
    arguments = {"read-timeout-ms": 1000, "most-streams": 100, "idle-ms": 100000}
    front = Front(options, str(tmp_path), ServedModels(), ["a"], arguments)
    traced = f"00-{'a' * 32}-{'b' * 16}-01"

    with grpc.insecure_channel(f"127.0.0.1:{front.port}") as channel:
        call = channel.unary_unary(serving_kit.PREDICT)

        def metadata_of(*sent: tuple[str, str]) -> dict[str, Any]:
            call(request("a").SerializeToString(), metadata=sent, timeout=20, wait_for_ready=True)
            return {k: v for k, v in seen[-1].items() if k.startswith(("trace", "x-"))}

        # No model is published: Python answers all calls, most of which are no samples.
        assert metadata_of(("x-sampled", "1"), ("x-other", "1")) == {"x-sampled": "0"}
        both = (("traceparent", traced), ("tracestate", "a=b"))
        assert metadata_of(*both) == {**dict(both), "x-sampled": "0"}
        front.trace()
        assert metadata_of(*both) == {**dict(both), "x-sampled": "0"}
        front.sample("a", 1)
        until(lambda: metadata_of() == {"x-sampled": "1"})
        front.sample("a", 0)
        until(lambda: metadata_of() == {"x-sampled": "0"})
    python.stop(0)


def test_file_of_batching_parameters(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "batching"

    def read(text: str) -> batching.Batching:
        file.write_text(text)
        return batching.read(file, 8, 100, 3)

    assert read("") == ((1, 2, 4, 8), 100, 3)
    full = read(
        "max_batch_size { value: 24 } batch_timeout_micros { value: 7 } num_batch_threads "
        '{ value: 5 } thread_pool_name { value: "a" } max_enqueued_batches { value: 9 }'
    )
    assert full == ((1, 2, 4, 8, 16, 24), 7, 5)
    assert read("allowed_batch_sizes: [4, 8]").sizes == (4, 8)
    for text, error in (
        ("max_batch_size { value: 0 }", "max_batch_size is 0; it may be 1 to 4096"),
        ("num_batch_threads { value: -1 }", "num_batch_threads is -1; it may be 1 to 4096"),
        ("allowed_batch_sizes: [8, 4]", r"allowed_batch_sizes are \[8, 4\]"),
        ("allowed_batch_sizes: [4]", "to max_batch_size, 8"),
        ("pad_variable_length_inputs: true", "pad_variable_length_inputs is not supported"),
        ("enable_large_batch_splitting { value: true }", "splitting is not supported"),
        ("max_batch: 3", '1:1 .*no field named "max_batch"'),
    ):
        with pytest.raises(ValueError, match=f"(?s){file}.*{error}"):
            read(text)
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=str(file)):
        batching.read(file, 8, 100, 3)


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--max-batch=8", "--max-batch and --batching-parameters-file need --front"),
        (f"--front={FRONT} --max-batch=8 --no-warm-up", "need the warm-up"),
        ("--share=a=steps:1", "--share needs --front"),
        ("--groups=a=1-x", "'a=1-x' is not NAME=GROUP or NAME=FIRST-LAST"),
        ("--groups=a=3-2", "'a=3-2' names no group: 3 is above 2"),
        ("--groups=a=1 --groups=a=2", "--groups names a model twice: a"),
        ("--share=a=steps:0", "'a=steps:0' is not NAME=steps:N,queue:N,priority:N"),
        ("--share=a", "'a' is not NAME=steps"),
        ("--share=a=threads:1", "'a=threads:1' is not NAME=steps"),
        ("--batching-parameters-file=nowhere", "nowhere"),
    ],
)
def test_wrong_options_are_named(
    option: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        server_options.parse(["--model=a=.", *option.split()])
    assert error in capsys.readouterr().err
