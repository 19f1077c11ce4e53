# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Request logging: sampled calls, as messages PredictionLog in files of TFRecords.

event loop -> offer(entry) -> a bounded queue -> the writer's thread -> PREFIX.TIME.PROCESS

A call never waits for its log. An entry that does not fit into the queue, or that cannot be
written, is dropped and counted.
"""

import collections
import contextlib
import datetime
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from loaded_model import TAG, Arrays
from model_config import LogConfig
from tensor_protos import OF_STRING
from tensorflow_serving.apis import (
    classification_pb2,
    input_pb2,
    model_pb2,
    predict_pb2,
    prediction_log_pb2,
    regression_pb2,
)

_MOST_WAITING = 1000
_FILE_BYTES = 64 << 20
_FILE_SECONDS = 3600.0
_LOOK_SECONDS = 1.0  # between two looks for files that are old
_SAY_SECONDS = 60.0  # between two lines of what cannot be written
_OF_RECORD = 16  # bytes that a TFRecord has beside its message

# Makes the request and the response of a log; is given the ModelSpec of what has answered.
Messages = Callable[[Any], tuple[Any, Any]]


class Entry(NamedTuple):
    """A call that was answered.

    `signature` is the first one that was called, `kind` a field of PredictionLog, and `size` about
    the bytes of the messages, which the writer makes.
    """

    model: str
    version: int
    signature: str
    config: LogConfig
    kind: str
    size: int
    messages: Messages
    seconds: float  # since the epoch, when it was answered

    def record(self) -> bytes:
        """The PredictionLog, serialized."""
        log = prediction_log_pb2.PredictionLog()
        spec = log.log_metadata.model_spec
        spec.name, spec.signature_name = self.model, self.signature
        spec.version.value = self.version
        log.log_metadata.sampling_config.sampling_rate = self.config.rate
        log.log_metadata.saved_model_tags.append(TAG)
        log.log_metadata.timestamp_secs = int(self.seconds)
        part = getattr(log, self.kind)
        request, response = self.messages(spec)
        part.request.CopyFrom(request)
        part.response.CopyFrom(response)
        return bytes(log.SerializeToString())


class _File:
    """A file that is being written; raises tf.errors.OpError, as its methods do."""

    def __init__(self, prefix: str) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        self.path = f"{prefix}.{now:%Y%m%d-%H%M%S-%f}.{os.getpid()}"
        self.size = 0
        self.began = time.monotonic()
        self._writer = tf.io.TFRecordWriter(self.path)

    def write(self, record: bytes) -> None:
        """Writes a record to the file, where it stays whatever becomes of the process."""
        self._writer.write(record)
        self._writer.flush()
        self.size += len(record) + _OF_RECORD

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()

    def cut(self) -> None:
        """Ends the file where its last whole record ends."""
        with contextlib.suppress(tf.errors.OpError):
            self._writer.close()
        with contextlib.suppress(OSError):
            if self.size:
                os.truncate(self.path, self.size)
            else:
                os.remove(self.path)


class RequestLog:
    """The logs of all models, which a thread writes.

    `logged` has the number of entries that were written, by model, and `dropped` that of the
    others, by model and by why: "queue" was full, or an "error".

    Args:
      most_bytes: what the entries that wait may take together, about.
      file_bytes: a file that has as many bytes is closed, and the next one begun.
      file_seconds: likewise, a file that is as old.
    """

    def __init__(
        self,
        most_bytes: int,
        file_bytes: int = _FILE_BYTES,
        file_seconds: float = _FILE_SECONDS,
    ) -> None:
        self.logged: collections.Counter[str] = collections.Counter()
        self.dropped: collections.Counter[tuple[str, str]] = collections.Counter()
        self._most_bytes = most_bytes
        self._file_bytes = file_bytes
        self._file_seconds = file_seconds
        self._changed = threading.Condition()
        self._entries: collections.deque[Entry] = collections.deque()
        self._bytes = 0  # of the entries that wait, and of the one that is being written
        self._closed = False
        self._files: dict[str, _File] = {}  # by prefix
        self._say_from = 0.0
        self._thread = threading.Thread(target=self._write_on, name="request-log", daemon=True)
        self._thread.start()

    def offer(self, entry: Entry) -> None:
        """Has an entry written, if it fits into the queue."""
        with self._changed:
            if len(self._entries) < _MOST_WAITING and self._bytes + entry.size <= self._most_bytes:
                self._entries.append(entry)
                self._bytes += entry.size
                self._changed.notify()
            else:
                self.dropped[entry.model, "queue"] += 1

    def close(self, patience: float) -> bool:
        """Writes what waits; False if that takes longer than `patience` seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _write_on(self) -> None:
        while self._write_next():
            for prefix, file in list(self._files.items()):
                age = time.monotonic() - file.began
                if file.size >= self._file_bytes or age >= self._file_seconds:
                    self._end(prefix)
        for prefix in list(self._files):
            self._end(prefix)

    def _write_next(self) -> bool:
        """Writes an entry, if there is one within a moment; False after the last one."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._entries or self._closed, _LOOK_SECONDS if self._files else None
            )
            if not self._entries:
                return not self._closed
            entry = self._entries.popleft()
        written = self._write(entry)
        with self._changed:
            self._bytes -= entry.size
        if written:
            self.logged[entry.model] += 1
        else:
            self.dropped[entry.model, "error"] += 1
        return True

    def _write(self, entry: Entry) -> bool:
        prefix = entry.config.prefix
        try:
            record = entry.record()
            if prefix not in self._files:
                self._files[prefix] = _File(prefix)
            self._files[prefix].write(record)
        except Exception as error:
            self._say(prefix, error)
            if prefix in self._files:
                self._files.pop(prefix).cut()
            return False
        return True

    def _end(self, prefix: str) -> None:
        try:
            self._files.pop(prefix).close()
        except tf.errors.OpError as error:
            self._say(prefix, error)

    def _say(self, prefix: str, error: Exception) -> None:
        if time.monotonic() >= self._say_from:
            self._say_from = time.monotonic() + _SAY_SECONDS
            logging.error(
                "requests are not logged to %s: %s: %s. model_server_requests_log_dropped_total "
                "counts them.",
                *(prefix, type(error).__name__, str(error)[:500]),
            )


def size_of(arrays: Arrays) -> int:
    """The bytes that arrays take, about."""
    return sum(
        OF_STRING * x.size + sum(map(len, x.flat)) if x.dtype.kind == "O" else x.nbytes
        for x in arrays.values()
    )


def predict_messages(
    spec: model_pb2.ModelSpec, inputs: Arrays, outputs: Arrays, chosen: Sequence[str] = ()
) -> tuple[Any, Any]:
    """A call of Predict that came in another form; its client had `chosen` some outputs, or all."""
    request, response = predict_pb2.PredictRequest(), predict_pb2.PredictResponse()
    _name_model(request, response, spec)
    request.output_filter.extend(chosen)
    for fields, arrays in ((request.inputs, inputs), (response.outputs, outputs)):
        for name, array in arrays.items():
            fields[name].CopyFrom(tf.make_tensor_proto(array))
    return request, response


def examples_messages(
    spec: model_pb2.ModelSpec, examples: Sequence[bytes], result: Any
) -> tuple[Any, Any]:
    """A call of Classify or Regress that came in another form, of serialized tf.Examples."""
    given = input_pb2.Input()
    for example in examples:
        given.example_list.examples.add().ParseFromString(example)
    if isinstance(result, regression_pb2.RegressionResult):
        request = regression_pb2.RegressionRequest(input=given)
        response = regression_pb2.RegressionResponse(result=result)
    else:
        request = classification_pb2.ClassificationRequest(input=given)
        response = classification_pb2.ClassificationResponse(result=result)
    _name_model(request, response, spec)
    return request, response


def _name_model(request: Any, response: Any, spec: model_pb2.ModelSpec) -> None:
    request.model_spec.name, request.model_spec.signature_name = spec.name, spec.signature_name
    response.model_spec.CopyFrom(spec)
