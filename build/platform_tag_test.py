# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import pytest

import fakes
import platform_tag
from build_error import BuildError


def tag(tmp_path: pathlib.Path, needs: dict[str, list[str]], bundled: str = "") -> str:
    library = fakes.make_library(tmp_path / "lib.so", needs)
    return platform_tag.platform_tag(platform_tag.read_needs(library), frozenset(bundled.split()))


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({"libc.so.6": ["GLIBC_2.2.5"]}, "manylinux_2_27_x86_64"),
        ({"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.28"]}, "manylinux_2_28_x86_64"),
        ({"libstdc++.so.6": ["GLIBCXX_3.4.29"]}, "manylinux_2_34_x86_64"),
        ({"libstdc++.so.6": ["GLIBCXX_3.4.30", "CXXABI_1.3"]}, "manylinux_2_35_x86_64"),
        ({"libstdc++.so.6": ["CXXABI_1.3.15"]}, "manylinux_2_39_x86_64"),
        ({"libgcc_s.so.1": ["GCC_12.0.0"]}, "manylinux_2_35_x86_64"),
        ({"libm.so.6": ["GLIBC_2.29"], "libc.so.6": ["GLIBC_2.4"]}, "manylinux_2_31_x86_64"),
        ({"libc.so.6": ["GLIBC_2.99"]}, "linux_x86_64"),
        ({"libc.so.6": ["GLIBC_PRIVATE"]}, "linux_x86_64"),
    ],
)
def test_is_the_lowest_level_that_allows_every_symbol(
    tmp_path: pathlib.Path, needs: dict[str, list[str]], expected: str
) -> None:
    assert tag(tmp_path, needs) == expected


def test_versions_of_bundled_libraries_do_not_count(tmp_path: pathlib.Path) -> None:
    needs = {"libtensorflow_cc.so.2": ["TF_9"], "libc.so.6": ["GLIBC_2.17"]}
    assert tag(tmp_path, needs, bundled="libtensorflow_cc.so.2") == "manylinux_2_27_x86_64"


def test_a_library_that_systems_may_lack_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BuildError, match=r"needs libgflags.so.2"):
        tag(tmp_path, {"libgflags.so.2": [], "libc.so.6": ["GLIBC_2.17"]})


def test_a_file_that_is_no_library_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lib.so").write_text("INPUT(libx.so)")
    with pytest.raises(BuildError, match="not a 64-bit little-endian ELF file"):
        platform_tag.read_needs(tmp_path / "lib.so")


def test_reads_a_real_library_as_the_linker_wrote_it(tmp_path: pathlib.Path) -> None:
    source = "#include <cmath>\n#include <string>\nstd::string f(double x)"
    (tmp_path / "a.cc").write_text(source + "{ return std::to_string(std::exp(x)); }\n")
    command = ["g++", "-shared", "-fPIC", f"{tmp_path}/a.cc", "-o", f"{tmp_path}/liba.so"]
    subprocess.run(command, check=True)
    needs = platform_tag.read_needs(tmp_path / "liba.so")
    assert {"libc.so.6", "libstdc++.so.6"} <= needs.libraries
    assert any(name.startswith("GLIBCXX_3.4") for name in needs.versions["libstdc++.so.6"])


def test_policies_are_those_of_auditwheel() -> None:
    policy: Any = pytest.importorskip("auditwheel.policy")
    libc = pytest.importorskip("auditwheel.libc").Libc.GLIBC
    architecture = pytest.importorskip("auditwheel.architecture").Architecture.x86_64
    policies = policy.WheelPolicies(libc=libc, arch=architecture)
    symbols = {item.name: item.symbol_versions for item in policies}
    for (major, minor), newest in platform_tag._POLICIES:
        theirs = symbols[f"manylinux_{major}_{minor}_x86_64"]
        for family, version in newest.items():
            numbers = [number for number in theirs[family] if number[0].isdigit()]
            assert max(numbers, key=platform_tag._parts) == version
