# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the file of `tf.cuda.trace`, in the format of Perfetto and chrome://tracing."""

import gzip
import json
from pathlib import Path
from typing import Any

from tensorflow.python.multistream.trace import trace_events
from tensorflow.python.multistream.trace.trace_events import Recording


def write(path: Path, recording: Recording) -> None:
    """Writes the trace to `path`, compressed if the name ends in `.gz`."""
    text = json.dumps(chrome_trace(recording), separators=(",", ":"))
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), compresslevel=6))
    else:
        path.write_text(text, encoding="utf-8")


def chrome_trace(recording: Recording) -> dict[str, Any]:
    """The trace in Chrome's format: each GPU is a "process", each row a "thread"."""
    made: list[dict[str, Any]] = []
    gpus: set[int] = set()
    for thread, row in enumerate(trace_events.rows(recording.events)):
        where = {"pid": row.gpu, "tid": thread}
        if row.gpu not in gpus:
            gpus.add(row.gpu)
            made.append(_named("process_name", f"GPU {row.gpu}", pid=row.gpu))
        made.append(_named("thread_name", row.name, **where))
        made.append({**_named("thread_sort_index", "", **where), "args": {"sort_index": thread}})
        for event in row.events:
            made.append(
                {
                    "ph": "X",
                    "name": event.title,
                    "cat": event.kind,
                    "ts": _micros(event.begin - recording.begin),
                    "dur": _micros(event.end - event.begin),
                    "args": event.details,
                    **where,
                }
            )
    return {
        "traceEvents": made,
        "displayTimeUnit": "ns",
        "otherData": {"dropped_events": recording.dropped},
    }


def _named(what: str, name: str, **where: int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "args": {"name": name}, **where}


def _micros(nanoseconds: int) -> float:
    return nanoseconds / 1000
