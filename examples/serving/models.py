# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Which models are served: finds them by name, has their folders polled, and changes them."""

import logging
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from model_config import ModelConfig
from model_versions import Model, Version
from serving_error import ServingError, error_of, not_found
from tensorflow.python.multistream.serving.served_models import ServedModels


class Models:
    """All models, by name.

    Args:
      load: loads the version in a folder, of a model of this name.
      front: answers, too, for what is served.
      labels_may_wait: a new label may be given to a version that is not available.
    """

    def __init__(
        self,
        load: Callable[[str, pathlib.Path], Any],
        front: ServedModels | None = None,
        labels_may_wait: bool = False,
    ) -> None:
        # What is told the names of all models that have been served, before there are new ones.
        self.tell_names: Callable[[Sequence[str]], None] = lambda names: None
        self.tell_change: Callable[[], None] = lambda: None  # what is told of each change
        self.names: list[str] = []
        self._load = load
        self._front = front
        self._labels_may_wait = labels_may_wait
        # The dicts are replaced and never changed, so that calls need no lock to read them.
        self._models: dict[str, Model] = {}
        self._others: dict[str, Model] = {}  # that are being loaded, or have calls but no place
        self._changes = threading.Lock()  # held while anything is loaded, published or retired
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[Model]:
        return iter(self._models.values())

    def __contains__(self, name: str) -> bool:
        return name in self._models

    def model(self, name: str) -> Model:
        """A model by its name; ServingError if none of this name is served."""
        try:
            return self._models[name]
        except KeyError:
            raise not_found(f"model {name[:200]!r} is not served.") from None

    def config(self, name: str) -> ModelConfig | None:
        """How a model is served; None if none of this name is."""
        model = self._models.get(name)
        return None if model is None else model.config

    def known(self, name: str) -> Model:
        """As `model`, and also one that is being loaded, or is gone and has calls in flight."""
        other = self._others.get(name)
        if name in self._models or other is None or other.has_ended():
            return self.model(name)
        return other

    def change(self, configs: Mapping[str, ModelConfig]) -> None:
        """Serves these models and no others, once all of them are loaded.

        Calls of a model that stays do not notice. A model that is gone is dropped when its last
        call has ended.

        Raises:
          ServingError: UNKNOWN for a model without a version that loads, FAILED_PRECONDITION for a
            label of a version that is not available. Then nothing has changed.
        """
        with self._changes:
            before = self._models
            models = {
                name: before.get(name) or Model(config, self._load, self._front)
                for name, config in configs.items()
            }
            leaving = {n: model for n, model in self._others.items() if not model.has_ended()}
            self._others = {**leaving, **{n: models[n] for n in models.keys() - before.keys()}}
            try:
                prepared = self._prepared(models, configs)
            except ServingError:
                self._others = leaving
                raise
            self.names = sorted({*self.names, *configs})
            self.tell_names(self.names)
            for name, config in configs.items():
                if name in prepared:
                    models[name].adopt(config, prepared[name])
                else:
                    models[name].config = config  # the same versions, perhaps another log
            gone = {n: model for n, model in before.items() if n not in models}
            self._models, self._others = models, {**leaving, **gone}
            for model in gone.values():
                model.close()
            self.tell_change()
            logging.info("models that are served: %s", ", ".join(models) or "none")

    def _prepared(
        self, models: Mapping[str, Model], configs: Mapping[str, ModelConfig]
    ) -> dict[str, list[Version]]:
        """Loads what the configs of models ask for; all errors are one ServingError."""
        prepared: dict[str, list[Version]] = {}
        errors = []
        for name, config in configs.items():
            if name in self._models and models[name].config == config:
                continue
            try:
                prepared[name] = models[name].prepare(config, self._labels_may_wait)
            except Exception as error:
                errors.append(error_of(error))
        if errors:
            for name, versions in prepared.items():
                models[name].discard(versions)
            raise ServingError(errors[0].code, "\n".join(error.message for error in errors))
        return prepared

    def poll(self) -> None:
        """Looks for new versions in the models' folders."""
        for name in self._models:
            with self._changes:
                if name in self._models:
                    self._models[name].poll()

    def every(self, seconds: float, look: Callable[[], None]) -> None:
        """Has a thread look for something again and again, until `stop`."""

        def look_on() -> None:
            while not self._stopped.wait(seconds):
                try:
                    look()
                except Exception:
                    logging.exception("%s", look)

        threading.Thread(target=look_on, name="look", daemon=True).start()

    def stop(self, patience: float) -> bool:
        """Ends all changes; False if a load is still in progress after `patience` seconds."""
        self._stopped.set()
        return self._changes.acquire(timeout=patience)
