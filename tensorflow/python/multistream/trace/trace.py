# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.trace`: writes a timeline of the work on each group's streams."""

import contextlib
import ctypes
import gzip
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import errors
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.groups import stats
from tensorflow.python.multistream.trace import trace_events, trace_profile
from tensorflow.python.multistream.trace.trace_events import Event
from tensorflow.python.platform import tf_logging
from tensorflow.python.profiler import profiler_v2

_ENDINGS = (".json", ".json.gz")
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def trace(
    path: str | os.PathLike[str],
    most_events: int = 1_000_000,
    logdir: str | os.PathLike[str] | None = None,
) -> Iterator[None]:
    """Writes a timeline of the work that each group's streams ran while the context was open.

    ```python
    with tf.cuda.trace("timeline.json"):
        for batch in batches:
            model(batch)
    ```

    This writes `timeline.json`, a trace for `ui.perfetto.dev` or `chrome://tracing`. The trace has
    a row for each stream of each group, with kernels, copies and waits for other groups; one for
    the steps, and one for memory that is held for another group.

    The trace has the steps of all threads. A step that is still running when the context ends is
    left out, except its completed kernels. While no trace is on, nothing is recorded; the only cost
    is reading one variable.

    On a GPU, kernels and copies come from TensorFlow's profiler (CUPTI), which the context starts.
    The profiler slows all launches down, and `most_events` does not limit its events. On an
    emulated GPU, kernels and copies come from the runtime itself: their group and order are right,
    but their durations say little about a GPU.

    Args:
      path: the trace's file, which is replaced; ends in `.json` or `.json.gz`, in a folder that
        exists.
      most_events: how many events are kept, at about 200 bytes each; further events are counted.
      logdir: a folder for TensorBoard: the profile of TensorFlow's profiler is written there as
        well, with the groups' names on their streams. Only on a GPU.

    Raises:
      TypeError: `path` is not a path.
      ValueError: `path` has another ending or its folder does not exist, `most_events` is not
        positive, or there is a `logdir` and the GPUs are emulated.
      RuntimeError: this process has no stream groups, a trace or TensorFlow's profiler is on
        already, or there is no memory to mark the streams.
    """
    file = _checked(path)
    call = f"tf.cuda.trace({str(file)!r})"
    if most_events <= 0:
        raise ValueError(f"{call}: most_events={most_events} is not valid: at least 1")
    if not stats.multi_stream_is_enabled():
        raise RuntimeError(
            f"{call}: this process has no stream groups. Set TF_GPU_STREAM_GROUP_COUNT to a number "
            "from 2 to 64 (and TF_MULTI_STREAM_EMULATED_GPUS=1 on a machine without a GPU) before "
            "TensorFlow is imported."
        )
    emulated = bool(loader.library.TFMS_EmulatesGpus())
    if emulated and logdir is not None:
        raise ValueError(
            f"{call}: logdir={str(logdir)!r}, and the GPUs are emulated, of which TensorFlow's "
            "profiler sees nothing. Leave it out."
        )
    if not _one_at_a_time.acquire(blocking=False):
        raise RuntimeError(f"{call}: a trace is on already, and there is one at a time")
    try:
        with contextlib.ExitStack() as stack:
            profile = None
            if not emulated:
                profile = stack.enter_context(contextlib.closing(_Profile(call, logdir)))
            begin = _start(call, most_events)
            try:
                yield
            finally:
                events, dropped = _stop()
                if profile is not None:
                    space = profile.stop()
                    zero = time.time_ns() - time.monotonic_ns()  # of the runtime's clock
                    events += [e for e in trace_profile.events(space, zero) if e.begin >= begin]
                if dropped:
                    tf_logging.warning(
                        "%s: %d events are left out, as there were more than most_events=%d",
                        call,
                        dropped,
                        most_events,
                    )
                text = json.dumps(_chrome_trace(begin, events, dropped), separators=(",", ":"))
                data = text.encode()
                is_gz = file.suffix == ".gz"
                file.write_bytes(gzip.compress(data, compresslevel=6) if is_gz else data)
    finally:
        _one_at_a_time.release()


