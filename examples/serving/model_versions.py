# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Which versions of a model are served: polls its folder, loads, publishes and drops."""

import dataclasses
import enum
import functools
import gc
import logging
import pathlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import grpc
from model_config import MOST_VERSION, ModelConfig
from serving_error import ServingError, invalid, not_found
from tensorflow.python.multistream.serving.served_models import ServedModels

_MOST_ENDED = 16  # versions that are no more, of which the status is still told


class State(enum.IntEnum):
    """State of a version; the numbers are those of ModelVersionStatus."""

    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclasses.dataclass
class Version:
    """One version of a model."""

    number: int
    folder: pathlib.Path
    state: State = State.LOADING
    error: str = ""  # why it could not be loaded
    loaded: Any = None  # the LoadedModel, from its load until it is dropped
    calls: int = 0  # that hold it
    computed: int = 0  # calls, those that the front answers left out


class VersionFigures(NamedTuple):
    """What a version in memory has computed, and what it takes (LoadedModel)."""

    number: int
    calls: int
    variable_bytes: int


class Model:
    """The numbered folders of one model, of which some are loaded, by `load`, and served.

    Only one thread at a time may call `prepare`, `adopt`, `discard`, `poll` and `close`.
    """

    def __init__(
        self,
        config: ModelConfig,
        load: Callable[[str, pathlib.Path], Any],
        front: ServedModels | None = None,
    ) -> None:
        self.name = config.name
        self.config = config
        self._front = front  # answers, too, for what is served
        self._load = load
        self._lock = threading.Lock()
        self._served: dict[int, Version] = {}
        self._others: dict[int, Version] = {}  # loading, unloading or ended
        # How the folders looked that did not load.
        self._failed: dict[pathlib.Path, tuple[int, int]] = {}

    def number_of(self, asked: int | str | None) -> int | None:
        """The number of a version that is asked for by number, by label, or (None) not at all."""
        if not isinstance(asked, str):
            return asked
        labels: Mapping[str, int] = self.config.labels
        if asked not in labels:
            known = ", ".join(map(repr, sorted(labels))) or "none"
            raise invalid(
                f"version_label {asked[:100]!r} is not a label of model {self.name!r}; its labels "
                f"are: {known}."
            )
        return labels[asked]

    def acquire(self, asked: int | str | None) -> Version:
        """Holds a version, so that it stays loaded until its `release`.

        Args:
          asked: the version's number or label; None for the newest.

        Raises:
          ServingError: no such version is served, or there is no such label.
        """
        with self._lock:
            number = self.number_of(asked)
            if not self._served:
                raise not_found(f"model {self.name!r} has no version that is loaded.")
            found = self._served.get(max(self._served) if number is None else number)
            if found is None:
                served = ", ".join(map(str, sorted(self._served)))
                label = f" (version_label {asked!r})" if isinstance(asked, str) else ""
                raise not_found(
                    f"version {number}{label} of model {self.name!r} is not served; {served} is."
                )
            found.calls += 1
            return found

    def release(self, version: Version, computed: bool = False) -> None:
        """Ends what `acquire` began; the last call of a version that is replaced drops it.

        Args:
          version: of the call.
          computed: the call has called a function of the version.
        """
        with self._lock:
            version.calls -= 1
            version.computed += computed
            last = version.calls == 0 and version.state is State.UNLOADING
        if last:
            self._drop(version)

    def served(self) -> list[int]:
        """The numbers of the versions that are served."""
        with self._lock:
            return sorted(self._served)

    def statuses(self) -> list[Version]:
        """All versions that are known, the newest first."""
        with self._lock:
            known = {**self._others, **self._served}
            return [dataclasses.replace(known[n], loaded=None) for n in sorted(known)[::-1]]

    def figures(self) -> list[VersionFigures]:
        """The figures of the versions that are in memory."""
        with self._lock:
            known = {**self._others, **self._served}
            return [
                VersionFigures(
                    number, version.computed + loaded.front_calls(), loaded.variable_bytes
                )
                for number, version in sorted(known.items())
                if (loaded := version.loaded) is not None
            ]

    def has_ended(self) -> bool:
        """Whether no version is served, is being loaded, or is held by a call."""
        return all(version.state is State.END for version in self.statuses())

    def prepare(self, config: ModelConfig, labels_may_wait: bool) -> list[Version]:
        """Loads what another config needs, for `adopt` or `discard`; what is served stays.

        Args:
          config: it has the same name.
          labels_may_wait: a new label may be given to a version that is not available.

        Returns:
          The new versions, also those that could not be loaded.

        Raises:
          ServingError: no version would be available, or that of a label would not. Nothing has
            changed then.
        """
        found = _numbers_in(config.folder)
        wanted = config.wanted(found)
        here = self._served_of(config.folder)
        # Before anything is loaded for nothing.
        self._check_labels(config, config.wanted(here | set(wanted)), labels_may_wait)
        versions = [self._loaded(config.folder / str(n)) for n in wanted if n not in here]
        loaded = {version.number for version in versions if not version.error}
        available = config.wanted(here | loaded)
        try:
            if not available:
                raise _unavailable(config, found, versions)
            self._check_labels(config, available, labels_may_wait)
        except ServingError:
            self.discard(versions)
            raise
        return versions

    def _served_of(self, folder: pathlib.Path) -> set[int]:
        with self._lock:
            return {n for n, version in self._served.items() if version.folder.parent == folder}

    def _check_labels(
        self, config: ModelConfig, available: list[int], labels_may_wait: bool
    ) -> None:
        for label, number in config.labels.items():
            # A label that is in use would, by moving early, refuse the calls that name it.
            waits = labels_may_wait and self.config.labels.get(label, number) == number
            if number not in available and not waits:
                known = ", ".join(map(str, available)) or "none"
                raise ServingError(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    f"{config.where}: version_labels {label[:100]!r} is version {number}, which is "
                    f"not available; available are: {known}. Give the label to one of these; a new "
                    "label may be given to another version if the server is started with "
                    "--allow-version-labels-for-unavailable-models.",
                )

    def adopt(self, config: ModelConfig, versions: list[Version]) -> None:
        """Serves by another config, with the versions that `prepare` has loaded for it."""
        # New versions come first and old ones go last, so that each call finds one.
        for version in versions:
            if not version.error:
                self._publish(version)
        with self._lock:
            self.config = config
        wanted = config.wanted(self._served_of(config.folder))
        self._retire([number for number in self.served() if number not in wanted])

    def discard(self, versions: list[Version]) -> None:
        """Drops versions that `prepare` has loaded."""
        with self._lock:
            for version in versions:
                version.loaded = None
                if self._others.get(version.number) is version:
                    del self._others[version.number]
        gc.collect()  # functions and their graphs refer to each other

    def close(self) -> None:
        """Ends serving: versions are dropped when their last calls have ended."""
        self._retire(self.served())

    def poll(self) -> None:
        """Loads new versions, publishes each when it is ready, and retires those it replaces."""
        config = self.config
        wanted = config.wanted(_numbers_in(config.folder))
        if not wanted:
            return  # as when the folder is being moved: what is served stays
        for number in wanted:
            folder = config.folder / str(number)
            # Tried again when a file of it changes, as when it was being copied.
            if number in self._served or self._failed.get(folder) == looks_of(folder):
                continue
            version = self._loaded(folder)
            if not version.error:
                self._publish(version)
        served = self.served()
        replaced = [number for number in served if number not in wanted]
        ready = len(served) - len(replaced)
        # Until the wanted ones are ready, the newest of the others answer.
        still_needed = (config.latest or len(wanted)) - ready if ready < len(wanted) else 0
        self._retire(replaced[:-still_needed] if still_needed else replaced)

    def _loaded(self, folder: pathlib.Path) -> Version:
        """A version that is loaded, or has an error."""
        looks = looks_of(folder)
        version = Version(int(folder.name), folder)
        with self._lock:
            self._others[version.number] = version
        try:
            version.loaded = self._load(self.name, folder)
            self._failed.pop(folder, None)
        except Exception as error:
            self._failed[folder] = looks
            with self._lock:
                version.state, version.error = State.END, f"{type(error).__name__}: {error}"[:1000]
            logging.error(
                "%s version %d was not loaded: %s", self.name, version.number, version.error
            )
        if version.error:
            gc.collect()  # of several devices the first ones may have loaded it
        return version

    def _publish(self, version: Version) -> None:
        number = version.number
        with self._lock:
            self._others.pop(number, None)
            replaced = self._served.get(number)  # of another folder
            if replaced is not None:
                self._begin_to_unload(replaced)
            version.state = State.AVAILABLE
            self._served[number] = version
        wait = None
        if self._front is not None:
            signatures = version.loaded.signatures.items()
            plain = {n: x.predictor for n, x in signatures if x.predictor is not None}
            wait = self._front.publish(self.name, number, plain)
        if replaced is not None:
            self._release_after(replaced, wait)
        logging.info("%s version %d is served", self.name, number)

    def _retire(self, numbers: list[int]) -> None:
        with self._lock:
            retired = [self._served.pop(number) for number in numbers]
            for version in retired:
                self._begin_to_unload(version)
        for version in retired:
            wait = self._front.withdraw(self.name, version.number) if self._front else None
            self._release_after(version, wait)

    def _begin_to_unload(self, version: Version) -> None:
        version.state = State.UNLOADING
        version.calls += 1  # until the front has ended its own
        self._others[version.number] = version

    def _release_after(self, version: Version, wait: Callable[[], None] | None) -> None:
        if wait is None:
            self.release(version)
            return
        # A thread each: a call of the front's that does not end keeps its version alone.
        threading.Thread(target=self._wait_and_release, args=(version, wait), daemon=True).start()

    def _wait_and_release(self, version: Version, wait: Callable[[], None]) -> None:
        wait()
        self.release(version)

    def _drop(self, version: Version) -> None:
        with self._lock:
            version.state, version.loaded = State.END, None
            ended = [n for n, v in self._others.items() if v.state is State.END]
            for number in sorted(ended)[:-_MOST_ENDED]:
                del self._others[number]
        gc.collect()  # functions and their graphs refer to each other
        logging.info("%s version %d is dropped", self.name, version.number)


