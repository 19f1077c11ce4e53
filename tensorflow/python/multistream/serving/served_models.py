# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers TensorFlow Serving's PredictRequests, bytes for bytes, without the GIL.

    devices = Devices(["/GPU:0", "/GPU:1"])
    models = ServedModels()
    models.publish("ranker", 3, {"serving_default": Predictor(callables, ..., devices, ...)})
    models.answer(socket)    batches of requests that come through a socket (front_frames.h)

C++ (served_models.h) finds the signature that a request asks for, reads the tensors, calls the
signature on the device that runs the fewest calls, and answers. It leaves to Python, by code
ASK_PYTHON, each request that is not plain: with other inputs, dtypes or shapes than the signature,
a label, a filter of outputs, for a model, version or signature that is not published, broken or too
large.
"""

import contextlib
import ctypes
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.groups import pinned
from tensorflow.python.multistream.serving import serving_callable

# front_frames.h
ASK_PYTHON = -1


class Devices:
    """The devices of a server, by `names`: each call runs on the one with the fewest calls.

    Devices that run equally many take turns. C++ counts its calls and those of `chosen` together.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.choice: int | None = None  # the address of the object in C++
        if len(self.names) > 1:
            library = _library()
            self.choice = library.TFMS_NewDeviceChoice(len(self.names))
            # They are short: the GIL stays.
            held = ctypes.PyDLL(library._name, handle=library._handle)
            self._begin, self._end = held.TFMS_BeginCall, held.TFMS_EndCall
            self._begin.argtypes = [ctypes.c_void_p]
            self._end.argtypes = [ctypes.c_void_p, ctypes.c_int]

    @contextlib.contextmanager
    def chosen(self) -> Iterator[int]:
        """Where a call, which the context is, is to run: the device's place in `names`."""
        if self.choice is None:
            yield 0
            return
        device = self._begin(self.choice)
        try:
            yield device
        finally:
            self._end(self.choice, device)


class Predictor:
    """A signature of a SavedModel, made of its `tf.cuda.serving_callable`.

    Args:
      functions: the callable of each device.
      name: of the signature, for answers.
      devices: calls run in the scopes of these devices.
      most_bytes: of an input.
      batch_sizes: rows of the steps that several requests may share, ascending.
      groups: numbers of the stream groups that calls run on; None: any.

    Raises:
      ValueError: the signature's inputs or outputs are not named tensors.
    """

    def __init__(
        self,
        functions: Sequence[serving_callable.ServingCallable],
        name: str,
        devices: Devices,
        most_bytes: int,
        batch_sizes: Sequence[int] = (),
        groups: range | None = None,
    ) -> None:
        self._handle: int | None = None
        named = functions[0].named_tensors()
        if named is None:
            raise ValueError(f"signature {name}: its inputs or outputs are not named tensors")
        arguments, results = named
        self._functions = functions
        # The number of each input's dtype, as types.proto has it.
        self.dtypes = {leaf.name: int(leaf.spec.dtype.as_datatype_enum) for leaf in arguments}
        scopes = []
        for device in devices.names:
            with ops.device(device):
                scope = context.context().device_name
                scopes.append(scope.encode() if scope else None)
        count = len(scopes)
        shapes: list[int] = []
        for leaf in arguments:
            if leaf.spec.shape.rank is None:
                shapes.append(-1)
            else:
                sizes = leaf.spec.shape.as_list()
                shapes += [len(sizes), *(-1 if size is None else size for size in sizes)]
        library = self._library = _library()
        self._handle = library.TFMS_NewPredictor(
            (ctypes.c_void_p * count)(*(function.handle() for function in functions)),
            (ctypes.c_char_p * count)(*scopes),
            count,
            devices.choice,
            name.encode(),
            most_bytes,
            _strings([leaf.name for leaf in arguments]),
            (ctypes.c_int64 * len(shapes))(*shapes),
            _strings(results),
            (ctypes.c_int32 * (len(batch_sizes) + 1))(*batch_sizes, 0),
            pinned.packed(groups),
        )

    def __del__(self) -> None:
        if self._handle:
            self._library.TFMS_DeletePredictor(self._handle)

    def why_not_shared(self) -> str:
        """Why requests do not share steps; empty if they may. Call the function once before."""
        why = ctypes.create_string_buffer(1000)
        self._library.TFMS_WhyNotShared(self._handle, why, len(why))
        return why.value.decode(errors="replace")

    def answered(self) -> int:
        """How many requests C++ has answered, with the signature's results or its error."""
        return int(self._library.TFMS_AnsweredByPredictor(self._handle))

    def handle(self) -> int | None:
        """The address of the object in C++, which lives as long as this one."""
        return self._handle


class ServedModels:
    """The versions of models that C++ answers for. Lives as long as the process."""

    def __init__(self) -> None:
        self._library = _library()
        self._models = self._library.TFMS_NewServedModels()
        self._published: dict[tuple[str, int], Mapping[str, Predictor]] = {}

    def publish(
        self, model: str, version: int, signatures: Mapping[str, Predictor]
    ) -> Callable[[], None]:
        """Answers for a version from now on; for requests without a version, the newest answers.

        Returns a function as `withdraw` does, of what had the same number until now.
        """
        replaced = self._published.pop((model, version), None)
        self._published[model, version] = dict(signatures)
        predictors = [predictor.handle() for predictor in signatures.values()]
        withdrawn = self._library.TFMS_PublishModel(
            self._models,
            model.encode(),
            version,
            _strings(list(signatures)),
            (ctypes.c_void_p * len(predictors))(*predictors),
            len(predictors),
        )
        return self._when_unused(withdrawn, replaced)

    def withdraw(self, model: str, version: int) -> Callable[[], None]:
        """Ends that for requests that come later.

        Returns a function, to be called once. It returns when no request uses the version.
        """
        predictors = self._published.pop((model, version), None)
        withdrawn = self._library.TFMS_WithdrawModel(self._models, model.encode(), version)
        return self._when_unused(withdrawn, predictors)

    def _when_unused(self, withdrawn: int | None, predictors: Any) -> Callable[[], None]:
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
    library.TFMS_NewDeviceChoice.restype = pointer
    library.TFMS_NewPredictor.restype = pointer
    library.TFMS_NewPredictor.argtypes = [
        *(pointer, pointer, ctypes.c_int, pointer),
        *(text, number, pointer, pointer, pointer, pointer, number),
    ]
    library.TFMS_WhyNotShared.argtypes = [pointer, text, ctypes.c_int]
    library.TFMS_AnsweredByPredictor.restype = number
    library.TFMS_AnsweredByPredictor.argtypes = [pointer]
    library.TFMS_DeletePredictor.argtypes = [pointer]
    library.TFMS_NewServedModels.restype = pointer
    library.TFMS_PublishModel.restype = pointer
    library.TFMS_PublishModel.argtypes = [pointer, text, number, pointer, pointer, ctypes.c_int]
    library.TFMS_WithdrawModel.restype = pointer
    library.TFMS_WithdrawModel.argtypes = [pointer, text, number]
    library.TFMS_WaitForRequests.argtypes = [pointer]
    library.TFMS_AnswerRequests.argtypes = [pointer, ctypes.c_int]
    return library
