# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The models that a front's calls reach, and what the front is told of them."""

import logging
import re
from collections.abc import Callable, Mapping

from batching import ALONE, Batching
from grpc_front import Front
from tensorflow.python.multistream.serving.served_models import Predictor, ServedModels


class FrontModels(ServedModels):
    """As ServedModels; tells the front the inputs of signatures, and which calls share steps."""

    def __init__(self, batching: Batching) -> None:
        super().__init__()
        self._batching = batching
        self._batches: dict[tuple[str, str], Batching] = {}
        self._dtypes: dict[tuple[str, int], dict[str, dict[str, int]]] = {}
        self._front: Front | None = None

    def publish(
        self, model: str, version: int, signatures: Mapping[str, Predictor]
    ) -> Callable[[], None]:
        """As ServedModels; the front hears of it."""
        wait = super().publish(model, version, signatures)
        dtypes = {name: predictor.dtypes for name, predictor in signatures.items()}
        self._dtypes[model, version] = dtypes
        if self._front is not None:
            self._front.serve(model, version, dtypes)
        if not self._batching.shares:
            return wait
        for name, predictor in signatures.items():
            why = predictor.why_not_shared()
            if re.search(r"\s", name) or not name:
                why = "its name has blanks"
            if why:
                logging.warning(
                    "calls of %s version %d, signature %s, do not share steps: %s",
                    *(model, version, name, why),
                )
            said = ALONE if why else self._batching
            self._batches[model, name] = said
            if self._front is not None:
                self._front.batch(model, name, said)
        return wait

    def withdraw(self, model: str, version: int) -> Callable[[], None]:
        """As ServedModels; the front hears of it."""
        known = self._dtypes.pop((model, version), None)
        if known is not None and self._front is not None:
            self._front.serve(model, version, None)
        return super().withdraw(model, version)

    def tell(self, front: Front) -> None:
        """Tells a front what is served now, and from now on what changes."""
        self._front = front
        for (model, version), dtypes in list(self._dtypes.items()):
            front.serve(model, version, dtypes)
        for (model, name), said in list(self._batches.items()):
            front.batch(model, name, said)
