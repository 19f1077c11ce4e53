# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Headers are followed through a wheel, and classes are found in them."""

import pathlib
import zipfile

import abi_headers

HEADERS = {
    "xla/first.h": """
        #include "beside.h"
        #include <tensorflow/second.h>  // and not "xla/comment.h"
        // class Comment { virtual void No(); };
    """,
    "xla/beside.h": "#include <vector>\nint beside;",
    "tensorflow/second.h": """
        class TF_API Run final : public tsl::Base<int>, public core::RefCounted {
         public:
          virtual ~Run() = default;
          virtual absl::Status Start(std::string name, std::function<void()> done = {}) = 0;
          virtual absl::Status Start(int number) { return {}; }
          class Inner { virtual int Deep() const; };
          void Plain();
        };
    """,
    "xla/unused.h": "int unused;",
}


def read(folder: pathlib.Path, headers: dict[str, str], *included: str) -> abi_headers.Headers:
    path = folder / f"{len(headers)}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in headers.items():
            archive.writestr(abi_headers.INCLUDE + name, text)
    with zipfile.ZipFile(path) as archive:
        return abi_headers.read(archive, included)


def test_follows_what_headers_include(tmp_path: pathlib.Path) -> None:
    found = read(tmp_path, HEADERS, "xla/first.h", "not/there.h")
    assert {"beside", "Start"} <= found.names
    assert not {"unused", "Comment", "there"} & found.names
    assert found.absent == {"vector": "xla/beside.h"}


def test_classes_with_their_bases_and_virtual_functions(tmp_path: pathlib.Path) -> None:
    run = read(tmp_path, HEADERS, "xla/first.h").classes["Run"]
    assert run.header == "tensorflow/second.h"
    assert run.bases == {"Base", "RefCounted"}
    assert run.virtuals["Start"] == {"stringname,std::function<void()>done={}", "intnumber"}
    assert "Plain" not in run.virtuals


def test_functions_that_are_overridden() -> None:
    code = "int A(std::function<int(int)> f) const override; void B(); bool C() override { D(); }"
    assert abi_headers.overridden(code) == {"A", "C"}


def test_a_virtual_function_of_a_base_of_the_base_counts(tmp_path: pathlib.Path) -> None:
    texts = {"xla/a.h": "class A { virtual void F(); }; class B : public A { int b; };"}
    old = read(tmp_path, texts, "xla/a.h")
    new = read(tmp_path, {"xla/a.h": "class A {}; class B : public A {};"}, "xla/a.h")
    uses = abi_headers.Uses(frozenset(), {"B": "mine.cc"}, frozenset({"F"}))
    assert abi_headers.compare(uses, old, new) == (["no longer virtual: xla/a.h: A::F"], [])
    assert abi_headers.compare(uses, new, old) == ([], ["new virtual: xla/a.h: A::F"])


def test_other_names_of_a_type_are_no_difference(tmp_path: pathlib.Path) -> None:
    old = read(tmp_path, {"xla/a.h": "class A { virtual int F(string a); };"}, "xla/a.h")
    new = read(tmp_path, {"xla/a.h": "class A { virtual int F(std::string a); };"}, "xla/a.h")
    uses = abi_headers.Uses(frozenset(), {"A": "mine.cc"}, frozenset({"F"}))
    assert abi_headers.compare(uses, old, new) == ([], [])
