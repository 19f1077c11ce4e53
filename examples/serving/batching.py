# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Which calls share steps: by options, or TensorFlow Serving's file of batching parameters."""

import logging
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from google.protobuf import text_format
from made_messages import messages_of
from tensorflow.python.multistream.serving.served_models import Predictor, ServedModels

MOST_ROWS = 4096
# TensorFlow Serving's BatchingParameters, which tensorflow-serving-api does not have. The text
# format has names alone, so the numbers may be any.
_MESSAGES = messages_of(
    "model_server",
    """
Int64Value value:int64=1
StringValue value:string=1
BoolValue value:bool=1
BatchingParameters allowed_batch_sizes:int64*=1 pad_variable_length_inputs:bool=2 \
max_batch_size:Int64Value=3 batch_timeout_micros:Int64Value=4 max_enqueued_batches:Int64Value=5 \
num_batch_threads:Int64Value=6 thread_pool_name:StringValue=7 \
enable_large_batch_splitting:BoolValue=8
""",
)


class Batching(NamedTuple):
    """Calls of a signature share a step of at most the last of `sizes` rows, which ascend.

    A call waits for others for at most `wait_us` microseconds, and only while a step of its
    signature runs. At most `steps` of a signature run at once.
    """

    sizes: tuple[int, ...]
    wait_us: int
    steps: int

    @property
    def shares(self) -> bool:
        """Whether a step may have more than one call."""
        return self.sizes[-1] > 1


_ALONE = Batching((1,), 0, 4096)


class BatchedModels(ServedModels):
    """The models that a front's calls reach; tells the front which calls may share steps."""

    def __init__(self, batching: Batching) -> None:
        super().__init__()
        self._batching = batching
        self._said: dict[tuple[str, str], Batching] = {}
        self._tell: Callable[[str, str, Batching], None] | None = None

    def publish(self, model: str, version: int, signatures: Mapping[str, Predictor]) -> None:
        """As ServedModels; from now on calls of the version's signatures share steps, or not."""
        super().publish(model, version, signatures)
        if not self._batching.shares:
            return
        for name, predictor in signatures.items():
            why = predictor.why_not_shared()
            if re.search(r"\s", name) or not name:
                why = "its name has blanks"
            if why:
                logging.warning(
                    "calls of %s version %d, signature %s, do not share steps: %s",
                    *(model, version, name, why),
                )
            said = _ALONE if why else self._batching
            self._said[model, name] = said
            if self._tell is not None:
                self._tell(model, name, said)

    def tell(self, tell: Callable[[str, str, Batching], None]) -> None:
        """Calls `tell` for each signature now, and again when the signature changes."""
        self._tell = tell
        for (model, name), said in list(self._said.items()):
            tell(model, name, said)


def batching(rows: int, wait_us: int, steps: int) -> Batching:
    """Of steps that have a power of two of rows, or as many as `rows`."""
    sizes = [1 << power for power in range(rows.bit_length()) if 1 << power < rows]
    return Batching((*sizes, rows), wait_us, steps)


def read(file: pathlib.Path, rows: int, wait_us: int, steps: int) -> Batching:
    """Reads a file of batching parameters, in protobuf's text format.

    The other arguments are for what the file leaves out.

    Raises:
      ValueError: the file cannot be read, or has a value that is not supported.
    """
    parameters = _MESSAGES["BatchingParameters"]()
    try:
        text_format.Parse(file.read_text(), parameters)
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise ValueError(f"{file}: {error}") from error
    for name, is_asked in {
        "pad_variable_length_inputs": parameters.pad_variable_length_inputs,
        "enable_large_batch_splitting": parameters.enable_large_batch_splitting.value,
    }.items():
        if is_asked:
            raise ValueError(f"{file}: {name} is not supported; leave it out")
    if parameters.HasField("max_enqueued_batches"):
        logging.warning("%s: max_enqueued_batches has no effect: --queue bounds calls", file)

    def number(name: str, default: int, low: int, high: int) -> int:
        value = getattr(parameters, name).value if parameters.HasField(name) else default
        if not low <= value <= high:
            raise ValueError(f"{file}: {name} is {value}; it may be {low} to {high}")
        return int(value)

    most = number("max_batch_size", rows, 1, MOST_ROWS)
    made = batching(
        most,
        number("batch_timeout_micros", wait_us, 0, 10**7),
        number("num_batch_threads", steps, 1, 4096),
    )
    sizes = tuple(parameters.allowed_batch_sizes)
    if not sizes:
        return made
    if sizes != tuple(sorted(set(sizes))) or sizes[0] < 1 or sizes[-1] != most:
        raise ValueError(
            f"{file}: allowed_batch_sizes are {list(sizes)}; they must rise, from 1 or more to "
            f"max_batch_size, {most}"
        )
    return made._replace(sizes=sizes)
