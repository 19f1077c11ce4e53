# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.save_plan`: writes the stream groups of a model's nodes to a file that ships with it."""

import contextlib
import ctypes
import re
import textwrap
import threading
from collections import defaultdict
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from tensorflow.python.multistream import loader

_LINE = 100  # columns
_lock = threading.Lock()


@contextlib.contextmanager
def save_plan(path: str | PathLike[str]) -> Iterator[None]:
    """Writes the stream groups of the nodes that run in the context to a stream file.

    ```python
    with tf.cuda.save_plan("model.streams"):
      step(x, y)
    ```

    `TF_STREAM_FROM_FILE=model.streams` with `TF_NODE_LEVEL_MULTISTREAM=true` and as many stream
    groups then gives each node the same group from its first step on, whether a scope or a policy
    chose the groups. Steps of all threads count. Where a policy measures plans, call the function
    until the policy has chosen one before saving.

    Args:
      path: the file's path. The file is written, or replaced, when the context ends without an
        error.

    Yields:
      Nothing.

    Raises:
      RuntimeError: nodes have no groups in this process, another `save_plan` is open, or no step
        has run.
      ValueError: two graphs have nodes of one name in different groups; a file cannot express that.
      OSError: the file cannot be written.
    """
    path = Path(path)
    library = loader.library
    if not library.TFMS_IsEnabled():
        raise RuntimeError(
            "tf.cuda.save_plan: this process has no stream groups. Set TF_GPU_STREAM_GROUP_COUNT "
            "and TF_NODE_LEVEL_MULTISTREAM=true."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"tf.cuda.save_plan: there is no folder {str(path.parent)!r}")
    if not _lock.acquire(blocking=False):
        raise RuntimeError("tf.cuda.save_plan: another one has not come to its end")
    try:
        library.TFMS_StartSavedPlan()
        try:
            yield
        finally:
            length = library.TFMS_StopSavedPlan(None, 0)
            buffer = ctypes.create_string_buffer(abs(length) + 1)
            length = library.TFMS_StopSavedPlan(buffer, len(buffer))
    finally:
        _lock.release()
    text = buffer.value.decode()
    if length < 0:
        raise ValueError(
            f"tf.cuda.save_plan: {text}, in different graphs or while a policy tried plans. Run "
            "one function in it, and let the policy come to an end first."
        )
    if not text:
        raise RuntimeError(
            "tf.cuda.save_plan: no step has run in it whose nodes have groups. That takes "
            "TF_NODE_LEVEL_MULTISTREAM=true, a policy, or a session that asks for streams, and ops "
            "on the GPU."
        )
    path.write_text(_stream_file(text), encoding="utf-8")


def _stream_file(lines: str) -> str:
    """The text of a stream file, of lines "GROUP NAME" for each node."""
    names = defaultdict(list)
    for line in lines.splitlines():
        group, name = line.split(" ", 1)
        names[group].append(re.sub(r"([^A-Za-z0-9_/-])", r"\\\1", name))
    text = "# Stream groups of nodes, for TF_STREAM_FROM_FILE.\n"
    for group, of_group in names.items():
        wrapped = textwrap.wrap(
            ", ".join(of_group), _LINE - 4, break_long_words=False, break_on_hyphens=False
        )
        text += "".join(f"{group}: {part.rstrip(',')}\n" for part in wrapped)
    return text
