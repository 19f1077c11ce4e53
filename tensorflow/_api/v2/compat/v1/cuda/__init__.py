# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Public API for tf._api.v2.compat.v1.cuda namespace: GPU streams and their groups."""

from tensorflow.python.multistream.advise.advise import advise
from tensorflow.python.multistream.advise.advise import Advice
from tensorflow.python.multistream.advise.advise import AdviceRow
from tensorflow.python.multistream.policies.auto_stream import auto_stream
from tensorflow.python.multistream.capture.capture_report import capture_report
from tensorflow.python.multistream.capture.captured import captured
from tensorflow.python.multistream.groups.stats import multi_stream_is_enabled
from tensorflow.python.multistream.groups.stats import stream_group_count
from tensorflow.python.multistream.groups.stats import stream_stats
from tensorflow.python.multistream.groups.pinned import stream_group
from tensorflow.python.multistream.policies.plan_file import save_plan
from tensorflow.python.multistream.serving.serving_callable import serving_callable
from tensorflow.python.multistream.scopes.stream_table import stream_groups_of
from tensorflow.python.multistream.scopes.stream_setter import LeastLoadedStreamSetter
from tensorflow.python.multistream.scopes.streams import Stream
from tensorflow.python.multistream.scopes.streams import StreamSetter
from tensorflow.python.multistream.scopes.streams import get_stream
from tensorflow.python.multistream.scopes.streams import stream_scope
from tensorflow.python.multistream.groups.synchronize import synchronize
from tensorflow.python.multistream.trace.trace import trace
