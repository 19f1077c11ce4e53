# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's and Keras's own tests: which end otherwise with stream groups than on stock?

Each test file runs with none of our variables and then in each mode, in a process of its own with
the installed wheel. Of a checkout only the test files are used, no modules.

Exit status: 0; 1 if a test ends otherwise, and upstream_known.csv does not say why; 2 for a wrong
argument.
"""

import argparse
import collections
import concurrent.futures
import csv
import fnmatch
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import upstream_one
from programs import names_of, whole
from upstream_one import ERROR, PASSED, SKIPPED

FOLDER = pathlib.Path(__file__).resolve().parent
STOCK = "stock"
GROUPS = {"TF_GPU_STREAM_GROUP_COUNT": "4"}
MODES: dict[str, dict[str, str]] = {
    STOCK: {},
    "groups": {**GROUPS, "TF_MULTI_STREAM_CAPTURE": "off"},
    "capture": {**GROUPS, "TF_MULTI_STREAM_CAPTURE": "auto"},
    "node": {
        **GROUPS,
        "TF_NODE_LEVEL_MULTISTREAM": "true",
        # The tests mark nothing.
        "TF_MULTI_STREAM_POLICY": "full_graph",
        "TF_MULTI_STREAM_MEASURE": "false",
    },
    # Only if --modes asks for it: what differs here, too, is no matter of groups.
    "emulated": {},
}
AT_ONCE = 2  # files
PROCESSES = 3  # for one file: each goes on after the test that crashed the one before
WHOLE_FILE = "(the file)"  # for a test, where no test ran as the process ended
NOT_RUN, CRASHED, TIMED_OUT = "not run", "crashed", "timed out"

Ends = dict[str, tuple[str, str]]  # of each test: how it ended, and why


class Known(NamedTuple):
    """A line of upstream_known.csv; all but the reason are patterns, in which * is anything."""

    file: str
    test: str
    mode: str
    end: str
    gpu: str
    reason: str


class Different(NamedTuple):
    """A test that ended otherwise than on stock."""

    file: str
    test: str
    mode: str
    stock: str
    end: str
    why: str

    def reason(self, known: Sequence[Known], gpu: str) -> str:
        """Why that is known; empty if it is not."""
        mine = (self.file, self.test, self.mode, self.end, gpu)
        for line in known:
            if all(map(fnmatch.fnmatchcase, mine, line[:5])):
                return line.reason
        return ""


def environment(mode: str, gpu: bool, folder: str) -> dict[str, str]:
    """The environment of a process that runs a file in this mode."""
    unwanted = ("TF_", "XLA_FLAGS", "PYTHONPATH", "KERAS_")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    variables |= {"TF_CPP_MIN_LOG_LEVEL": "1", "KERAS_BACKEND": "tensorflow"}
    variables |= {"TMPDIR": folder, "TEST_TMPDIR": folder, **MODES[mode]}
    if gpu:
        return {**variables, "TF_FORCE_GPU_ALLOW_GROWTH": "true"}  # two processes share it
    if mode != STOCK:
        variables["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
        if mode != "emulated":
            variables["TF_MULTI_STREAM_SANITIZER"] = "abort"  # a race between streams is a crash
    return {**variables, "CUDA_VISIBLE_DEVICES": "-1"}


def run_process(
    command: Sequence[str], variables: Mapping[str, str], folder: str, out: IO[str], limit: float
) -> tuple[str, str]:
    """Runs a process in the folder; returns how it ended, in the words for a test, and why."""
    process = subprocess.Popen(
        command,
        env=variables,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return TIMED_OUT, f"after {limit:g} s"
    end = PASSED if status == 0 else ERROR if status > 0 else CRASHED
    return end, f"exit status {status}"


def run_file(path: pathlib.Path, mode: str, gpu: bool, limit: float, log: pathlib.Path) -> Ends:
    """Runs one file in one mode.

    Args:
        path: The file.
        mode: Of MODES.
        gpu: Whether to use the machine's GPU.
        limit: The seconds after which a process is ended.
        log: Gets what the processes print.

    Returns:
        How each test ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, log.open("w") as out:
        notes = pathlib.Path(folder, "notes")
        command = [sys.executable, str(FOLDER / "upstream_one.py"), str(path), str(notes)]
        variables = environment(mode, gpu, folder)
        for _ in range(PROCESSES):
            end, why = run_process(command, variables, folder, out, limit)
            noted = upstream_one.read(notes).items()
            begun = [test for test, (ended, _) in noted if ended == upstream_one.RUNNING]
            for test in begun:
                upstream_one.note(notes, test, CRASHED if end == PASSED else end, why)
            if not begun:
                break
        ends: Ends = upstream_one.read(notes)
    said = any(ended not in (PASSED, SKIPPED) for ended, _ in ends.values())
    if not begun and end != PASSED and not (end == ERROR and said):
        ends[WHOLE_FILE] = (end, why)
    return ends


