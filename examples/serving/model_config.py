# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""What is to be served: the models of TensorFlow Serving's ModelServerConfig, checked."""

import dataclasses
import pathlib
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from serving_error import invalid
from tensorflow_serving.config import model_server_config_pb2

NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
NAME_SAYS = "a name has 1 to 100 letters, digits, '_', '.' and '-'"
NO_CUSTOM_CONFIG = "custom_model_config is not supported; list the models in model_config_list."


# A version is an int64 in all APIs, as in TensorFlow Serving.
MOST_VERSION = (1 << 63) - 1
_LOG_TYPE = "file"


class LogConfig(NamedTuple):
    """The share `rate` of a model's calls is logged, to files whose paths begin with `prefix`."""

    prefix: str
    rate: float


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """One model, and which versions of its folder are served.

    They are the `latest` newest ones (None: all), of `specific` if there are any. `where` is what
    errors name: the option, or the part of the configuration. Configs are equal if the same
    versions and labels are served by them.
    """

    name: str
    folder: pathlib.Path
    latest: int | None = 1
    specific: tuple[int, ...] = ()
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)
    where: str = dataclasses.field(default="", compare=False)
    log: LogConfig | None = dataclasses.field(default=None, compare=False)

    def wanted(self, found: Collection[int]) -> list[int]:
        """Those of some versions that are to be served, sorted."""
        numbers = sorted(set(found) & set(self.specific) if self.specific else found)
        return numbers if self.latest is None else numbers[-self.latest :]


def configs_of(given: Any, versions: int, source: str = "") -> dict[str, ModelConfig]:
    """The models of a ModelServerConfig, by name.

    Args:
      given: the message.
      versions: how many versions a model without a policy serves, the newest ones.
      source: what errors begin with.

    Raises:
      ServingError: INVALID_ARGUMENT, the first thing that is wrong.
    """
    kind = given.WhichOneof("config")
    if kind == "custom_model_config":
        raise invalid(source + NO_CUSTOM_CONFIG)
    if kind is None:
        raise invalid(f"{source}model_config_list is missing; it lists the models.")
    found: dict[str, ModelConfig] = {}
    for i, config in enumerate(given.model_config_list.config):
        where = f"{source}config[{i}] {config.name[:100]!r}"
        if config.name in found:
            raise invalid(
                f"{where}: {found[config.name].where} has this name, too. Give each model a name "
                "of its own, and its versions by model_version_policy."
            )
        found[config.name] = _config_of(config, versions, where)
    return found


def _config_of(given: Any, versions: int, where: str) -> ModelConfig:
    if not NAME.fullmatch(given.name):
        raise invalid(f"{where}: name is missing or wrong; {NAME_SAYS}.")
    if not given.base_path:
        raise invalid(f"{where}: base_path is missing; it is the folder of numbered versions.")
    folder = pathlib.Path(given.base_path)
    if not folder.is_dir():
        raise invalid(
            f"{where}: base_path {given.base_path[:500]!r} is not a folder of the server's machine."
        )
    if given.model_platform not in ("", "tensorflow"):
        raise invalid(
            f"{where}: model_platform {given.model_platform[:100]!r} is not supported; "
            "it has to be 'tensorflow'."
        )
    if given.model_type == model_server_config_pb2.OTHER:
        raise invalid(f"{where}: model_type OTHER is not supported; it has to be TENSORFLOW.")
    if "" in given.version_labels:
        raise invalid(f"{where}: version_labels has an empty key; give the label a name.")
    latest, specific = _versions_of(given.model_version_policy, versions, where)
    labels, log = dict(given.version_labels), _log_of(given, f"{where}: logging_config")
    return ModelConfig(given.name, folder, latest, specific, labels, where, log)


def _log_of(given: Any, where: str) -> LogConfig | None:
    if not given.HasField("logging_config"):
        return None
    collector = given.logging_config.log_collector_config
    sampling = given.logging_config.sampling_config
    for message, field in (
        (given.logging_config, "custom_logging_config"),
        (sampling, "per_task_sampling_configs"),
        (sampling, "attributes"),
    ):
        if any(found.name == field for found, _ in message.ListFields()):
            raise invalid(f"{where}.{field} is not supported; leave it out.")
    if collector.type not in ("", _LOG_TYPE):
        raise invalid(
            f"{where}.log_collector_config.type {collector.type[:100]!r} is not supported; it has "
            f"to be {_LOG_TYPE!r}, or left out."
        )
    if not 0 <= sampling.sampling_rate <= 1:
        raise invalid(
            f"{where}.sampling_config.sampling_rate is {sampling.sampling_rate}; it may be 0 to 1."
        )
    prefix = collector.filename_prefix
    why = why_not_prefix(prefix)
    if why:
        raise invalid(f"{where}.log_collector_config.filename_prefix {prefix[:500]!r} {why}")
    return LogConfig(prefix, sampling.sampling_rate)


def why_not_prefix(prefix: str) -> str:
    """Why files of logs cannot have a prefix; empty if they can."""
    folder, _, name = prefix.rpartition("/")
    if not name:
        return "has no name after its folder; give a folder and the beginning of the files' names."
    if not pathlib.Path(folder or ("/" if "/" in prefix else ".")).is_dir():
        return (
            f"is not in a folder of the server's machine; make {folder[:500]!r}, or give another."
        )
    return ""


def _versions_of(policy: Any, versions: int, where: str) -> tuple[int | None, tuple[int, ...]]:
    kind = policy.WhichOneof("policy_choice")
    if kind is None:
        return versions, ()
    if kind == "latest":
        return policy.latest.num_versions or 1, ()
    if kind == "specific" and not policy.specific.versions:
        raise invalid(
            f"{where}: model_version_policy.specific has no versions; name at least one, or take "
            "'latest {}' or 'all {}'."
        )
    return None, tuple(policy.specific.versions)
