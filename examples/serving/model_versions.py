# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Which versions of the models are served: polls their folders, loads, publishes and drops."""

import dataclasses
import enum
import gc
import logging
import pathlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from serving_error import not_found
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
    state: State = State.LOADING
    error: str = ""  # why it could not be loaded
    loaded: Any = None  # the LoadedModel, from its load until it is dropped
    calls: int = 0  # that hold it


class Model:
    """The numbered folders of one model, of which the newest are loaded, by `load`, and served."""

    def __init__(
        self,
        name: str,
        folder: pathlib.Path,
        keep: int,
        load: Callable[[pathlib.Path], Any],
        front: ServedModels | None = None,
    ) -> None:
        self.name = name
        self._front = front  # answers, too, for what is served
        self._folder = folder
        self._keep = keep
        self._load = load
        self._lock = threading.Lock()
        self._served: dict[int, Version] = {}
        self._others: dict[int, Version] = {}  # loading, unloading or ended
        self._failed: dict[int, tuple[int, int]] = {}  # how the folder looked that did not load

    def acquire(self, number: int | None) -> Version:
        """Holds a version, the newest for None, so that it stays loaded until its `release`."""
        with self._lock:
            if not self._served:
                raise not_found(f"model {self.name!r} has no version that is loaded.")
            found = self._served.get(max(self._served) if number is None else number)
            if found is None:
                served = ", ".join(map(str, sorted(self._served)))
                raise not_found(
                    f"version {number} of model {self.name!r} is not served; {served} is."
                )
            found.calls += 1
            return found

    def release(self, version: Version) -> None:
        """Ends what `acquire` began; the last call of a version that is replaced drops it."""
        with self._lock:
            version.calls -= 1
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

    def poll(self) -> None:
        """Loads new versions, publishes each when it is ready, and retires those it replaces."""
        found = sorted(_numbers_in(self._folder))
        if not found:
            return  # as when the folder is being moved: what is served stays
        wanted = found[-self._keep :]
        for number in wanted:
            if number not in self._served:
                self._try_to_load(number)
        with self._lock:
            replaced = sorted(self._served.keys() - set(wanted))
            ready = len(self._served.keys() & set(wanted))
            # Until the wanted ones are ready, the newest of the others answer.
            still_needed = self._keep - ready if ready < len(wanted) else 0
            gone = replaced[:-still_needed] if still_needed else replaced
            retired = [self._served.pop(number) for number in gone]
            for version in retired:
                version.state = State.UNLOADING
                version.calls += 1  # until the front has ended its own
                self._others[version.number] = version
        for version in retired:
            if self._front is None:
                self.release(version)
                continue
            wait = self._front.withdraw(self.name, version.number)
            # A thread each: a call of the front's that does not end keeps its version alone.
            threading.Thread(target=self._retire, args=(version, wait), daemon=True).start()

    def _retire(self, version: Version, wait: Callable[[], None]) -> None:
        wait()
        self.release(version)

    def _try_to_load(self, number: int) -> None:
        folder = self._folder / str(number)
        looks = _looks_of(folder)
        if self._failed.get(number) == looks:
            return  # tried again when a file of it changes, as when it was being copied
        version = Version(number)
        with self._lock:
            self._others[number] = version
        try:
            version.loaded = self._load(folder)
        except Exception as error:
            self._failed[number] = looks
            with self._lock:
                version.state, version.error = State.END, f"{type(error).__name__}: {error}"[:1000]
            logging.error("%s version %d was not loaded: %s", self.name, number, version.error)
            return
        with self._lock:
            version.state = State.AVAILABLE
            self._served[number] = version
            self._others.pop(number, None)
            self._failed.pop(number, None)
        if self._front is not None:
            signatures = version.loaded.signatures.items()
            plain = {n: x.predictor for n, x in signatures if x.predictor is not None}
            self._front.publish(self.name, number, plain)
        logging.info("%s version %d is served", self.name, number)

    def _drop(self, version: Version) -> None:
        with self._lock:
            version.state, version.loaded = State.END, None
            ended = [n for n, v in self._others.items() if v.state is State.END]
            for number in sorted(ended)[:-_MOST_ENDED]:
                del self._others[number]
        gc.collect()  # functions and their graphs refer to each other
        logging.info("%s version %d is dropped", self.name, version.number)


class Models:
    """All models, by name; a thread looks at their folders every `poll_seconds`."""

    def __init__(self, models: Mapping[str, Model], poll_seconds: float) -> None:
        self._models = dict(models)
        self._poll_seconds = poll_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="poll", daemon=True)

    def __iter__(self) -> Any:
        return iter(self._models.values())

    def __contains__(self, name: str) -> bool:
        return name in self._models

    def model(self, name: str) -> Model:
        """A model by its name; ServingError if there is none."""
        try:
            return self._models[name]
        except KeyError:
            raise not_found(f"model {name[:200]!r} is not served.") from None

    def start(self) -> None:
        """Begins to poll."""
        self._thread.start()

    def stop(self, patience: float) -> bool:
        """Ends polling; whether it has ended, for a load in progress after `patience` seconds."""
        self._stopped.set()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _poll(self) -> None:
        while not self._stopped.wait(self._poll_seconds):
            for model in self:
                try:
                    model.poll()
                except Exception:
                    logging.exception("looking for versions of %s", model.name)


def _numbers_in(folder: pathlib.Path) -> list[int]:
    try:
        return [
            int(path.name)
            for path in folder.iterdir()
            # As 007 is not the folder of version 7, which would be looked for in vain.
            if path.name.isascii() and path.name.isdigit() and str(int(path.name)) == path.name
            if (path / "saved_model.pb").exists() or (path / "saved_model.pbtxt").exists()
        ]
    except FileNotFoundError:
        return []


def _looks_of(folder: pathlib.Path) -> tuple[int, int]:
    try:
        files = [path.stat() for path in folder.rglob("*")]
    except FileNotFoundError:
        return (0, 0)
    return (max((x.st_mtime_ns for x in files), default=0), sum(x.st_size for x in files))
