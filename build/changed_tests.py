# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs what the files of a change can break first, in a minute or two: scripts/test.sh --changed.

    .venv/bin/python build/changed_tests.py --base main [--python cp312] [--list]

docs/contributing.md says what runs for which files, and what is left out.
"""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import static_checks
from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of Python files that the wheel has.
_IN_WHEEL = ("tensorflow/python/", "tensorflow/_api/", "patches/")
_CXX = re.compile(r".*\.(cc|h|lds)|.*/data/.*|(.*/)?BUILD\.bazel")
# All targets depend on these, so that they are only analysed.
_BUILD_RULES = (".bzl", ".bazelrc", "WORKSPACE", "third_party/tensorflow.BUILD")
# C++ tests; each takes a second to link.
_ENOUGH = 12
# Tests of what no test names.
_TESTS_OF = ((r".*\.md", "examples/docs_test.py"), (r"scripts/.*", "build/command_line_test.py"))
_IMPORT = re.compile(r"^\s*(?:from\s+[\w.]+\s+)?import\s+(?:[^(\n]|\([^)]*\))*", re.MULTILINE)
_PUBLIC = re.compile(r"^(?:def|class) ([^\W_]\w*)", re.MULTILINE)


def python_tests(changed: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """Finds the Python tests that changed files can break; `sources` are the repository's by path.

    They import a changed module, directly or through others, name the changed file, or call what a
    changed module of the wheel defines.
    """
    tests = {path for path in sources if path.endswith("_test.py")}
    imported = {
        path: set(re.findall(r"\w+", " ".join(_IMPORT.findall(text))))
        for path, text in sources.items()
    }
    chosen = {test for files, test in _TESTS_OF for path in changed if re.fullmatch(files, path)}
    for path in changed:
        used = _users(path, imported)
        chosen |= used
        if path not in tests and not path.endswith("__init__.py"):
            name = re.compile(rf"(?<![\w.]){re.escape(pathlib.PurePath(path).name)}(?!\w)")
            chosen |= {test for test in tests if name.search(sources[test])}
        if path in sources and path.startswith(_IN_WHEEL) and path not in tests:
            # Programs in tests call tf.cuda.NAME, of this module or else of its users.
            for modules in ({path}, used - tests):
                names = [name for module in modules for name in _PUBLIC.findall(sources[module])]
                called = re.compile(rf"\.({'|'.join(names)})\b") if names else None
                if found := {test for test in tests if called and called.search(sources[test])}:
                    chosen |= found
                    break
    return sorted(chosen & tests)


def _users(path: str, imported: Mapping[str, set[str]]) -> set[str]:
    """Lists a module with all that import it, directly or through others."""
    waiting, found = {path} & imported.keys(), set[str]()
    while waiting:
        module = pathlib.PurePath(waiting.pop())
        found.add(str(module))
        if module.name == "conftest.py":  # pytest imports it
            users = {user for user in imported if user.startswith(f"{module.parent}/")}
        else:
            users = {user for user, words in imported.items() if module.stem in words}
        waiting |= users - found
    return found


def bazel_targets(changed: Sequence[str]) -> list[str]:
    """Finds what C++ tests may be made of among changed files; of a BUILD file, all that it has."""
    return [
        f"//{'' if folder == '.' else folder}:all" if path.endswith("BUILD.bazel") else path
        for path in changed
        if _CXX.fullmatch(path)
        for folder in [pathlib.PurePath(path).parent.as_posix()]
    ]


def nearest_tests(targets: Sequence[str], query: Callable[[str], list[str]]) -> list[str]:
    """Asks Bazel for the dozen C++ tests with the fewest libraries between them and the targets."""
    found: list[str] = []
    for depth in (", 2", ", 3", ", 4", ", 6", ""):
        found = query(f"tests(rdeps(//..., set({' '.join(targets)}){depth}))")
        if len(found) >= _ENOUGH:
            break
    return found


def changed_files(base: str, root: pathlib.Path) -> list[str]:
    """Lists the files that differ from the commit `base`, uncommitted and deleted ones as well."""
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
        found |= {path for path in ran.stdout.split("\0") if path}
    return sorted(path for path in found if not (root / path).is_symlink())


def _run(command: Sequence[str], **environment: str) -> None:
    print("\n$ " + " ".join(command), flush=True)
    ran = subprocess.run(command, cwd=_ROOT, env={**os.environ, **environment}, check=False)
    if ran.returncode:
        raise BuildError(f"This failed:\n{' '.join(command)}")


def _run_bazel_tests(targets: Sequence[str], bazel: str, option: str) -> None:
    """Runs the nearest tests of targets, but the large ones."""

    def query(expression: str) -> list[str]:
        command = [bazel, "query", "--keep_going", "--noshow_progress", option, expression]
        ran = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        if ran.returncode and not ran.stdout and "no such target" not in ran.stderr:
            raise BuildError(f"bazel query failed:\n{ran.stderr.strip()}")
        return ran.stdout.split()

    if labels := nearest_tests(targets, query):
        options = ["--curses=no", "--show_progress_rate_limit=15", "--build_tests_only"]
        _run([bazel, "test", *options, "--test_size_filters=small,medium", option, *labels])


def needs_wheel(changed: Sequence[str], tests: Sequence[str]) -> bool:
    """Says whether the wheel has one of the changed files, and one of the tests runs TensorFlow."""
    return any(not test.startswith("build/") for test in tests) and any(
        path.startswith(_IN_WHEEL) and not path.endswith(("_test.py", "conftest.py"))
        for path in changed
    )


def _run_python_tests(tests: Sequence[str], changed: Sequence[str], tag: str) -> None:
    """Runs Python tests, with a new wheel if they need one."""
    if needs_wheel(changed, tests):
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
    files = static_checks.repository_files(_ROOT)
    changed = changed_files(options.base, _ROOT)
    present = [path for path in changed if path in files]
    sources = {
        path: (_ROOT / path).read_text(encoding="utf-8") for path in files if path.endswith(".py")
    }
    tests = python_tests(changed, sources)
    targets = bazel_targets(present)
    print("\n".join(["changed:", *changed, "Python tests:", *tests, "C++ tests of:", *targets]))
    if options.list:
        return
    static_checks.run_checks(static_checks.CHECKS, present, tag)
    python_option = f"--repo_env=TFMS_PYTHON={tag}"
    if targets:
        _run_bazel_tests(targets, options.bazel, python_option)
    if any(path.endswith(_BUILD_RULES) for path in changed):
        _run([options.bazel, "build", "--nobuild", "--curses=no", python_option, "//..."])
    if tests:
        _run_python_tests(tests, changed, tag)


if __name__ == "__main__":
    run_main(main)
