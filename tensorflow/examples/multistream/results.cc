/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/examples/multistream/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/examples/multistream/fingerprint.h"
#include "xla/tsl/lib/io/record_reader.h"
#include "xla/tsl/lib/io/record_writer.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kFileType[] = "multistream_inference reference 1";

bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DT_STRING) {
    auto x = a.flat<tstring>();
    auto y = b.flat<tstring>();
    return std::equal(x.data(), x.data() + x.size(), y.data());
  }
  return a.tensor_data() == b.tensor_data();
}

void Widen(double value, double* max) {
  // Written so that a NaN counts as the largest difference.
  if (!(value <= *max)) {
    *max = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  }
}

// Adds the differences of two tensors of the same type and shape whose bits
// differ.
template <typename T>
void AddDifferences(const Tensor& result, const Tensor& reference,
                    const std::string& which, double tolerance,
                    Difference* difference) {
  auto got = result.flat<T>();
  auto want = reference.flat<T>();
  for (int64_t i = 0; i < got.size(); ++i) {
    const double x = static_cast<double>(got(i));
    const double y = static_cast<double>(want(i));
    if (std::isnan(x) && std::isnan(y)) continue;
    const double absolute = x == y ? 0 : std::abs(x - y);
    if (absolute == 0) continue;
    Widen(absolute, &difference->max_absolute);
    Widen(y == 0 ? std::numeric_limits<double>::infinity()
                 : absolute / std::abs(y),
          &difference->max_relative);
    if (!(absolute <= tolerance * std::max(1.0, std::abs(y)))) {
      difference->wrong = true;
      if (difference->first.empty()) {
        difference->first =
            absl::StrCat(which, "[", i, "] is ", x, ", the reference is ", y);
      }
    }
  }
}

void AddDifferences(const Tensor& result, const Tensor& reference,
                    const std::string& which, double tolerance,
                    Difference* difference) {
  switch (result.dtype()) {
#define ADD_DIFFERENCES_OF(T)    \
  case DataTypeToEnum<T>::value: \
    return AddDifferences<T>(result, reference, which, tolerance, difference);
    ADD_DIFFERENCES_OF(float)
    ADD_DIFFERENCES_OF(double)
    ADD_DIFFERENCES_OF(Eigen::half)
    ADD_DIFFERENCES_OF(bfloat16)
    ADD_DIFFERENCES_OF(int8_t)
    ADD_DIFFERENCES_OF(uint8_t)
    ADD_DIFFERENCES_OF(int16_t)
    ADD_DIFFERENCES_OF(int32_t)
    ADD_DIFFERENCES_OF(int64_t)
    ADD_DIFFERENCES_OF(bool)
#undef ADD_DIFFERENCES_OF
    default:
      // No distance is known: different is wrong.
      difference->wrong = true;
      if (difference->first.empty()) {
        difference->first = absl::StrCat(which, " differs");
      }
  }
}

using Fields = std::vector<std::pair<std::string, std::string>>;

// The origin as named values, in the order in which they are compared.
Fields FieldsOf(const Origin& origin) {
  return {
      {"model fingerprint", absl::StrCat(absl::Hex(origin.model_fingerprint))},
      {"input names", absl::StrJoin(origin.input_names, " ")},
      {"output names", absl::StrJoin(origin.output_names, " ")},
      {"batch_size", absl::StrCat(origin.batch_size)},
      {"--seed", absl::StrCat(origin.seed)},
      {"--input-sets", absl::StrCat(origin.input_sets)},
      {"inputs fingerprint",
       absl::StrCat(absl::Hex(origin.inputs_fingerprint))},
  };
}

std::string HeaderOf(const Origin& origin) {
  std::string header = absl::StrCat(kFileType, "\n");
  for (const auto& [name, value] : FieldsOf(origin)) {
    absl::StrAppend(&header, name, "=", value, "\n");
  }
  return header;
}

