# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Watches a process at work: takes a sample each second, detects hangs, and says what grows."""

import ctypes
import dataclasses
import faulthandler
import os
import pathlib
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

MEBI = 1024.0 * 1024.0


@dataclasses.dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    seconds: float  # on the monotonic clock
    # Memory that the process has touched. An emulated GPU's memory, which is set aside at the
    # start, makes this figure rise without a leak.
    resident_mib: float
    heap_mib: float  # memory in use, of all that malloc has handed out
    threads: int  # number of threads
    files: int  # open file descriptors
    group_mib: float  # memory that the allocators of all stream groups have handed out


class _Mallinfo2(ctypes.Structure):
    """The result of the GNU C library's mallinfo2()."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def heap_in_use() -> int:
    """Bytes that malloc has handed out and not got back, in all arenas and in mappings."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


def take_sample(stats: Callable[[], list[Any]]) -> Sample:
    """Takes a sample of this process; `stats` is tf.cuda.stream_stats."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        seconds=time.monotonic(),
        resident_mib=pages * os.sysconf("SC_PAGE_SIZE") / MEBI,
        heap_mib=heap_in_use() / MEBI,
        threads=len(os.listdir("/proc/self/task")),
        files=len(os.listdir("/proc/self/fd")),
        group_mib=sum(group.bytes_in_use for group in stats()) / MEBI,
    )


# The part of a round's samples that is warm-up.
WARM_UP = 0.4
# With fewer seconds after warm-up, samples say nothing.
LEAST_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Limit:
    """The limit above which growth is a failure."""

    what: str  # of which there is more
    per_minute: float  # most growth in a minute
    in_all: float  # total growth that is always allowed, such as one more block of an allocator


# By field of watcher.Sample.
LIMITS = {
    # A few feeds in flight more or fewer change the figure this much.
    "heap_mib": Limit("MiB from malloc", per_minute=32, in_all=96),
    "threads": Limit("threads", per_minute=4, in_all=8),
    "files": Limit("open files", per_minute=4, in_all=8),
    "group_mib": Limit("MiB in stream groups", per_minute=32, in_all=96),
}


@dataclasses.dataclass(frozen=True)
class Growth:
    """How much something has grown.

    The minimum of each third of the samples after warm-up counts: memory that steps take and free
    comes and goes, memory that they leak stays. If much comes and goes, minima differ by chance;
    growth is steady only if it leaves the range of the first third.
    """

    per_minute: float  # growth from the first third to the last, per minute
    in_all: float  # growth from the first third to the last
    # Whether the second third is above the first, and the last above the second and above the first
    # one's median.
    steady: bool

    def exceeds(self, limit: Limit) -> bool:
        """Whether the growth is steady, and above both figures of the limit."""
        return self.steady and self.per_minute > limit.per_minute and self.in_all > limit.in_all


def growth(seconds: Sequence[float], values: Sequence[float]) -> Growth | None:
    """Finds how much something has grown; None if the samples span too short a time."""
    warm = int(len(values) * WARM_UP)
    seconds, values = seconds[warm:], values[warm:]
    if len(values) < 3 or seconds[-1] - seconds[0] < LEAST_SECONDS:
        return None
    third = len(values) // 3
    first, second, last = (min(v) for v in (values[:third], values[third:-third], values[-third:]))
    minutes = (statistics.median(seconds[-third:]) - statistics.median(seconds[:third])) / 60
    steady = first < second < last and last > statistics.median(values[:third])
    return Growth((last - first) / minutes, last - first, steady)


@dataclasses.dataclass
class Watcher:
    """A thread that takes samples, and looks for workers that have had no result for long."""

    hang_seconds: float  # a worker without a result for so long hangs
    sample: Callable[[], Sample]  # takes a sample
    # Called once, with the workers that hang and their seconds without a result.
    on_hang: Callable[[list[str]], None]
    on_sample: Callable[[Sample], None] = lambda sample: None  # called with each sample
    every: float = 1.0  # seconds between two samples
    clock: Callable[[], float] = time.monotonic  # seconds

    def __post_init__(self) -> None:
        self.samples: list[Sample] = []
        # When each worker last had a result; one that has ended is not in it.
        self._last: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._thread.start()

    def note(self, worker: str) -> None:
        """Notes that a worker starts, or has a result."""
        self._last[worker] = self.clock()

    def ended(self, worker: str) -> None:
        """Notes that a worker has ended, so no more results are expected."""
        self._last.pop(worker, None)

    def stop(self) -> None:
        """Ends the thread, and takes a last sample."""
        self._stop.set()
        self._thread.join()
        self.samples.append(self.sample())

    def _watch(self) -> None:
        while not self._stop.wait(self.every):
            sample = self.sample()
            self.samples.append(sample)
            self.on_sample(sample)
            waited = {worker: self.clock() - last for worker, last in self._last.copy().items()}
            if hanging := [
                f"{worker}: no result for {seconds:.0f} s"
                for worker, seconds in waited.items()
                if seconds > self.hang_seconds
            ]:
                self.on_hang(hanging)
                return


def write_stacks(out: IO[str], stats: Callable[[], list[Any]]) -> None:
    """Writes to a file with a descriptor what can be seen of a process that hangs."""

    def head(text: str) -> None:
        out.write(f"--- {text}\n")
        out.flush()  # others write to its descriptor, and the statistics may hang as well

    head("stacks of Python threads")
    faulthandler.dump_traceback(file=out, all_threads=True)
    head("threads, as the system sees them: name, state, what it waits in, CPU ticks")
    for task in sorted(pathlib.Path("/proc/self/task").iterdir(), key=lambda path: int(path.name)):
        try:
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            name, waits = ((task / file).read_text().strip() for file in ("comm", "wchan"))
        except OSError:
            continue
        out.write(f"{task.name} {name}: {fields[0]} {waits or '-'} {fields[11]}+{fields[12]}\n")
    head("stacks of native threads")
    debugger = shutil.which("gdb") or shutil.which("eu-stack")
    if debugger is None:
        out.write("neither gdb nor eu-stack is here\n")
    else:
        arguments = [debugger, "-p", str(os.getpid())]
        if debugger.endswith("gdb"):
            arguments += ["-batch", "-ex", "thread apply all backtrace 24"]
        try:
            subprocess.run(arguments, stdout=out, stderr=out, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            out.write(f"{debugger} took too long\n")
    head("stream groups")
    for group in stats():
        out.write(f"{group}\n")
    out.flush()
