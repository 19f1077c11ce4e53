# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The models of --model and --model-config-file, and what happens when the file changes."""

import argparse
import logging
import re
from typing import Any

from google.protobuf import text_format
from model_config import NO_CUSTOM_CONFIG, LogConfig, ModelConfig, configs_of
from model_versions import looks_of
from models import Models
from serving_error import ServingError, invalid
from tensorflow_serving.config import model_server_config_pb2


class ConfigFile:
    """The file of --model-config-file, if there is one, and the models of --model."""

    def __init__(self, options: argparse.Namespace, models: Models) -> None:
        self._models = models
        self._file = options.model_config_file
        self._versions = options.versions
        self._given = {
            name: ModelConfig(
                name,
                folder,
                options.versions,
                where=f"--model {name}={folder}",
                log=options.request_log
                and LogConfig(f"{options.request_log}.{name}", options.request_log_rate),
            )
            for name, folder in options.model.items()
        }
        self._served = b""  # content of the file that is served, unless a request has changed it
        self._failed: Any = None  # what could not be served: the file's content, the models' files
        self._logged: Any = None

    def apply(self) -> None:
        """Serves what the file says; ServingError if that is wrong, or does not load."""
        content = self._content()
        self._models.change(self._configs(content))
        self._served = content

    def look(self) -> None:
        """Serves what the file says if it has changed; logs once what is wrong with a change."""
        content = None
        try:
            content = self._content()
            if content == self._served:
                return
            configs = self._configs(content)
            # What has failed is tried again when the file, or a model's folder, changes.
            tried = (content, [looks_of(config.folder) for config in configs.values()])
            if tried != self._failed:
                self._failed = tried
                self._models.change(configs)
                self._served = content
        except ServingError as error:
            if self._logged != (content, error.message):
                self._logged = (content, error.message)
                logging.error("what is served stays: %s", error.message)

    def _content(self) -> bytes:
        if self._file is None:
            return b""
        try:
            return bytes(self._file.read_bytes())
        except OSError as error:
            raise invalid(
                f"--model-config-file {self._file} cannot be read: {error.strerror}"
            ) from None

    def _configs(self, content: bytes) -> dict[str, ModelConfig]:
        if self._file is None:
            return self._given
        found = configs_of(self._parsed(content), self._versions, f"{self._file}: ")
        for name, config in found.items():
            if name in self._given:
                raise invalid(
                    f"{config.where}: {self._given[name].where} has this name, too. Give the model "
                    "once."
                )
        return {**self._given, **found}

    def _parsed(self, content: bytes) -> Any:
        try:
            text = content.decode()
            return text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
        except UnicodeDecodeError as error:
            raise invalid(f"{self._file}: not UTF-8: {error}") from None
        except text_format.ParseError as error:
            says = re.sub(r"^(\d+):(\d+) : ", r"line \1, column \2: ", str(error))
            hint = f" {NO_CUSTOM_CONFIG}" if "custom_model_config" in text else ""
            raise invalid(
                f"{self._file}: not a tensorflow.serving.ModelServerConfig in text format: "
                f"{says}{hint}"
            ) from None
