// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace pypto {

/// Memory of `kBytes` that is handed out again before more is taken from the heap; each thread has its own.
template <size_t kBytes>
class Recycled {
 public:
  static void* take() {
    Spare& s = spare();
    if (!s.first) return ::operator new(kBytes);
    --s.size;
    return std::exchange(s.first, s.first->next);
  }
  static void give(void* memory) {
    Spare& s = spare();
    if (s.size == kKept) {
      ::operator delete(memory);
      return;
    }
    ++s.size;
    s.first = new (memory) Link{s.first};
  }

 private:
  static constexpr size_t kKept = 8192;
  struct Link {
    Link* next;
  };
  struct Spare {
    Link* first = nullptr;
    size_t size = 0;
    ~Spare() {
      while (first) ::operator delete(std::exchange(first, first->next));
      size = kKept;  // what is given from here on goes to the heap
    }
  };
  static_assert(kBytes >= sizeof(Link));
  static Spare& spare() {
    thread_local Spare s;
    return s;
  }
};

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
    static void* operator new(size_t) { return Recycled<sizeof(Node)>::take(); }
    static void operator delete(void* memory) { Recycled<sizeof(Node)>::give(memory); }
  };
  Node* node_ = nullptr;
};

}  // namespace pypto
