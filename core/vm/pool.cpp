// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <new>
#include <vector>

#include "core/vm/interp.h"

namespace pypto::vm {
namespace {

constexpr int kClasses = 48;
constexpr int64_t kAlignment = 128;
constexpr int64_t kKeepBytes = int64_t{256} << 20;  // recycled storage kept per thread

/// Size class of a request: powers of two with one step between them, so that at most a third is wasted.
int size_class(int64_t bytes, int64_t* rounded) {
  int c = 0;
  int64_t size = 128;
  while (size < bytes) {
    const int64_t half = size + size / 2;
    if (half >= bytes && half % kAlignment == 0) {
      *rounded = half;
      return c + 1;
    }
    size *= 2;
    c += 2;
  }
  *rounded = size;
  return c;
}

struct Pool;
void release_buffer(Buffer* b);

struct Pool {
  std::vector<Buffer*> free_lists[2 * kClasses];
  int64_t kept = 0;
  bool alive = true;

  ~Pool() {
    alive = false;
    for (auto& list : free_lists) {
      for (Buffer* b : list) destroy(b);
      list.clear();
    }
  }
  static void destroy(Buffer* b) {
    std::free(b->data);
    delete b;
  }
};

Pool& pool() {
  thread_local Pool p;
  return p;
}

void release_buffer(Buffer* b) {
  if (b->written.map) {
    std::free(b->written.map);
    b->written.map = nullptr;
  }
  Pool& p = pool();
  int64_t rounded = 0;
  const int c = size_class(b->bytes, &rounded);
  if (!p.alive || c >= 2 * kClasses || p.kept + rounded > kKeepBytes) {
    Pool::destroy(b);
    return;
  }
  p.kept += rounded;
  p.free_lists[c].push_back(b);
}

}  // namespace

Buffer* pool_alloc(int64_t bytes, bool zero) {
  if (bytes <= 0) bytes = 1;
  Pool& p = pool();
  int64_t rounded = 0;
  const int c = size_class(bytes, &rounded);
  Buffer* b = nullptr;
  if (c < 2 * kClasses && !p.free_lists[c].empty()) {
    b = p.free_lists[c].back();
    p.free_lists[c].pop_back();
    p.kept -= rounded;
    uint8_t* data = b->data;
    *b = Buffer();
    b->data = data;
  } else {
    b = new Buffer();
    b->data = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, static_cast<size_t>(rounded)));
    if (!b->data) {
      delete b;
      throw std::bad_alloc();
    }
  }
  b->bytes = bytes;
  b->release = &release_buffer;
  if (zero) std::memset(b->data, 0, static_cast<size_t>(bytes));
  return b;
}

}  // namespace pypto::vm
