// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {

// Tensors call their allocator when they are deleted, so it must outlive them.
class RecordingMemory::Part : public Allocator {
 public:
  Part(Allocator* wrapped, bool reuses, size_t apart_bytes)
      : wrapped_(wrapped), reuses_(reuses), apart_bytes_(apart_bytes) {}

  ~Part() override {
    for (const Block& block : blocks_) wrapped_->DeallocateRaw(block.address);
  }

  std::string Name() override {
    return absl::StrCat("recording_of_", wrapped_->Name());
  }

  AllocatorMemoryType GetMemoryType() const override {
    return wrapped_->GetMemoryType();
  }

  void* AllocateRaw(size_t alignment, size_t bytes) override {
    absl::MutexLock lock(&mu_);
    return repeats_ ? Again(bytes) : First(alignment, bytes);
  }
  void* AllocateRaw(size_t alignment, size_t bytes,
                    const AllocationAttributes&) override {
    return AllocateRaw(alignment, bytes);
  }

  void DeallocateRaw(void* address) override {
    absl::MutexLock lock(&mu_);
    auto found = by_address_.find(address);
    CHECK(found != by_address_.end()) << "not of this recording";
    Block& block = blocks_[found->second];
    --in_use_;
    // A tensor of an earlier run may still use the block: its value is not
    // needed, so a repeat hands out the block again.
    if (block.users > 0) {
      --block.users;
      // Else it is not known which of them has been deleted.
      if (block.earlier_users == 0) freed_.push_back(block.number);
    } else {
      --block.earlier_users;
    }
  }

  void Start() {
    absl::MutexLock lock(&mu_);
    sequence_.clear();
    given_.clear();
    freed_.clear();
  }

  void Repeat() {
    absl::MutexLock lock(&mu_);
    repeats_ = true;
    for (Block& block : blocks_) {
      block.earlier_users += std::exchange(block.users, 0);
    }
    next_ = 0;
    given_.clear();
    freed_.clear();
    differs_.clear();
  }

  // `all`: the run has succeeded, so it must have made all allocations.
  std::string Difference(bool all) const {
    absl::MutexLock lock(&mu_);
    if (differs_.empty() && repeats_ && all && next_ != sequence_.size()) {
      return absl::StrCat("allocated ", next_, " times, first ",
                          sequence_.size(), " times");
    }
    return differs_;
  }

  bool Contains(const void* address, size_t bytes) const {
    const char* begin = static_cast<const char*>(address);
    absl::MutexLock lock(&mu_);
    for (const Block& block : blocks_) {
      const char* of_block = static_cast<const char*>(block.address);
      if (begin >= of_block && begin + bytes <= of_block + block.bytes) {
        return true;
      }
    }
    return false;
  }

  Spans All() const {
    absl::MutexLock lock(&mu_);
    Spans all;
    for (const Block& block : blocks_) {
      all.emplace_back(block.address, block.bytes);
    }
    return all;
  }

  std::vector<Allocation> TakeGiven() {
    absl::MutexLock lock(&mu_);
    std::vector<Allocation> given;
    for (const size_t number : given_) {
      const Block& block = blocks_[sequence_[number].first];
      const auto begin = reinterpret_cast<uint64_t>(block.address);
      given.push_back({begin, begin + block.bytes, number});
    }
    given_.clear();
    return given;
  }

  std::vector<size_t> TakeFreed() {
    absl::MutexLock lock(&mu_);
    return std::exchange(freed_, {});
  }

  bool KeepApart(const std::vector<size_t>& allocations) {
    absl::MutexLock lock(&mu_);
    std::vector<size_t> fresh;
    for (const size_t number : allocations) {
      fresh.push_back(
          Add(Allocator::kAllocatorAlignment, sequence_[number].second));
      // Then all stay where they are: what was captured refers to that.
      if (fresh.back() == blocks_.size()) return false;
    }
    for (size_t i = 0; i < fresh.size(); ++i) {
      sequence_[allocations[i]].first = fresh[i];
    }
    return true;
  }

  int64_t bytes() const {
    absl::MutexLock lock(&mu_);
    int64_t bytes = 0;
    for (const Block& block : blocks_) bytes += block.bytes;
    return bytes;
  }

  int64_t in_use() const {
    absl::MutexLock lock(&mu_);
    return in_use_;
  }

 private:
  struct Block {
    void* address;
    size_t bytes;
    int users = 0;          // tensors of this run: 1 or 0
    int earlier_users = 0;  // tensors of earlier runs
    size_t number = 0;      // of the last allocation
  };

  void* First(size_t alignment, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t i = blocks_.size();
    if (reuses_) {
      // Take a block of at most twice the size: large blocks are kept for large
      // tensors.
      for (i = 0; i < blocks_.size(); ++i) {
        const Block& block = blocks_[i];
        if (block.users == 0 && block.bytes >= bytes &&
            block.bytes / 2 <= bytes) {
          break;
        }
      }
    }
    if (i < blocks_.size() && bytes <= apart_bytes_) {
      apart_bytes_ -= bytes;
      i = blocks_.size();
    }
    if (i == blocks_.size() && Add(alignment, bytes) == blocks_.size()) {
      return nullptr;
    }
    sequence_.push_back({i, bytes});
    return Use(sequence_.size() - 1);
  }

