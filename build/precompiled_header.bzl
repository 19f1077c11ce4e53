# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles a header once, for all that would read it again and again.

Most of the time that a small source takes is reading TensorFlow's headers: 5 of 11 seconds.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    # In a folder of its own: were a header of this name found without a compiled one beside it,
    # the compiler would read that.
    header = ctx.actions.declare_file("%s/%s" % (ctx.label.name, ctx.file.header.basename))
    compiled = ctx.actions.declare_file("%s/%s.gch" % (ctx.label.name, ctx.file.header.basename))
    ctx.actions.symlink(output = header, target_file = ctx.file.header)

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    needed = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    context = needed.compilation_context
    variables = cc_common.create_compile_variables(
        cc_toolchain = toolchain,
        feature_configuration = features,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        # The compiler takes it only where all options are those that it was compiled with.
        use_pic = True,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
    )
    action = "c++-compile"
    compiler = cc_common.get_tool_for_action(action_name = action, feature_configuration = features)
    options = cc_common.get_memory_inefficient_command_line(
        action_name = action,
        feature_configuration = features,
        variables = variables,
    )

    # What templates need is made here, not in every source, which takes GCC most of its time. And
    # times must not count: Bazel does not make this anew for headers that are newer and the same.
    once = []
    if "clang" in compiler:
        once = ["-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp"]
    ctx.actions.run(
        executable = compiler,
        arguments = options + once + ["-x", "c++-header", header.path, "-o", compiled.path],
        env = cc_common.get_environment_variables(
            action_name = action,
            feature_configuration = features,
            variables = variables,
        ),
        inputs = depset([header, ctx.file.header], transitive = [context.headers, toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "PrecompileHeader",
        progress_message = "Compiling " + ctx.file.header.short_path,
    )
    own = cc_common.create_compilation_context(headers = depset([header, compiled]))
    return [
        DefaultInfo(files = depset([header, compiled])),
        cc_common.merge_cc_infos(direct_cc_infos = [CcInfo(compilation_context = own), needed]),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(doc = "Those of all that is compiled with it."),
        "deps": attr.label_list(providers = [CcInfo], doc = "What the header includes."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    doc = "Sources include it with `-include <package>/<name>/<header>`.",
)