def _checked(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"tf.cuda.trace({path!r}): not a path")
    file = Path(path)
    if not file.name.endswith(_ENDINGS) or file.name in _ENDINGS:
        raise ValueError(
            f"tf.cuda.trace({str(path)!r}): a trace's name ends in {' or '.join(_ENDINGS)}"
        )
    if not file.parent.is_dir():
        raise ValueError(f"tf.cuda.trace({str(path)!r}): there is no folder {str(file.parent)!r}")
    if file.is_dir():
        raise ValueError(f"tf.cuda.trace({str(path)!r}): it is a folder")
    return file


def _start(call: str, most_events: int) -> int:
    message = ctypes.create_string_buffer(4096)
    begin = time.monotonic_ns()  # the runtime's clock, too
    size = len(message)
    if loader.library.TFMS_TraceStart(ctypes.c_int64(most_events), message, size) != 0:
        raise RuntimeError(f"{call}: {message.value.decode(errors='replace')}")
    return begin


def _stop() -> tuple[list[Event], int]:
    stop = loader.library.TFMS_TraceStop
    stop.restype = ctypes.c_void_p
    size = ctypes.c_int64()
    lines = ctypes.string_at(stop(ctypes.byref(size)), size.value)
    return trace_events.parse(lines.decode(errors="replace"))


class _Profile:
    """TensorFlow's profiler, while a trace is on."""

    def __init__(self, call: str, logdir: str | os.PathLike[str] | None) -> None:
        if context.executing_eagerly():
            context.ensure_initialized()  # makes the devices, whose streams are to be marked
        self._on = False
        self._temporary = tempfile.TemporaryDirectory()
        self._folder = Path(self._temporary.name if logdir is None else logdir)
        self._before = set(self._files())
        options = profiler_v2.ProfilerOptions(host_tracer_level=0 if logdir is None else 2)
        try:
            profiler_v2.start(str(self._folder), options)
        except errors.AlreadyExistsError as error:
            self.close()
            raise RuntimeError(
                f"{call}: TensorFlow's profiler is on already, and there is one at a time. Stop "
                "it, or give tf.cuda.trace a logdir: it writes for TensorBoard, too."
            ) from error
        self._on = True

    def close(self) -> None:
        """Stops the profiler if it is still on, and removes the temporary folder."""
        if self._on:
            profiler_v2.stop(save=False)
        self._on = False
        self._temporary.cleanup()

    def stop(self) -> Any:
        """Stops the profiler; returns its XSpace, and names streams by group in its file."""
        # A late import, only on a GPU: importing `tf` does not import this module.
        from tensorflow.tsl.profiler.protobuf import xplane_pb2  # noqa: PLC0415

        self._on = False
        profiler_v2.stop()
        space = xplane_pb2.XSpace()
        for file in set(self._files()) - self._before:
            space.ParseFromString(file.read_bytes())
            named = xplane_pb2.XSpace()
            named.CopyFrom(space)
            if trace_profile.name_lines(named):
                file.write_bytes(named.SerializeToString())
        return space

    def _files(self) -> list[Path]:
        return list(self._folder.glob("plugins/profile/*/*.xplane.pb"))


def _chrome_trace(begin: int, events: Sequence[Event], dropped: int) -> dict[str, Any]:
    """The trace in Chrome's format: each GPU is a "process", each row a "thread"."""
    made: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "args": {"name": f"GPU {gpu}"}, "pid": gpu}
        for gpu in sorted({event.gpu for event in events})
    ]
    for thread, (gpu, name, of_row) in enumerate(trace_events.rows(events)):
        where = {"pid": gpu, "tid": thread}
        made.append({"ph": "M", "name": "thread_name", "args": {"name": name}, **where})
        sort = {"sort_index": thread}
        made.append({"ph": "M", "name": "thread_sort_index", "args": sort, **where})
        for event in of_row:
            made.append(
                {
                    "ph": "X",
                    "name": event.title,
                    "cat": event.kind,
                    "ts": (event.begin - begin) / 1000,  # microseconds
                    "dur": (event.end - event.begin) / 1000,
                    "args": event.details,
                    **where,
                }
            )
    other = {"dropped_events": dropped}
    return {"traceEvents": made, "displayTimeUnit": "ns", "otherData": other}
