# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Which calls share steps: by options, or TensorFlow Serving's file of batching parameters."""

import logging
import pathlib
from typing import NamedTuple

from google.protobuf import text_format
from made_messages import messages_of

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


ALONE = Batching((1,), 0, 4096)


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
