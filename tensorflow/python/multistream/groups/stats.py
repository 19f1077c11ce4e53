# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `tf.cuda` offers: stream groups, as this process sees them."""

import ctypes
import dataclasses

from tensorflow.python.multistream import loader


@dataclasses.dataclass(frozen=True)
class StreamGroupStats:
    """One stream group at one moment. Counters run from the start of the process.

    Attributes:
      gpu: number of the GPU, as in `/physical_device:GPU:0`.
      group: number of the group on its GPU. Group 0 is the leader, the visible device itself.
      steps_started: steps (a session's run, a function's call) that the group has been given.
      steps_running: those of them that are not done.
      steps_failed: those that ended with an error.
      bytes_in_use: memory that the group's allocator has handed out, in bytes.
      peak_bytes_in_use: the most that `bytes_in_use` has been.
      bytes_limit: memory that the group's allocator may hand out, in bytes; where the groups of a
        GPU share one pool, what they may all together.
      bytes_reserved: what the allocator, or the pool, has taken from the GPU, in bytes.
      host_bytes_in_use: pinned host memory of the group's own that is in use, in bytes; 0 without
        `TF_PER_STREAM_HOST_ALLOCATOR`.
      peak_host_bytes_in_use: the most that `host_bytes_in_use` has been.
      executor: the StreamExecutor that has the group's cuBLAS, cuDNN and cuFFT handles, as the
        number of the first group that has it, too.
      context: number of the CUDA context that has the group's streams; 0 is the GPU's primary one.
      priority: of the group's streams, as CUDA counts: the lower, the sooner they are served.
      waits: how often the group's stream has been told to wait for another one's.
      events: how many events the group's stream has been given for others to wait for.
      tensors_held: tensors that are kept until this group's stream has completed their last use, in
        memory of other groups, or of the host for copies to the GPU.
      bytes_held: their size, in bytes.
      peak_bytes_held: the most that `bytes_held` has been.
      steps_waiting: parts of the group's steps that wait at this moment for a thread to
        launch their ops.
      longest_launch_wait_micros: the longest time, in microseconds, that one of them has
        waited, or has waited so far, or that an op's launch has waited for a lock of the
        CUDA driver. What an alarm should look at: milliseconds under full load, never a
        second.
      steps_replayed: steps that were launched as one recording (`TF_MULTI_STREAM_CAPTURE`).
      replays_with_branches: of these, with ops side by side (`TF_MULTI_STREAM_CAPTURE_BRANCHES`).
      replays_polled: of those replayed, whose end was seen by the thread that launched them,
        without a host callback.
      replays_verified: of those replayed, compared with the step as it always runs
        (`TF_MULTI_STREAM_CAPTURE_VERIFY`).
      recordings_made: how often a step was recorded.
      recordings: recordings that there are.
      recording_bytes: their memory, in bytes, part of `bytes_in_use` but for what the driver has.
      longest_recording_micros: the longest time, in microseconds, that making one took.
      recording_workspace_bytes: the most memory beside `recording_bytes` that a launch takes,
        in bytes, from the pool that CUDA has for graphs, as workspaces of cuBLAS. Steps of several
        groups that run at once take it each; the pool keeps it.
    """

    gpu: int
    group: int
    steps_started: int
    steps_running: int
    steps_failed: int
    bytes_in_use: int
    peak_bytes_in_use: int
    bytes_limit: int
    bytes_reserved: int
    host_bytes_in_use: int
    peak_host_bytes_in_use: int
    executor: int
    context: int
    priority: int
    waits: int
    events: int
    tensors_held: int
    bytes_held: int
    peak_bytes_held: int
    steps_waiting: int
    longest_launch_wait_micros: int
    steps_replayed: int
    replays_with_branches: int
    replays_polled: int
    replays_verified: int
    recordings_made: int
    recordings: int
    recording_bytes: int
    longest_recording_micros: int
    recording_workspace_bytes: int


class _CStats(ctypes.Structure):
    # multistream.h, StreamGroupStats
    _fields_ = (
        ("gpu", ctypes.c_int),
        ("group", ctypes.c_int),
        ("steps_started", ctypes.c_int64),
        ("steps_running", ctypes.c_int64),
        ("steps_failed", ctypes.c_int64),
        ("bytes_in_use", ctypes.c_int64),
        ("peak_bytes_in_use", ctypes.c_int64),
        ("bytes_limit", ctypes.c_int64),
        ("bytes_reserved", ctypes.c_int64),
        ("host_bytes_in_use", ctypes.c_int64),
        ("peak_host_bytes_in_use", ctypes.c_int64),
        ("executor", ctypes.c_int64),
        ("context", ctypes.c_int64),
        ("priority", ctypes.c_int64),
        ("waits", ctypes.c_int64),
        ("events", ctypes.c_int64),
        ("tensors_held", ctypes.c_int64),
        ("bytes_held", ctypes.c_int64),
        ("peak_bytes_held", ctypes.c_int64),
        ("steps_waiting", ctypes.c_int64),
        ("longest_launch_wait_micros", ctypes.c_int64),
        ("steps_replayed", ctypes.c_int64),
        ("replays_with_branches", ctypes.c_int64),
        ("replays_polled", ctypes.c_int64),
        ("replays_verified", ctypes.c_int64),
        ("recordings_made", ctypes.c_int64),
        ("recordings", ctypes.c_int64),
        ("recording_bytes", ctypes.c_int64),
        ("longest_recording_micros", ctypes.c_int64),
        ("recording_workspace_bytes", ctypes.c_int64),
    )


def multi_stream_is_enabled() -> bool:
    """Tells whether this process runs work on several stream groups.

    Returns:
      True if `TF_GPU_STREAM_GROUP_COUNT` asked for more than one group of some GPU,
      `TF_MULTI_STREAM_CAPTURE` for captured steps, which one group can have, too, or
      `TF_MULTI_STREAM_EMULATED_GPUS` for an emulated GPU, when TensorFlow was imported.
    """
    return bool(loader.library.TFMS_IsEnabled())


def stream_group_count(gpu: int = 0) -> int:
    """Number of stream groups of a GPU.

    Args:
      gpu: which of the GPUs that TensorFlow uses, from 0.

    Returns:
      The number of groups that the GPU has or, before TensorFlow has started its devices, will
      have. 1 if multi-stream is not enabled.

    Raises:
      ValueError: `gpu` is negative.
    """
    if gpu < 0:
        raise ValueError(f"gpu={gpu} is not valid: GPUs are numbered from 0")
    return int(loader.library.TFMS_StreamGroupCount(gpu))


def stream_stats() -> list[StreamGroupStats]:
    """Load and memory of every stream group.

    Returns:
      One `StreamGroupStats` for each group of each GPU, by GPU, then group. Empty until
      TensorFlow has started its devices, and if multi-stream is not enabled.
    """
    size = loader.library.TFMS_StreamStats(None, 0)
    entries = (_CStats * size)()
    size = min(size, loader.library.TFMS_StreamStats(entries, size))
    names = [field[0] for field in _CStats._fields_]
    return [
        StreamGroupStats(**{name: getattr(entry, name) for name in names})
        for entry in entries[:size]
    ]
