// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace pypto {

/// A list that only grows at its end, in pieces: elements never move, and growing copies nothing. For logs
/// that may reach millions of elements.
template <class T, size_t kBytes = 32768>
class Chunks {
 public:
  Chunks() = default;
  Chunks(Chunks&& o) noexcept : pieces_(std::move(o.pieces_)), size_(std::exchange(o.size_, 0)) {}
  Chunks& operator=(Chunks&& o) noexcept {
    clear();
    pieces_ = std::move(o.pieces_);
    size_ = std::exchange(o.size_, 0);
    return *this;
  }
  ~Chunks() { clear(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return *at(i); }
  const T& operator[](size_t i) const { return *const_cast<Chunks*>(this)->at(i); }
  T& back() { return *at(size_ - 1); }
  T& push_back(T&& value) {
    if (size_ == pieces_.size() * kPiece) pieces_.push_back(std::make_unique<Piece>());
    T* made = new (at(size_)) T(std::move(value));
    ++size_;
    return *made;
  }
  /// Drops the elements and keeps some of their storage.
  void clear() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (size_t i = 0; i < size_; ++i) at(i)->~T();
    }
    size_ = 0;
    if (pieces_.size() > kKept) pieces_.resize(kKept);
  }

  template <class Owner, class Element>
  struct Iterator {
    Owner* owner;
    size_t i;
    Element& operator*() const { return (*owner)[i]; }
    Iterator& operator++() {
      ++i;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return i != o.i; }
  };
  Iterator<Chunks, T> begin() { return {this, 0}; }
  Iterator<Chunks, T> end() { return {this, size_}; }
  Iterator<const Chunks, const T> begin() const { return {this, 0}; }
  Iterator<const Chunks, const T> end() const { return {this, size_}; }

 private:
  static constexpr size_t power_of_two(size_t n) { return n < 2 ? 1 : 2 * power_of_two(n / 2); }
  static constexpr size_t kKept = 16;
  static constexpr size_t kPiece = power_of_two(kBytes / sizeof(T) + 1);
  struct Piece {
    alignas(T) std::byte bytes[kPiece * sizeof(T)];
    Piece() {}  // NOLINT(modernize-use-equals-default): leaves the bytes alone
  };
  T* at(size_t i) { return reinterpret_cast<T*>(pieces_[i / kPiece]->bytes) + i % kPiece; }

  std::vector<std::unique_ptr<Piece>> pieces_;
  size_t size_ = 0;
};

/// A list that mostly has one element, which then needs no allocation.
template <class T>
class FewList {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void push_back(T value) {
    if (size_++ == 0) {
      first_ = std::move(value);
      return;
    }
    if (!more_) more_ = std::make_unique<std::vector<T>>();
    more_->push_back(std::move(value));
  }
  T& operator[](size_t i) { return i == 0 ? first_ : (*more_)[i - 1]; }
  const T& operator[](size_t i) const { return i == 0 ? first_ : (*more_)[i - 1]; }

 private:
  T first_{};
  std::unique_ptr<std::vector<T>> more_;
  size_t size_ = 0;
};

}  // namespace pypto
