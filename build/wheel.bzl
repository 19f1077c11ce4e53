# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rule that makes the wheel."""

load("@tensorflow//:stock.bzl", "STOCK")

def _multistream_wheel_impl(ctx):
    # The wheel's name tells which platform the runtime library turned out to
    # need, so it is not known yet: the output is the folder that gets it.
    folder = ctx.actions.declare_directory(ctx.label.name)
    python_files = ctx.files.python_sources
    server_files = ctx.files.server_sources
    public_headers = ctx.files.public_headers
    arguments = ctx.actions.args()
    arguments.add_all(["--stock", ctx.file.stock, "--runtime", ctx.file.runtime])
    arguments.add_all(["--license", ctx.file.license, "--out", folder.path])
    arguments.add_all(ctx.files.patched, before_each = "--changed", map_each = _patched)
    arguments.add_all(python_files, before_each = "--added", map_each = _python_source)
    arguments.add_all(server_files, before_each = "--added", map_each = _server_source)
    arguments.add_all(public_headers, before_each = "--added", map_each = _public_header)
    arguments.use_param_file("@%s")
    arguments.set_param_file_format("multiline")

    ctx.actions.run(
        executable = STOCK["python"],
        arguments = [ctx.file._assemble.path, arguments],
        inputs = depset(
            [ctx.file.stock, ctx.file.runtime, ctx.file.license, _checked(ctx)] +
            ctx.files.patched +
            python_files + server_files + public_headers + [ctx.file._assemble] + ctx.files._tools,
        ),
        outputs = [folder],
        # For readelf.
        use_default_shell_env = True,
        mnemonic = "AssembleWheel",
        progress_message = "Assembling the wheel for " + STOCK["tag"],
    )
    return [DefaultInfo(files = depset([folder]))]

def _checked(ctx):
    """Returns a file that is only made if the runtime fits TensorFlow's libraries."""
    stamp = ctx.actions.declare_file(ctx.label.name + ".checked")
    arguments = ctx.actions.args()
    arguments.add_all(["--runtime", ctx.file.runtime, "--exports", ctx.file.exported_symbols])
    arguments.add_all(["--release", STOCK["version"], "--stamp", stamp])
    arguments.add_all(ctx.files.libraries)
    ctx.actions.run(
        executable = STOCK["python"],
        arguments = [ctx.file._check_replacements.path, arguments],
        inputs = [ctx.file.runtime, ctx.file.exported_symbols, ctx.file._check_replacements] +
                 ctx.files.libraries + ctx.files._tools,
        outputs = [stamp],
        # For readelf.
        use_default_shell_env = True,
        mnemonic = "CheckReplacements",
        progress_message = "Checking that TensorFlow calls the functions of the runtime",
    )
    return stamp

def _patched(file):
    return "%s=%s" % (file.path.rpartition("/patched/")[2], file.path)

def _python_source(file):
    return "%s=%s" % (file.short_path, file.path)

def _server_source(file):
    return "tensorflow/python/multistream/serve/%s=%s" % (file.basename, file.path)

def _public_header(file):
    return "tensorflow/include/%s=%s" % (file.short_path, file.path)

multistream_wheel = rule(
    implementation = _multistream_wheel_impl,
    attrs = {
        "stock": attr.label(
            allow_single_file = [".whl"],
            doc = "TensorFlow's own wheel.",
        ),
        "patched": attr.label(
            doc = "The wheel's files that patches change, changed.",
        ),
        "runtime": attr.label(
            allow_single_file = [".so"],
            doc = "The runtime library.",
        ),
        "exported_symbols": attr.label(
            allow_single_file = True,
            doc = "The runtime library's version script.",
        ),
        "libraries": attr.label_list(
            allow_files = True,
            doc = "TensorFlow's libraries, whose functions the runtime replaces.",
        ),
        "public_headers": attr.label(
            allow_files = [".h"],
            doc = "The runtime's headers for C++ programs.",
        ),
        "python_sources": attr.label(
            allow_files = [".py"],
            doc = "Python files to add, at the path that they have in the repository.",
        ),
        "server_sources": attr.label(
            allow_files = [".py"],
            doc = "Python files of the model server, which goes beside its __main__.py.",
        ),
        "license": attr.label(
            allow_single_file = True,
            doc = "The licence of what is added.",
        ),
        "_check_replacements": attr.label(
            allow_single_file = True,
            default = "//build:check_replacements.py",
        ),
        "_assemble": attr.label(
            allow_single_file = True,
            default = "//build:assemble_wheel.py",
        ),
        "_tools": attr.label(
            default = "//build:wheel_tools",
        ),
    },
    doc = "Makes the multi-stream wheel, in a folder named as the target.",
)
