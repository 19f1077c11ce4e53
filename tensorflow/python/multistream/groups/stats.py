# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.stream_stats` and others: the stream groups of this process, and their counters."""

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
      steps_running: started steps that have not ended.
      steps_failed: steps that ended with an error.
      bytes_in_use: memory that the group's allocator has handed out, in bytes.
      peak_bytes_in_use: the most that `bytes_in_use` has been.
      bytes_limit: memory that the group's allocator may hand out, in bytes; if the groups of a GPU
        share one pool, the limit of the pool.
      bytes_reserved: memory that the allocator, or the pool, has taken from the GPU, in bytes.
      host_bytes_in_use: memory in use from the group's own pinned host allocator, in bytes; 0
        without `TF_PER_STREAM_HOST_ALLOCATOR`.
      peak_host_bytes_in_use: the most that `host_bytes_in_use` has been.
      executor: identifies the StreamExecutor with the group's cuBLAS, cuDNN and cuFFT handles: the
        number of the first group that uses the same StreamExecutor.
      context: number of the CUDA context with the group's streams; 0 is the GPU's primary context.
      priority: CUDA priority of the group's streams; lower numbers are served sooner.
      waits: number of waits for other groups' events that the group's stream was given.
      events: number of events that the group's stream has recorded for other groups to wait for.
      tensors_held: tensors, in memory of other groups or (for copies to the GPU) of the host, that
        are kept until this group's stream has completed their last use.
      bytes_held: total size of `tensors_held`, in bytes.
      peak_bytes_held: the most that `bytes_held` has been.
      steps_waiting: parts of the group's steps that are waiting now for a thread to launch their
        ops.
      longest_launch_wait_micros: the longest time, in microseconds, that a part of a step has
        waited (or is waiting) for a thread, or an op's launch for a lock of the CUDA driver, in
        this minute and the last one. Watch this one in an alarm: milliseconds under full load,
        never a second.
      steps_replayed: steps that were launched as one recording (`TF_MULTI_STREAM_CAPTURE`).
      pieces_replayed: pieces of other steps that were launched as a recording
        (`TF_MULTI_STREAM_CAPTURE_PIECES`).
      replays_with_branches: replays with ops side by side (`TF_MULTI_STREAM_CAPTURE_BRANCHES`).
      replays_polled: replays whose end the launching thread saw by polling, without a host
        callback.
      replays_verified: replays that were compared with the uncaptured step
        (`TF_MULTI_STREAM_CAPTURE_VERIFY`).
      recordings_made: how often a step was recorded.
      recordings: number of recordings that exist now.
      recording_bytes: memory of these recordings, in bytes: their part of `bytes_in_use`, and what
        the driver holds besides.
      longest_recording_micros: the longest time, in microseconds, that making a recording took.
      recording_workspace_bytes: the most memory, in bytes, that a launch takes besides
        `recording_bytes`, from CUDA's memory pool for graphs, such as cuBLAS workspaces. Steps of
        several groups that run at once each take this much; the pool keeps it.
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
    pieces_replayed: int
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
    _fields_ = tuple(
        (field.name, ctypes.c_int if field.name in ("gpu", "group") else ctypes.c_int64)
        for field in dataclasses.fields(StreamGroupStats)
    )


def multi_stream_is_enabled() -> bool:
    """Tells whether this process runs work on several stream groups.

    Returns:
      True if, when TensorFlow was imported, `TF_GPU_STREAM_GROUP_COUNT` asked for more than one
      group of some GPU, `TF_MULTI_STREAM_CAPTURE` for captured steps (even with one group), or
      `TF_MULTI_STREAM_EMULATED_GPUS` for an emulated GPU.
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