  // Adds a block; returns its index, or the number of blocks if there is too
  // little memory.
  size_t Add(size_t alignment, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    // Recording holds locks, so a failed allocation must not block.
    AllocationAttributes attributes;
    attributes.retry_on_failure = false;
    void* address = wrapped_->AllocateRaw(alignment, std::max<size_t>(bytes, 1),
                                          attributes);
    if (address == nullptr) return blocks_.size();
    by_address_[address] = blocks_.size();
    blocks_.push_back({address, bytes});
    return blocks_.size() - 1;
  }

  void* Again(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!differs_.empty()) return nullptr;
    if (next_ == sequence_.size()) {
      differs_ = absl::StrCat("allocated more than ", next_, " times");
      return nullptr;
    }
    const auto [i, first] = sequence_[next_];
    if (first != bytes) {
      differs_ = absl::StrCat("allocated ", bytes, " bytes where it first did ",
                              first);
      return nullptr;
    }
    if (blocks_[i].users > 0) {
      differs_ = "used memory for longer than at first";
      return nullptr;
    }
    return Use(next_++);
  }

  void* Use(size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Block& block = blocks_[sequence_[number].first];
    ++block.users;
    block.number = number;
    ++in_use_;
    given_.push_back(number);
    return block.address;
  }

  Allocator* const wrapped_;
  const bool reuses_;
  mutable absl::Mutex mu_;
  std::vector<Block> blocks_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const void*, size_t> by_address_ ABSL_GUARDED_BY(mu_);
  // The allocations of the first run: block, and bytes used of it.
  std::vector<std::pair<size_t, size_t>> sequence_ ABSL_GUARDED_BY(mu_);
  bool repeats_ ABSL_GUARDED_BY(mu_) = false;
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;  // index in sequence_, in a repeat
  std::vector<size_t> given_ ABSL_GUARDED_BY(mu_);  // indices in sequence_
  std::vector<size_t> freed_ ABSL_GUARDED_BY(mu_);  // indices in sequence_
  std::string differs_ ABSL_GUARDED_BY(mu_);
  int64_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  size_t apart_bytes_ ABSL_GUARDED_BY(mu_);  // that may still be taken
};

RecordingMemory::RecordingMemory(Allocator* device, Allocator* pinned,
                                 size_t apart_bytes)
    : device_(std::make_shared<Part>(device, /*reuses=*/true, apart_bytes)),
      pinned_(std::make_shared<Part>(pinned, /*reuses=*/false,
                                     /*apart_bytes=*/0)) {}

RecordingMemory::~RecordingMemory() {
  for (const auto& part : {device_, pinned_}) {
    if (part->in_use() == 0) continue;
    LOG(ERROR) << "A recorded step's memory is still used, and is never freed: "
               << part->in_use() << " tensors";
    new std::shared_ptr<Part>(part);  // never deleted
  }
}

Allocator* RecordingMemory::device() { return device_.get(); }
Allocator* RecordingMemory::pinned() { return pinned_.get(); }

void RecordingMemory::Start() {
  device_->Start();
  pinned_->Start();
}

void RecordingMemory::Repeat() {
  device_->Repeat();
  pinned_->Repeat();
  absl::MutexLock lock(&mu_);
  repeats_ = true;
  again_.clear();
}

void RecordingMemory::NoteRead(const void* address) {
  absl::MutexLock lock(&mu_);
  (repeats_ ? again_ : read_).push_back(address);
}

bool RecordingMemory::SameReads() const { return AreReadsSame(/*all=*/true); }

bool RecordingMemory::AreReadsSame(bool all) const {
  absl::MutexLock lock(&mu_);
  if (!repeats_ || again_ == read_) return true;
  return !all && again_.size() < read_.size() &&
         std::equal(again_.begin(), again_.end(), read_.begin());
}

absl::Status RecordingMemory::Check(absl::Status status) const {
  for (const auto& part : {device_, pinned_}) {
    if (std::string difference = part->Difference(/*all=*/status.ok());
        !difference.empty()) {
      return absl::AbortedError(
          absl::StrCat("the step is not the same each time: it ", difference));
    }
  }
  if (!AreReadsSame(/*all=*/status.ok())) {
    return absl::AbortedError(
        "the step is not the same each time: a variable has moved");
  }
  return status;
}

bool RecordingMemory::IsDevice(const void* address, size_t bytes) const {
  return device_->Contains(address, bytes);
}

bool RecordingMemory::IsPinned(const void* address, size_t bytes) const {
  return pinned_->Contains(address, bytes);
}

RecordingMemory::Spans RecordingMemory::All() const { return device_->All(); }

std::vector<Allocation> RecordingMemory::TakeGiven() {
  return device_->TakeGiven();
}

std::vector<size_t> RecordingMemory::TakeFreed() {
  return device_->TakeFreed();
}

bool RecordingMemory::KeepApart(const std::vector<size_t>& allocations) {
  return device_->KeepApart(allocations);
}

int64_t RecordingMemory::bytes() const {
  return device_->bytes() + pinned_->bytes();
}

}  // namespace tensorflow::multistream
