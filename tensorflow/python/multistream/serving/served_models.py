# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers TensorFlow Serving's PredictRequests, bytes for bytes, without the GIL.

    models = ServedModels()
    models.publish("ranker", 3, {"serving_default": Predictor(...)})
    models.answer(socket)    batches of requests that come through a socket (front_frames.h)

C++ (served_models.h) finds the signature that a request asks for, reads the tensors, calls the
signature and answers. It leaves to Python, by code ASK_PYTHON, each request that is not plain:
with other inputs, dtypes or shapes than the signature, a label, a filter of outputs, for a model,
version or signature that is not published, broken or too large.
"""

import ctypes
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.serving import serving_callable

# front_frames.h
ASK_PYTHON = -1


class Predictor:
    """A signature of a SavedModel, made of its `tf.cuda.serving_callable`.

    Args:
      function: the callable.
      name: of the signature, for answers.
      device: calls run in the scope of this device.
      most_bytes: of an input.
      batch_sizes: rows of the steps that several requests may share, ascending.

    Raises:
      ValueError: the signature's inputs or outputs are not named tensors.
    """

    def __init__(
        self,
        function: serving_callable.ServingCallable,
        name: str,
        device: str,
        most_bytes: int,
        batch_sizes: Sequence[int] = (),
    ) -> None:
        self._handle: int | None = None
        named = function.named_tensors()
        if named is None:
            raise ValueError(f"signature {name}: its inputs or outputs are not named tensors")
        arguments, results = named
        self._function = function
        with ops.device(device):
            scope = context.context().device_name
        shapes: list[int] = []
        for leaf in arguments:
            if leaf.spec.shape.rank is None:
                shapes.append(-1)
            else:
                sizes = leaf.spec.shape.as_list()
                shapes += [len(sizes), *(-1 if size is None else size for size in sizes)]
        library = self._library = _library()
        self._handle = library.TFMS_NewPredictor(
            function.handle(),
            name.encode(),
            scope.encode() if scope else None,
            most_bytes,
            _strings([leaf.name for leaf in arguments]),
            (ctypes.c_int64 * len(shapes))(*shapes),
            _strings(results),
            (ctypes.c_int32 * (len(batch_sizes) + 1))(*batch_sizes, 0),
        )

    def __del__(self) -> None:
        if self._handle:
            self._library.TFMS_DeletePredictor(self._handle)

    def why_not_shared(self) -> str:
        """Why requests do not share steps; empty if they may. Call the function once before."""
        why = ctypes.create_string_buffer(1000)
        self._library.TFMS_WhyNotShared(self._handle, why, len(why))
        return why.value.decode(errors="replace")

    def handle(self) -> int | None:
        """The address of the object in C++, which lives as long as this one."""
        return self._handle


class ServedModels:
    """The versions of models that C++ answers for. Lives as long as the process."""

    def __init__(self) -> None:
        self._library = _library()
        self._models = self._library.TFMS_NewServedModels()
        self._published: dict[tuple[str, int], Mapping[str, Predictor]] = {}

    def publish(self, model: str, version: int, signatures: Mapping[str, Predictor]) -> None:
        """Answers for a version from now on; for requests without a version, the newest answers."""
        self.withdraw(model, version)()
        self._published[model, version] = dict(signatures)
        predictors = [predictor.handle() for predictor in signatures.values()]
        self._library.TFMS_PublishModel(
            self._models,
            model.encode(),
            version,
            _strings(list(signatures)),
            (ctypes.c_void_p * len(predictors))(*predictors),
            len(predictors),
        )

    def withdraw(self, model: str, version: int) -> Callable[[], None]:
        """Ends that for requests that come later.

        Returns a function, to be called once. It returns when no request uses the version.
        """
        predictors = self._published.pop((model, version), None)
        withdrawn = self._library.TFMS_WithdrawModel(self._models, model.encode(), version)

        def wait() -> None:
            nonlocal predictors
            if withdrawn:
                self._library.TFMS_WaitForRequests(withdrawn)
            predictors = None  # until now requests have used them

        return wait

    def frames(self) -> int:
        """The number of what the front must speak (front_frames.h)."""
        return int(self._library.TFMS_FrontFrames())

    def answer(self, connection: socket.socket) -> None:
        """Answers requests through a socket, until its other end is closed."""
        self._library.TFMS_AnswerRequests(self._models, connection.fileno())


def _strings(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


def _library() -> ctypes.CDLL:
    library = loader.library
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
    library.TFMS_NewPredictor.restype = pointer
    library.TFMS_NewPredictor.argtypes = [pointer, text, text, number, *[pointer] * 4]
    library.TFMS_WhyNotShared.argtypes = [pointer, text, ctypes.c_int]
    library.TFMS_DeletePredictor.argtypes = [pointer]
    library.TFMS_NewServedModels.restype = pointer
    library.TFMS_PublishModel.argtypes = [pointer, text, number, pointer, pointer, ctypes.c_int]
    library.TFMS_WithdrawModel.restype = pointer
    library.TFMS_WithdrawModel.argtypes = [pointer, text, number]
    library.TFMS_WaitForRequests.argtypes = [pointer]
    library.TFMS_AnswerRequests.argtypes = [pointer, ctypes.c_int]
    return library
