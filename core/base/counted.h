// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pypto {

/// Shared ownership within one thread: std::shared_ptr without the locked instructions.
template <class T>
class Counted {
 public:
  Counted() = default;
  Counted(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as std::shared_ptr
  Counted(const Counted& o) : node_(o.node_) {
    if (node_) ++node_->uses;
  }
  Counted(Counted&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  Counted& operator=(Counted o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~Counted() {
    if (node_ && --node_->uses == 0) delete node_;
  }
  template <class... Args>
  static Counted make(Args&&... args) {
    Counted made;
    made.node_ = new Node{1, T(std::forward<Args>(args)...)};
    return made;
  }

  T* get() const { return node_ ? &node_->value : nullptr; }
  T& operator*() const { return node_->value; }
  T* operator->() const { return &node_->value; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const Counted& o) const { return node_ == o.node_; }
  uint32_t use_count() const { return node_ ? node_->uses : 0; }

 private:
  struct Node {
    uint32_t uses;
    T value;
  };
  Node* node_ = nullptr;
};

}  // namespace pypto
