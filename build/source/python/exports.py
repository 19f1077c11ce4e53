# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's API generator makes tf.cuda and tf.stream of.

`tensorflow/_api` lists the same names for the wheel build, which generates nothing.
"""

from tensorflow.python.multistream.advise.advise import Advice, AdviceRow, advise
from tensorflow.python.multistream.capture.capture_report import capture_report
from tensorflow.python.multistream.capture.captured import captured
from tensorflow.python.multistream.groups.pinned import stream_group
from tensorflow.python.multistream.groups.stats import (
    multi_stream_is_enabled,
    stream_group_count,
    stream_stats,
)
from tensorflow.python.multistream.groups.synchronize import synchronize
from tensorflow.python.multistream.policies.auto_stream import auto_stream
from tensorflow.python.multistream.policies.plan_file import save_plan
from tensorflow.python.multistream.scopes.stream_setter import LeastLoadedStreamSetter
from tensorflow.python.multistream.scopes.stream_table import stream_groups_of
from tensorflow.python.multistream.scopes.streams import (
    Stream,
    StreamSetter,
    get_stream,
    stream,
    stream_scope,
)
from tensorflow.python.multistream.serving.serving_callable import serving_callable
from tensorflow.python.multistream.trace.trace import trace
from tensorflow.python.util.tf_export import tf_export

tf_export("cuda.Advice")(Advice)
tf_export("cuda.AdviceRow")(AdviceRow)
tf_export("cuda.advise")(advise)
tf_export("cuda.auto_stream")(auto_stream)
tf_export("cuda.capture_report")(capture_report)
tf_export("cuda.captured")(captured)
tf_export("cuda.get_stream")(get_stream)
tf_export("cuda.LeastLoadedStreamSetter")(LeastLoadedStreamSetter)
tf_export("cuda.multi_stream_is_enabled")(multi_stream_is_enabled)
tf_export("cuda.save_plan")(save_plan)
tf_export("cuda.serving_callable")(serving_callable)
tf_export("cuda.Stream")(Stream)
tf_export("cuda.stream_group")(stream_group)
tf_export("cuda.stream_group_count")(stream_group_count)
tf_export("cuda.stream_groups_of")(stream_groups_of)
tf_export("cuda.stream_scope")(stream_scope)
tf_export("cuda.stream_stats")(stream_stats)
tf_export("cuda.StreamSetter")(StreamSetter)
tf_export("cuda.synchronize")(synchronize)
tf_export("cuda.trace")(trace)
tf_export("stream")(stream)
