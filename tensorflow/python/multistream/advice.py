# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""`tf.cuda.advise`: measures a model, and says which variables to export for it."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import config
from tensorflow.python.multistream import (
    advice_model,
    advice_process,
    advice_report,
    advice_search,
)
from tensorflow.python.multistream.advice_report import Advice

THREADS = (1, 4, 8, 16)
GROUPS = (1, 2, 4, 8, 16)
# "cost" tries the plans of the other policies, too (docs/policies.md).
POLICIES = ("cost",)
SECONDS = 60.0
MAX_INT = 9

_ALL_POLICIES = ("embedding", "full_graph", "cost")
_LONGEST = 3600


def advise(
    fn: Any,
    example: Any = None,
    *,
    signature: str = advice_model.SIGNATURE,
    seconds: float = SECONDS,
    threads: Sequence[int] = THREADS,
    groups: Sequence[int] = GROUPS,
    policies: Sequence[str] = POLICIES,
    batch: int = 1,
    max_int: int = MAX_INT,
    progress: bool = True,
) -> Advice:
    """Measures a model with several settings, and says which variables to export for it.

    ```python
    print(tf.cuda.advise("path/to/saved_model"))
    print(tf.cuda.advise(model, [images]))
    ```

    It measures stock TensorFlow, stream groups, captured steps, `tf.cuda.serving_callable` and
    policies, each in a process of its own and from several threads; then the best again, in turns
    with stock. Every result is compared with stock TensorFlow's.

    Args:
      fn: a SavedModel's directory or signature, a concrete function, a `tf.function`, a `tf.Module`
        that can be called, or a Keras model. What is no directory is saved in a temporary one. On
        a GPU, memory must grow in this process (`TF_FORCE_GPU_ALLOW_GROWTH=true`).
      example: what to call it with: arrays, or tensors, for its arguments, by name or as a
        sequence (of a directory's signature in the order of their names). None: random numbers, if
        it is known what it takes.
      signature: of a directory, which one to call.
      seconds: how long to measure, all in all, 1 to 3600. The processes need more time to start.
      threads: how many threads call at once.
      groups: which numbers of stream groups to try, in ascending order.
      policies: which to try, of those of `tf.cuda.auto_stream`, for one thread.
      batch: of random inputs, the size of unknown dimensions.
      max_int: of random inputs, the largest integer.
      progress: whether to say on stderr what is measured.

    Returns:
      The advice. Prints as a report.

    Raises:
      FileNotFoundError: there is no such directory, or no SavedModel in it.
      TypeError: `fn` is none of these; or the example has other arguments or types.
      ValueError: an argument is not one that is allowed, an array of the example has another shape,
        there is no such signature, or `fn` cannot be saved.
      RuntimeError: there is no GPU, its memory is taken by this process, or the process with stock
        TensorFlow failed; the message has its last lines.
    """
    threads, groups = tuple(threads), tuple(groups)
    _check(seconds, threads, groups, policies, batch, max_int)
    with tempfile.TemporaryDirectory(prefix="advise") as temporary:
        folder = Path(temporary)
        if isinstance(fn, str | os.PathLike):
            directory = os.fspath(fn)
        else:
            directory, signature = str(folder / "model"), advice_model.SIGNATURE
            example = advice_model.save_function(fn, example, directory)
        specs = advice_model.signature_specs(directory, signature)
        if example is None:
            queries = advice_model.random_queries(specs, batch, max_int)
        else:
            queries = [advice_model.example_query(specs, example)]
        _check_memory()
        advice_process.write_job(folder, directory, signature, queries)

        def start(variables: dict[str, str], name: str) -> advice_process.Child:
            return advice_process.Child(folder, variables, name)

        kind = "random numbers" if example is None else "the example"
        notes = [f"Inputs: {kind}, {advice_model.text_of(queries)}"]
        search = advice_search.Search(start, threads, groups, policies, seconds, progress)
        return advice_report.advice_of(search.run(notes))


def _check(
    seconds: float,
    threads: Sequence[int],
    groups: Sequence[int],
    policies: Sequence[str],
    batch: int,
    max_int: int,
) -> None:
    if not 1 <= seconds <= _LONGEST:
        raise ValueError(f"tf.cuda.advise: seconds={seconds!r} is not from 1 to {_LONGEST}")
    for name, values, most in (("threads", threads, 256), ("groups", groups, 64)):
        for value in values:
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(
                    f"tf.cuda.advise: {name} has {value!r}, which is not a whole number from 1 to "
                    f"{most}"
                )
    if not threads:
        raise ValueError("tf.cuda.advise: threads is empty: give at least one number")
    for policy in policies:
        if policy not in _ALL_POLICIES:
            raise ValueError(
                f"tf.cuda.advise: policies has {policy!r}; there are {', '.join(_ALL_POLICIES)}"
            )
    for name, value in (("batch", batch), ("max_int", max_int)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"tf.cuda.advise: {name}={value!r} is not a whole number above 0")


def _check_memory() -> None:
    """Other processes find no memory if this one has taken all, as TensorFlow does by default."""
    grows = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "").lower() in ("true", "1")
    if grows or advice_process.gpus_are_emulated():
        return
    if context.context_safe() is None or not context.context()._initialized:
        return
    for gpu in config.list_physical_devices("GPU")[:1]:
        if not config.get_memory_growth(gpu) and not config.get_logical_device_configuration(gpu):
            raise RuntimeError(
                "tf.cuda.advise: this process has taken all memory of the GPU, and other processes "
                "measure. Set TF_FORCE_GPU_ALLOW_GROWTH=true before TensorFlow is imported, or "
                "save the model and run python -m tensorflow.python.multistream.advise DIRECTORY."
            )
