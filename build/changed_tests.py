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
"""Runs what the files of a change can break first, in a minute or two: scripts/test.sh --changed.

    .venv/bin/python build/changed_tests.py --base main [--python cp312] [--list]

- The checks of static_checks.py that look at these files.
- C++, BUILD files and data: the small and medium C++ tests of the packages that have them, and of
  those whose tests depend on the changed targets.
- Bazel's rules and options: all targets are analysed, and none is built.
- Python: the tests that import a changed module, directly or through others, or name its file, and
  the test of its name. If the wheel has the module, it is built and installed first.
- Pages: the tests of the programs in them.

It leaves out the large C++ tests, Python tests of the whole runtime after a change of C++, and the
soak.
"""

from __future__ import annotations

import ast
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

import static_checks
from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of Python files that the wheel has.
_IN_WHEEL = ("tensorflow/python/", "tensorflow/_api/", "patches/")
_CXX = (".cc", ".h", ".lds")
# All targets depend on these, so that they are only analysed.
_BUILD_RULES = (".bzl", ".bazelrc", "WORKSPACE", "third_party/tensorflow.BUILD")
_DOCS_TEST = "examples/docs_test.py"
_COMMAND_TEST = "build/command_line_test.py"


def imports(path: str, text: str) -> set[str]:
    """Finds the modules that a file imports.

    Args:
      path: the file, relative to the repository's root.
      text: what is in it.

    Returns:
      Their names as paths without .py: of a folder's own modules, with the folder.
    """
    folder = pathlib.PurePath(path).parent
    found = set()
    for node in ast.walk(ast.parse(text, path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            part = name.replace(".", "/")
            # pyproject.toml has build on the path of all tests.
            found |= {part, (folder / part).as_posix(), f"build/{part}"}
    return found


def python_tests(changed: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """Finds the Python tests that changed files can break.

    Args:
      changed: files, relative to the repository's root.
      sources: the text of each Python file of the repository, by path.

    Returns:
      The tests' files.
    """
    modules = {path.removesuffix(".py"): path for path in sources}
    users: dict[str, set[str]] = {path: set() for path in sources}
    for path, text in sources.items():
        for module in imports(path, text) & modules.keys():
            users[modules[module]].add(path)
        # conftest.py is used without being named.
        if path.endswith("_test.py"):
            for folder in pathlib.PurePath(path).parents:
                users.get(f"{folder}/conftest.py", set()).add(path)
    reached = _reached([path for path in changed if path in sources], users)
    tests = {path for path in reached if path.endswith("_test.py")}
    for path in changed:
        name = pathlib.PurePath(path).name
        if path.endswith("_test.py") or name == "__init__.py":
            continue
        named = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
        tests |= {
            test for test in sources if test.endswith("_test.py") and named.search(sources[test])
        }
    # Programs in tests call tf.cuda.NAME. A module without such names is called through its users.
    for path in changed:
        if path in sources and path.startswith(_IN_WHEEL) and not path.endswith("_test.py"):
            tests |= _tests_that_call([path], sources) or _tests_that_call(
                sorted(_reached([path], users)), sources
            )
    if any(path.endswith(".md") for path in changed) and _DOCS_TEST in sources:
        tests.add(_DOCS_TEST)
    if any(path.startswith("scripts/") for path in changed) and _COMMAND_TEST in sources:
        tests.add(_COMMAND_TEST)
    return sorted(tests)


def _reached(modules: Sequence[str], users: Mapping[str, set[str]]) -> set[str]:
    """Lists modules with all that use them, directly or through others."""
    waiting, reached = list(modules), set[str]()
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += users[path]
    return reached


def _tests_that_call(modules: Sequence[str], sources: Mapping[str, str]) -> set[str]:
    """Finds tests that have a public function or class of modules as an attribute of something."""
    names = {
        node.name
        for path in modules
        if path.startswith(_IN_WHEEL) and not path.endswith("_test.py")
        for node in ast.parse(sources[path], path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    if not names:
        return set()
    called = re.compile(rf"\.({'|'.join(sorted(names))})\b")
    return {
        path for path, text in sources.items() if path.endswith("_test.py") and called.search(text)
    }


def bazel_tests(changed: Sequence[str], packages: Sequence[str]) -> str | None:
    """Asks Bazel's query for the C++ tests that changed files can break.

    Args:
      changed: files, relative to the repository's root.
      packages: folders that have a BUILD file.

    Returns:
      The query; None if no target has any of the files.
    """
    labels = []
    for path in changed:
        if path.endswith((".md", ".py")) or path.startswith(("docs/", "scripts/", "patches/")):
            continue
        owners = [
            folder for folder in map(str, pathlib.PurePath(path).parents) if folder in packages
        ]
        if not owners:
            continue
        inside = pathlib.PurePath(path).relative_to(owners[0]).as_posix()
        owner = "" if owners[0] == "." else owners[0]
        if inside == "BUILD.bazel":
            labels.append(f"//{owner}:all")
        elif path.endswith(_CXX) or "/data/" in path:
            labels.append(f"//{owner}:{inside}")
    if not labels:
        return None
    return f"tests(rdeps(//..., set({' '.join(sorted(labels))})))"


def needs_wheel(changed: Sequence[str], tests: Sequence[str]) -> bool:
    """Says whether tests need a wheel with the change.

    Args:
      changed: files, relative to the repository's root.
      tests: Python tests that are to run.

    Returns:
      Whether the wheel has one of the files, and one of the tests runs TensorFlow.
    """
    return any(not test.startswith("build/") for test in tests) and any(
        path.startswith(_IN_WHEEL) and not path.endswith(("_test.py", "conftest.py"))
        for path in changed
    )


def changed_files(base: str, root: pathlib.Path) -> list[str]:
    """Lists what differs from a commit, changes that are not committed included.

    Args:
      base: the commit.
      root: the repository.

    Returns:
      Paths relative to it; deleted files too.

    Raises:
      BuildError: Git does not know the commit.
    """
    found: set[str] = set()
    for arguments in (
        ["diff", "--name-only", "-z", base, "--"],
        ["ls-files", "--others", "--exclude-standard", "-z"],
    ):
        ran = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise BuildError(f"git {' '.join(arguments)} failed: {ran.stderr.strip()}")
        found |= {
            path for path in ran.stdout.split("\0") if path and not (root / path).is_symlink()
        }
    return sorted(found)


def _run(command: Sequence[str], **environment: str) -> None:
    """Runs a command at the repository's root."""
    print("\n$ " + " ".join(command), flush=True)
    ran = subprocess.run(command, cwd=_ROOT, env={**os.environ, **environment}, check=False)
    if ran.returncode:
        raise BuildError(f"This failed:\n{' '.join(command)}")


def _run_bazel_tests(query: str, bazel: str, options: Sequence[str]) -> None:
    """Runs the tests that a query finds, but the large ones."""
    ran = subprocess.run(
        [bazel, "query", "--keep_going", "--noshow_progress", *options, query],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    labels = ran.stdout.split()
    if not labels:
        if ran.returncode:
            raise BuildError(f"bazel query failed:\n{ran.stderr.strip()}")
        return
    _run(
        [
            bazel,
            "test",
            "--curses=no",
            "--show_progress_rate_limit=15",
            "--build_tests_only",
            "--test_size_filters=small,medium",
            *options,
            *labels,
        ]
    )


def _run_python_tests(tests: Sequence[str], with_wheel: bool, tag: str) -> None:
    """Runs Python tests, with a new wheel if they need one."""
    if with_wheel:
        build = f"rm -f dist/tensorflow-*-{tag}-*.whl; scripts/build_wheel.sh --python {tag}"
        install = f". scripts/common.sh; install_wheel_for_tests dist/*-{tag}-*.whl"
        _run(["bash", "-c", f"{build}; {install}"])
    wheel = next((_ROOT / "dist").glob(f"tensorflow-*-{tag}-*.whl"), None)
    workers = str(min(len(tests) * 4, os.cpu_count() or 1))
    _run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal", *tests],
        **({"TFMS_WHEEL": str(wheel)} if wheel else {}),
    )


def main() -> None:
    """Runs what the command line says."""
    parser = command_line(__doc__)
    parser.add_argument("--base", metavar="COMMIT", default="HEAD", help="compare with it [HEAD]")
    parser.add_argument("--python", metavar="TAG", help="of the wheel [that of this Python]")
    parser.add_argument("--bazel", metavar="COMMAND", default="bazel", help="[bazel]")
    parser.add_argument("--list", action="store_true", help="say what would run, and end")
    options = parser.parse_args()
    tag = options.python or f"cp{sys.version_info[0]}{sys.version_info[1]}"
    changed = changed_files(options.base, _ROOT)
    files = static_checks.repository_files(_ROOT)
    sources = {path: (_ROOT / path).read_text() for path in files if path.endswith(".py")}
    packages = [str(pathlib.PurePath(path).parent) for path in files if "BUILD.bazel" in path]
    tests = python_tests(changed, sources)
    query = bazel_tests([path for path in changed if (_ROOT / path).exists()], packages)
    print("\n".join(["changed:", *changed, "Python tests:", *tests, "C++ tests:", query or "none"]))
    if options.list:
        return
    present = [path for path in changed if path in files]
    static_checks.run_checks(static_checks.CHECKS, present, tag)
    if query:
        _run_bazel_tests(query, options.bazel, [f"--repo_env=TFMS_PYTHON={tag}"])
    if any(path.endswith(_BUILD_RULES) for path in changed):
        _run(
            [
                options.bazel,
                "build",
                "--nobuild",
                "--curses=no",
                f"--repo_env=TFMS_PYTHON={tag}",
                "//...",
            ]
        )
    if tests:
        _run_python_tests(tests, needs_wheel(changed, tests), tag)


if __name__ == "__main__":
    run_main(main)