def _unavailable(config: ModelConfig, found: list[int], versions: list[Version]) -> ServingError:
    says = "; ".join(f"version {version.number}: {version.error}" for version in versions)
    if not found:
        says = "it has no version, a folder with a number for a name and a SavedModel"
    elif not versions:
        says = (
            f"it has none of the versions {', '.join(map(str, config.specific))}; it has "
            f"{', '.join(map(str, sorted(found)))}"
        )
    return ServingError(grpc.StatusCode.UNKNOWN, f"{config.where}: {says}")


def _numbers_in(folder: pathlib.Path) -> list[int]:
    try:
        return [int(path.name) for path in folder.iterdir() if _is_version(path)]
    except FileNotFoundError:
        return []


def _is_version(path: pathlib.Path) -> bool:
    # As 007 is not the folder of version 7, which would be looked for in vain.
    if not (path.name.isascii() and path.name.isdigit() and str(int(path.name)) == path.name):
        return False
    if int(path.name) > MOST_VERSION:
        _say_ignored(path)
        return False
    return (path / "saved_model.pb").exists() or (path / "saved_model.pbtxt").exists()


@functools.cache  # once: folders are looked at again and again
def _say_ignored(path: pathlib.Path) -> None:
    logging.warning("%s is no version, whose number is at most %d", path, MOST_VERSION)


def looks_of(folder: pathlib.Path) -> tuple[int, int]:
    """What changes with the files in a folder."""
    try:
        files = [path.stat() for path in folder.rglob("*")]
    except FileNotFoundError:
        return (0, 0)
    return (max((x.st_mtime_ns for x in files), default=0), sum(x.st_size for x in files))