def differences(file: str, ends: Mapping[str, Ends]) -> list[Different]:
    """The tests of a file that ended otherwise than on stock; `ends` has those of each mode."""
    found = []
    stock = ends[STOCK]
    for mode, those in ends.items():
        for test in {**stock, **those}:
            (before, _), (end, why) = (e.get(test, (NOT_RUN, "")) for e in (stock, those))
            if before != end:
                found.append(Different(file, test, mode, before, end, why))
    return found


def counted(ends: Ends) -> str:
    """How many tests ended how, such as "3 passed, 1 skipped"."""
    counts = collections.Counter(end for end, _ in ends.values())
    return ", ".join(f"{n} {end}" for end, n in sorted(counts.items())) or "no test"


def read_known(path: pathlib.Path) -> list[Known]:
    """Reads a file such as upstream_known.csv, whose first line names the columns."""
    with path.open(newline="") as lines:
        return [Known(**line) for line in csv.DictReader(lines)]


def files_of(checkouts: Sequence[pathlib.Path], listed: pathlib.Path) -> dict[str, pathlib.Path]:
    """Finds the listed files that belong to one of the checkouts.

    Raises:
        FileNotFoundError: A checkout has none of the files, or not all of its project.
    """
    found: dict[str, pathlib.Path] = {}
    files = [line for line in listed.read_text().splitlines() if not line.startswith("#")]
    for checkout in checkouts:
        there = [file for file in files if (checkout / file).is_file()]
        projects = {file.split("/")[0] for file in there}
        lacking = [x for x in files if x.split("/")[0] in projects and x not in there]
        if lacking or not there:
            raise FileNotFoundError(
                f"CHECKOUT '{checkout}' has no {(lacking or files)[0]}. Name the top folder of"
                " TensorFlow 2.21's sources, or the one in which Keras's folder keras is."
            )
        found |= {file: checkout / file for file in there}
    return found


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    modes = [mode for mode in MODES if mode not in (STOCK, "emulated")]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("checkouts", metavar="CHECKOUT", nargs="+", type=pathlib.Path, help="top folder of sources")
    add("--gpu", action="store_true", help="use the GPU, not an emulated one")
    of_modes = f"of {','.join([*modes, 'emulated'])} [all but the last]"
    add("--modes", type=names_of([*modes, "emulated"]), default=modes, help=of_modes)
    add("--only", metavar="TEXT", default="", help="only files with this text in their paths [all]")
    add(
        "--limit", type=whole(1, 86400), default=300, help="seconds for a process of one file [300]"
    )
    add("--files", type=pathlib.Path, default=FOLDER / "upstream_files.txt", help="the list")
    add("--known", type=pathlib.Path, default=FOLDER / "upstream_known.csv", help="what is known")
    add("--check", action="store_true", help="only check the arguments")
    add("--logs", type=pathlib.Path, default=FOLDER.parents[1] / "dist/upstream_tests", help="to")
    return parser.parse_args(arguments)


def run_all(
    files: Mapping[str, pathlib.Path], options: argparse.Namespace
) -> dict[str, dict[str, Ends]]:
    """Runs the files on stock and in each mode; returns how tests ended, by file and mode."""
    began = time.monotonic()
    ends: dict[str, dict[str, Ends]] = {file: {} for file in files}

    def run(job: tuple[str, str]) -> None:
        file, mode = job
        log = options.logs / mode / f"{file.replace('/', '.')}.log"
        ends[file][mode] = run_file(files[file], mode, options.gpu, options.limit, log)
        seconds = time.monotonic() - began
        print(f"[{seconds:3.0f} s] {mode}: {file}: {counted(ends[file][mode])}", flush=True)

    modes = (STOCK, *options.modes)
    jobs = [(file, mode) for file in files for mode in modes]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        collections.deque(threads.map(run, jobs), maxlen=0)
    return {file: {mode: ends[file][mode] for mode in modes} for file in files}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    try:
        files = files_of([path.resolve() for path in options.checkouts], options.files)
        known = read_known(options.known)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    files = {file: path for file, path in files.items() if options.only in file}
    if not files:
        print(f"error: --only '{options.only}' is in no path of the list", file=sys.stderr)
        return 2
    if options.check:
        return 0
    ends = run_all(files, options)
    gpu = "gpu" if options.gpu else "emulated"
    found = [each for file in files for each in differences(file, ends[file])]
    new = [each for each in found if not each.reason(known, gpu)]
    print(f"\nended otherwise than on stock: {len(found)} tests, of which {len(new)} are not known")
    for each in found:
        reason = each.reason(known, gpu)
        print(f"{each.file} {each.test}: {each.stock} on stock, {each.end} in mode {each.mode}")
        print(f"    {'known: ' + reason if reason else 'NEW: ' + each.why}")
    tests = sum(len(ends[file][STOCK]) for file in files)
    print(f"{tests} tests of {len(files)} files; what they printed is in {options.logs}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
