# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""One version of a model: a SavedModel in memory, its signatures, and its first calls."""

import contextlib
import itertools
import logging
import pathlib
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import numpy as np
import tensorflow as tf
from device_names import stream_groups_of
from serving_error import invalid, not_found
from tensor_protos import array_of
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.checkpoint import trackable_view
from tensorflow.python.multistream.groups import pinned
from tensorflow.python.multistream.serving.served_models import Devices, Predictor
from tensorflow.python.saved_model import loader_impl
from tensorflow_serving.apis import prediction_log_pb2

TAG = "serve"
# A step is recorded when two like it have run on its group.
_WARM_UP_CALLS = 3
_WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
DEFAULT_SIGNATURE = "serving_default"

Arrays = dict[str, Any]


class Signature:
    """A signature of a SavedModel, as a function of arrays; `lock_free` is by serving_callable.

    Each of the devices has one of `functions`. `most_bytes` is the limit of one input for
    `predictor`, and `batch_sizes` are its steps' rows. Calls run on stream `groups`, or on any.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[Any],
        devices: Devices,
        lock_free: bool,
        most_bytes: int,
        batch_sizes: Sequence[int],
        groups: range | None,
    ) -> None:
        self.name = name
        takes = functions[0].structured_input_signature[1]
        self.inputs: dict[str, Any] = dict(sorted(takes.items()))
        self._functions = functions
        self._devices = devices
        self.groups = groups
        self._arrays_functions: Sequence[Any] = ()
        # For a front, which answers requests that are plain.
        self.predictor: Predictor | None = None
        if lock_free:
            try:
                called = self._arrays_functions = [tf.cuda.serving_callable(x) for x in functions]
                self.predictor = Predictor(called, name, devices, most_bytes, batch_sizes, groups)
            except (NotImplementedError, TypeError, ValueError) as error:
                logging.info("signature %s is not called in C++ alone: %s", name, error)

    def check_names(self, names: Set[str]) -> None:
        """ServingError if an input is missing, or unknown."""
        if names == self.inputs.keys():
            return
        takes = ", ".join(f"{n}: {s.dtype.name}{s.shape}" for n, s in self.inputs.items())
        for name in sorted(names - self.inputs.keys()):
            raise invalid(
                f"signature {self.name} has no input {name[:100]!r}. It takes {takes or 'none'}."
            )
        for name in sorted(self.inputs.keys() - names):
            raise invalid(f"input {name!r} is missing. Signature {self.name} takes {takes}.")

    def check(self, arrays: Arrays) -> None:
        """ServingError if an input is missing, unknown, or of another dtype or shape."""
        self.check_names(arrays.keys())
        for name, spec in self.inputs.items():
            array = arrays[name]
            found = tf.string if array.dtype.kind in "OSU" else tf.as_dtype(array.dtype)
            if found != spec.dtype:
                raise invalid(
                    f"input {name!r} is {found.name}, and signature {self.name} takes "
                    f"{spec.dtype.name}."
                )
            if not spec.shape.is_compatible_with(array.shape):
                raise invalid(
                    f"input {name!r} has shape {array.shape}, and signature {self.name} takes "
                    f"{spec.shape}."
                )

    def __call__(self, arrays: Arrays) -> Arrays:
        """Calls the function, as one step on the device and stream group with the least to do.

        The arrays must have passed `check`.
        """
        with self._devices.chosen() as number:
            if self.groups is None:
                return self.call_on(number, arrays)
            with pinned.PinnedGroup(self.groups):
                return self.call_on(number, arrays)

    def call_on(self, number: int, arrays: Arrays) -> Arrays:
        """Calls the function on one of the devices, with arrays that have passed `check`."""
        device = self._devices.names[number]
        if self._arrays_functions:
            with tf.device(device):
                return dict(self._arrays_functions[number](**arrays))
        with tf.device("/CPU:0"):  # the step itself copies them to the GPU, on its own stream
            tensors = {n: tf.constant(x, self.inputs[n].dtype) for n, x in arrays.items()}
        with tf.device(device):
            results = self._functions[number](**tensors)
            # Of a single string numpy() makes no array.
            return {n: np.asarray(x.numpy(), x.dtype.as_numpy_dtype) for n, x in results.items()}

    def chosen(self, results: Arrays, names: Iterable[str], field: str) -> Arrays:
        """The results that a field of a request names, all if it names none; or ServingError."""
        wanted = list(dict.fromkeys(names)) or list(results)
        for name in wanted:
            if name not in results:
                raise invalid(
                    f"{field}: signature {self.name} has no output {name[:100]!r}. It has "
                    f"{', '.join(sorted(results))}."
                )
        return {name: results[name] for name in wanted}


class LoadedModel:
    """A SavedModel on each of some devices.

    `variable_bytes` are the bytes of its variables on all devices. Raises what TensorFlow raises if
    it cannot be loaded; with several devices, a RuntimeError that names the device.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        devices: Devices,
        lock_free: bool = False,
        most_bytes: int = 1 << 31,
        batch_sizes: Sequence[int] = (),
        groups: range | None = None,
    ) -> None:
        self._folder = folder
        self._devices = devices
        self._batch_sizes = batch_sizes
        graphs = loader_impl.parse_saved_model(str(folder)).meta_graphs
        served = [graph for graph in graphs if TAG in graph.meta_info_def.tags]
        if not served:
            raise ValueError(f"{folder} has no graph with the tag {TAG!r}")
        if len(devices.names) > 1:
            _warn_of_gpus_in(served[0], folder)
        self._models: list[Any] = []
        for device in devices.names:
            with self._errors_name(device), tf.device(device):
                self._models.append(tf.saved_model.load(str(folder), tags=[TAG]))
        self.variable_bytes = sum(map(_variable_bytes, self._models))
        self.signatures = {
            name: Signature(
                name,
                [model.signatures[name] for model in self._models],
                *(devices, lock_free, most_bytes, batch_sizes, groups),
            )
            for name in self._models[0].signatures
        }
        # Without those that only loading needs, such as __saved_model_init_op.
        self.signature_defs: dict[str, meta_graph_pb2.SignatureDef] = {
            name: definition
            for name, definition in served[0].signature_def.items()
            if name in self.signatures
        }

    def signature(self, name: str) -> Signature:
        """A signature by its name, empty for the default one; ServingError if there is none."""
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            known = ", ".join(sorted(self.signatures)) or "none"
            raise not_found(f"signature {name[:100]!r} is not one of {known}.")
        return self.signatures[name]

    def front_calls(self) -> int:
        """How many calls of the front it has computed."""
        predictors = (signature.predictor for signature in self.signatures.values())
        return sum(predictor.answered() for predictor in predictors if predictor is not None)

    def warm_up(self) -> None:
        """Makes the calls that are slow because they are the first, on its groups of all devices.

        They are the requests of assets.extra/tf_serving_warmup_requests, each of which has to be
        answered, or else a call of each signature with zeros, which a model may refuse.
        """
        file = self._folder / _WARM_UP_FILE
        if file.exists():
            for request in _requests(file):
                arrays = {n: array_of(x, n, 1 << 31) for n, x in request.inputs.items()}
                signature = self.signature(request.model_spec.signature_name)
                self._call_on_all_groups(signature, arrays)
            return
        for signature in self.signatures.values():
            try:
                self._call_on_all_groups(signature, _zeros(signature))
            except Exception as error:
                logging.info("no warm-up of %s: %s", signature.name, str(error)[:500])

    def _call_on_all_groups(self, signature: Signature, arrays: Arrays) -> None:
        signature.check(arrays)
        self._call_on_each(signature, arrays)
        if signature.predictor is None or signature.predictor.why_not_shared():
            return
        for rows in self._batch_sizes:
            resized = {
                n: np.resize(x, (rows, *x.shape[1:])) if x.ndim else x for n, x in arrays.items()
            }
            if all(x.shape == arrays[n].shape for n, x in resized.items()):
                continue  # they were called above
            try:
                self._call_on_each(signature, resized)
            except Exception as error:
                logging.info("no warm-up of %s, %d rows: %s", signature.name, rows, error)

    def _call_on_each(self, signature: Signature, arrays: Arrays) -> None:
        for number, device in enumerate(self._devices.names):
            with self._errors_name(device):
                _call_on_groups(signature, number, device, arrays)

    @contextlib.contextmanager
    def _errors_name(self, device: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if len(self._devices.names) == 1:
                raise
            raise RuntimeError(f"on {device}: {type(error).__name__}: {error}") from error


def _call_on_groups(signature: Signature, number: int, device: str, arrays: Arrays) -> None:
    groups = stream_groups_of(device)
    if groups < 2:
        signature.call_on(number, arrays)
        return
    for group in signature.groups or range(groups):
        # tf.cuda.stream_group takes no number that the first GPU lacks.
        with pinned.PinnedGroup(group):
            for _ in range(_WARM_UP_CALLS):
                signature.call_on(number, arrays)


def _variable_bytes(model: Any) -> int:
    """The bytes of a loaded model's variables, by their shapes; the text of strings counts 0."""
    tracked = trackable_view.TrackableView(model).descendants()
    return sum(
        _elements_of(variable) * variable.dtype.size
        for variable in tracked
        if isinstance(variable, tf.Variable)
    )


def _elements_of(variable: tf.Variable) -> int:
    if variable.shape.is_fully_defined():
        return int(variable.shape.num_elements())
    if not variable.is_initialized():
        return 0
    # Each value has a shape of its own: the runtime knows that of this one.
    shape = tf.raw_ops.VariableShape(input=variable.handle, out_type=tf.int64)
    return int(np.prod(shape.numpy()))


def _warn_of_gpus_in(graph: meta_graph_pb2.MetaGraphDef, folder: pathlib.Path) -> None:
    functions = (function.node_def for function in graph.graph_def.library.function)
    for node in itertools.chain(graph.graph_def.node, *functions):
        if "GPU:" in node.device.upper():
            logging.warning(
                "%s: the model itself places %s on %s, so that a call runs in part there, whatever "
                "its device. Save the model without tf.device.",
                *(folder, node.name, node.device),
            )
            return


def _zeros(signature: Signature) -> Arrays:
    found = {}
    for name, spec in signature.inputs.items():
        shape = [] if spec.shape.rank is None else [size or 1 for size in spec.shape]
        if spec.dtype == tf.string:
            found[name] = np.full(shape, b"", object)
        else:
            found[name] = np.zeros(shape, spec.dtype.as_numpy_dtype)
    return found


def _requests(file: pathlib.Path) -> Iterator[Any]:
    for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        if log.WhichOneof("log_type") == "predict_log":
            yield log.predict_log.request
