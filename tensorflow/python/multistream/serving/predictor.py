# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A signature that answers TensorFlow Serving's PredictRequest, bytes for bytes, without the GIL.

    spec_of(request)           which model, version and signature?
    Predictor(...)(request)    C++ (predictor.h) reads tensors, calls the signature, and answers

Both give None for a request that is not plain, which the caller answers in Python: it has another
input, dtype or shape than the signature, a label, a filter of outputs, or is broken or too large.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.serving import serving_callable


class ModelSpec(NamedTuple):
    """What a request asks for: `signature` may be empty, `version` None."""

    model: str
    signature: str
    version: int | None


class _Prediction(ctypes.Structure):
    # predictor.h, Prediction
    _fields_ = (
        ("code", ctypes.c_int32),
        ("message", ctypes.c_char_p),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_int64),
    )


def spec_of(request: bytes) -> ModelSpec | None:
    """Reads the model_spec of a PredictRequest; None if the request is not plain."""
    spec = (ctypes.c_int64 * 5)()
    if not loader.library.TFMS_ReadModelSpec(request, ctypes.c_int64(len(request)), spec):
        return None
    model, model_size, signature, signature_size, version = spec
    try:
        return ModelSpec(
            request[model : model + model_size].decode(),
            request[signature : signature + signature_size].decode(),
            None if version < 0 else version,
        )
    except UnicodeDecodeError:
        return None


class Predictor:
    """Answers requests by a `tf.cuda.serving_callable` that is made of a SavedModel's signature.

    Args:
      function: the callable.
      name: of the signature, for answers.
      device: calls run in the scope of this device.
      most_bytes: of an input.

    Raises:
      ValueError: the signature's inputs or outputs are not named tensors.
    """

    def __init__(
        self, function: serving_callable.ServingCallable, name: str, device: str, most_bytes: int
    ) -> None:
        self._predictor: int | None = None
        named = function.named_tensors()
        if named is None:
            raise ValueError(f"signature {name}: its inputs or outputs are not named tensors")
        arguments, results = named
        self._function = function
        self._most_bytes = most_bytes
        with ops.device(device):
            scope = context.context().device_name
        self._device = scope.encode() if scope else None
        shapes: list[int] = []
        for leaf in arguments:
            if leaf.spec.shape.rank is None:
                shapes.append(-1)
            else:
                sizes = leaf.spec.shape.as_list()
                shapes += [len(sizes), *(-1 if size is None else size for size in sizes)]
        library = self._library = _library()
        self._predictor = library.TFMS_NewPredictor(
            function.handle(),
            name.encode(),
            _strings([leaf.name for leaf in arguments]),
            (ctypes.c_int64 * len(shapes))(*shapes),
            _strings(results),
        )

    def __del__(self) -> None:
        if self._predictor:
            self._library.TFMS_DeletePredictor(self._predictor)

    def __call__(self, request: bytes, model: str, version: int) -> bytes | None:
        """Answers a PredictRequest with the bytes of a PredictResponse of this model and version.

        Returns None, and has not called the signature, if the request is not plain.

        Raises:
          tf.errors.OpError: the error that a call of the signature raises, with the same type.
        """
        address = self._library.TFMS_Predict(
            self._predictor,
            self._device,
            request,
            len(request),
            model.encode(),
            version,
            self._most_bytes,
        )
        if not address:
            return None
        try:
            answer = _Prediction.from_address(address)
            if answer.code:
                message = (answer.message or b"").decode(errors="replace")
                self._function.raise_error(answer.code, message)
            return ctypes.string_at(answer.bytes, answer.size)
        finally:
            self._library.TFMS_DeletePrediction(address)


def _strings(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


def _library() -> ctypes.CDLL:
    library = loader.library
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
    library.TFMS_NewPredictor.restype = pointer
    library.TFMS_NewPredictor.argtypes = [pointer, text, pointer, pointer, pointer]
    library.TFMS_DeletePredictor.argtypes = [pointer]
    library.TFMS_Predict.restype = pointer
    library.TFMS_Predict.argtypes = [pointer, text, text, number, text, number, number]
    library.TFMS_DeletePrediction.argtypes = [pointer]
    return library