absl::Status CheckHeader(const std::string& path, const std::string& header,
                         const Origin& origin) {
  const std::vector<std::string> lines = absl::StrSplit(header, '\n');
  const Fields fields = FieldsOf(origin);
  if (lines.size() != fields.size() + 2 || lines[0] != kFileType) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--reference '", path,
        "' is not a reference that --save-reference of this program wrote"));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::vector<std::string> field =
        absl::StrSplit(lines[i + 1], absl::MaxSplits('=', 1));
    if (field.size() != 2 || field[0] != fields[i].first ||
        field[1] != fields[i].second) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--reference '", path, "' is for another run: its ", lines[i + 1],
          ", this run's ", fields[i].first, "=", fields[i].second));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteRecords(const std::string& path, const Origin& origin,
                          const std::vector<ResultSet>& reference) {
  std::unique_ptr<WritableFile> file;
  absl::Status status = Env::Default()->NewWritableFile(path, &file);
  if (!status.ok()) return status;
  tsl::io::RecordWriter writer(file.get());
  status = writer.WriteRecord(HeaderOf(origin));
  for (const ResultSet& results : reference) {
    for (const Tensor& result : results) {
      if (!status.ok()) return status;
      TensorProto proto;
      result.AsProtoTensorContent(&proto);
      status = writer.WriteRecord(proto.SerializeAsString());
    }
  }
  if (status.ok()) status = writer.Close();
  if (status.ok()) status = file->Close();
  return status;
}

}  // namespace

Difference Compare(const ResultSet& results, const ResultSet& reference,
                   double tolerance) {
  Difference difference;
  if (results.size() != reference.size()) {
    difference.wrong = true;
    difference.first = absl::StrCat(results.size(), " outputs, the reference ",
                                    "has ", reference.size());
    return difference;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    const Tensor& want = reference[i];
    if (SameBits(result, want)) continue;
    const std::string which = absl::StrCat("output ", i);
    if (result.dtype() != want.dtype() || result.shape() != want.shape()) {
      difference.wrong = true;
      difference.first = absl::StrCat(
          which, " is ", DataTypeString(result.dtype()),
          result.shape().DebugString(), ", the reference is ",
          DataTypeString(want.dtype()), want.shape().DebugString());
      continue;
    }
    AddDifferences(result, want, which, tolerance, &difference);
    // Zeros of two signs, NaNs of two kinds.
    if (tolerance == 0 && !difference.wrong) {
      difference.wrong = true;
      difference.first = absl::StrCat(which, " differs in bits, not in value");
    }
  }
  return difference;
}

uint64_t FingerprintOf(const std::vector<std::vector<Tensor>>& sets) {
  uint64_t fingerprint = kNoBytes;
  for (const std::vector<Tensor>& set : sets) {
    for (const Tensor& tensor : set) {
      fingerprint = Fingerprint(absl::StrCat(DataTypeString(tensor.dtype()),
                                             tensor.shape().DebugString()),
                                fingerprint);
      fingerprint = Fingerprint(tensor.tensor_data(), fingerprint);
    }
  }
  return fingerprint;
}

absl::Status SaveReference(const std::string& path, const Origin& origin,
                           const std::vector<ResultSet>& reference) {
  const std::string unfinished = absl::StrCat(path, ".unfinished");
  absl::Status status = WriteRecords(unfinished, origin, reference);
  if (status.ok()) status = Env::Default()->RenameFile(unfinished, path);
  if (status.ok()) return status;
  Env::Default()->DeleteFile(unfinished).IgnoreError();
  return absl::Status(status.code(),
                      absl::StrCat("--save-reference '", path,
                                   "' cannot be written: ", status.message()));
}

absl::StatusOr<std::vector<ResultSet>> LoadReference(const std::string& path,
                                                     const Origin& origin) {
  Env* env = Env::Default();
  std::unique_ptr<RandomAccessFile> file;
  absl::Status status = env->IsDirectory(path).ok()
                            ? absl::InvalidArgumentError("it is a folder")
                            : env->NewRandomAccessFile(path, &file);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("--reference '", path,
                                     "' cannot be read: ", status.message()));
  }
  tsl::io::SequentialRecordReader reader(file.get());
  tstring record;
  if (!reader.ReadRecord(&record).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--reference '", path,
        "' is not a reference that --save-reference of this program wrote"));
  }
  status = CheckHeader(path, record, origin);
  if (!status.ok()) return status;

  const auto damaged = [&path](absl::string_view reason) {
    return absl::DataLossError(absl::StrCat(
        "--reference '", path, "' is damaged: ", reason, "; write it again"));
  };
  std::vector<ResultSet> reference(origin.input_sets);
  for (ResultSet& results : reference) {
    for (size_t i = 0; i < origin.output_names.size(); ++i) {
      status = reader.ReadRecord(&record);
      if (!status.ok()) return damaged(status.message());
      TensorProto proto;
      Tensor result;
      if (!proto.ParseFromArray(record.data(), record.size()) ||
          !result.FromProto(proto)) {
        return damaged("a record is not a tensor");
      }
      results.push_back(std::move(result));
    }
  }
  if (!absl::IsOutOfRange(reader.ReadRecord(&record))) {
    return damaged("it has more records than it should");
  }
  return reference;
}

}  // namespace multistream
}  // namespace tensorflow
