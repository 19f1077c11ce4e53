# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import pathlib
from typing import Any

import pytest

import fakes
import platform_tag
from build_error import BuildError


def tag_of(tmp_path: pathlib.Path, needs: dict[str, list[str]], bundled: str = "") -> str:
    library = fakes.make_library(tmp_path / "lib.so", needs)
    return platform_tag.platform_tag(library, frozenset(bundled.split()))


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.28"]}, "manylinux_2_28_x86_64"),
        ({"libstdc++.so.6": ["GLIBCXX_3.4.29"]}, "manylinux_2_34_x86_64"),
        ({"libstdc++.so.6": ["GLIBCXX_3.4.30", "CXXABI_1.3"]}, "manylinux_2_35_x86_64"),
        ({"libgcc_s.so.1": ["GCC_12.0.0"]}, "manylinux_2_35_x86_64"),
        ({"libm.so.6": ["GLIBC_2.29"], "libc.so.6": ["GLIBC_2.4"]}, "manylinux_2_31_x86_64"),
        ({"libc.so.6": ["GLIBC_2.99"]}, "linux_x86_64"),
    ],
)
def test_is_the_lowest_level_that_allows_every_symbol(
    tmp_path: pathlib.Path, needs: dict[str, list[str]], expected: str
) -> None:
    assert tag_of(tmp_path, needs) == expected


def test_versions_of_bundled_libraries_do_not_count(tmp_path: pathlib.Path) -> None:
    needs = {"libtensorflow_cc.so.2": ["TF_9"], "libc.so.6": ["GLIBC_2.17"]}
    assert tag_of(tmp_path, needs, bundled="libtensorflow_cc.so.2") == "manylinux_2_27_x86_64"


def test_a_library_that_systems_may_lack_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BuildError, match=r"needs libgflags.so.2"):
        tag_of(tmp_path, {"libgflags.so.2": [], "libc.so.6": ["GLIBC_2.17"]})


def test_policies_are_those_of_auditwheel() -> None:
    policy: Any = pytest.importorskip("auditwheel.policy")
    libc = pytest.importorskip("auditwheel.libc").Libc.GLIBC
    architecture = pytest.importorskip("auditwheel.architecture").Architecture.x86_64
    policies = policy.WheelPolicies(libc=libc, arch=architecture)
    symbols = {item.name: item.symbol_versions for item in policies}
    for tag, newest in platform_tag.POLICIES.items():
        for family, version in zip(platform_tag.FAMILIES, newest, strict=True):
            numbers = [number for number in symbols[tag][family] if number[0].isdigit()]
            assert max(numbers, key=platform_tag.parts) == version
