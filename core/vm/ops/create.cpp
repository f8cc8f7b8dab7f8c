// SPDX-License-Identifier: Apache-2.0

// Creation and generation (02 section 5).
#include <algorithm>
#include <variant>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::AttrKey;
using ir::OpId;

/// Zeroed storage of which nothing is written yet (O-209).
ExecStatus exec_create(OpCall& call) {
  const View out = call.alloc(call.result_dtype(), param_list(call, 0, AttrKey::k_shape).span(), true);
  if (marks().on) mark_unwritten(*out.buffer, marks().origin(Origin::Kind::kCreated));
  call.set_result(out);
  return ExecStatus::kDone;
}

ExecStatus exec_full(OpCall& call) {
  const DType dtype = call.result_dtype();
  const Extents shape = param_list(call, 0, AttrKey::k_shape);
  const View out = alloc_result(call, dtype, shape, shape);
  alignas(8) uint8_t element[8] = {};
  if (const ir::AttrValue* value = call.attrs->find(AttrKey::k_value)) {
    if (const auto* number = std::get_if<double>(value)) {
      write_float(dtype, element, is_float(dtype) ? *number : round_by_mode(*number, CastMode::kTrunc));
    } else {
      const int64_t whole = call.attr_int(AttrKey::k_value);
      if (is_float(dtype)) {
        cast_row(DType::kInt64, &whole, dtype, element, 1, CastMode::kRound);
      } else {
        write_integer(dtype, element, whole);
      }
    }
  } else {
    scalar_element(call, 2, dtype, element);
  }
  fill_row(out.data(), element, static_cast<size_t>(out.elements()), dtype_bytes(dtype));
  call.set_result(out);
  return ExecStatus::kDone;
}

template <class T>
void count_up(T* out, uint64_t start, uint64_t step, int64_t n) {
  uint64_t value = start;
  for (int64_t k = 0; k < n; ++k, value += step) out[k] = static_cast<T>(value);
}

ExecStatus exec_arange(OpCall& call) {
  const DType dtype = call.result_dtype();
  const Extents shape = param_list(call, 1, AttrKey::k_shape);
  const View out = alloc_result(call, dtype, shape, shape);
  const auto start = static_cast<uint64_t>(call.integer(0));
  const uint64_t step = call.attr_int(AttrKey::k_descending) != 0 ? ~uint64_t{0} : 1;
  const int64_t n = out.elements();
  switch (dtype_bytes(dtype)) {
    case 1:
      count_up(out.as<uint8_t>(), start, step, n);
      break;
    case 2:
      count_up(out.as<uint16_t>(), start, step, n);
      break;
    case 4:
      count_up(out.as<uint32_t>(), start, step, n);
      break;
    default:
      count_up(out.as<uint64_t>(), start, step, n);
      break;
  }
  call.set_result(out);
  return ExecStatus::kDone;
}

ExecStatus exec_tri(OpCall& call) {
  const DType dtype = call.result_dtype();
  const Extents shape = param_list(call, 1, AttrKey::k_shape);
  const Extents valid =
      param_list_given(call, 2, AttrKey::kCount) ? param_list(call, 2, AttrKey::kCount) : shape;
  check_valid(call, 2, valid, shape);
  const View out = alloc_result(call, dtype, shape, valid);
  const int64_t diagonal = call.integer(0);
  const bool upper = call.attr_int(AttrKey::k_upper) != 0;
  const int width = dtype_bytes(dtype);
  alignas(8) uint8_t zero[8] = {}, one[8] = {};
  if (is_float(dtype)) {
    write_float(dtype, one, 1);
  } else {
    write_integer(dtype, one, 1);
  }
  for (int64_t i = 0; i < valid[0]; ++i) {
    uint8_t* row = out.data() + i * shape[1] * width;
    // Columns [0, edge) are on the lower side.
    const int64_t edge = std::clamp<int64_t>(i + diagonal + (upper ? 0 : 1), 0, valid[1]);
    fill_row(row, upper ? zero : one, static_cast<size_t>(edge), width);
    fill_row(row + edge * width, upper ? one : zero, static_cast<size_t>(valid[1] - edge), width);
  }
  call.set_result(out);
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ random (O-507)

struct Counter {
  uint32_t word[4];

  /// 128-bit little-endian addition.
  Counter plus(uint64_t amount) const {
    Counter c = *this;
    for (int i = 0; i < 4 && amount != 0; ++i) {
      amount += c.word[i];
      c.word[i] = static_cast<uint32_t>(amount);
      amount >>= 32;
    }
    return c;
  }
};

/// Philox-4x32 with the given number of rounds.
Counter philox(Counter c, uint32_t key0, uint32_t key1, int64_t rounds) {
  for (int64_t r = 0; r < rounds; ++r) {
    const uint64_t first = uint64_t{0xD2511F53u} * c.word[0];
    const uint64_t second = uint64_t{0xCD9E8D57u} * c.word[2];
    c = Counter{{static_cast<uint32_t>(second >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(second),
                 static_cast<uint32_t>(first >> 32) ^ c.word[3] ^ key1, static_cast<uint32_t>(first)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

ExecStatus exec_random(OpCall& call) {
  const bool tile = call.op == OpId::k_tile_random;
  const Extents shape = param_list(call, 6, AttrKey::k_shape);
  const Extents valid =
      tile && param_list_given(call, 7, AttrKey::kCount) ? param_list(call, 7, AttrKey::kCount) : shape;
  check_valid(call, 7, valid, shape);
  const View out = alloc_result(call, call.result_dtype(), shape, valid);
  uint32_t seed[6];
  for (int i = 0; i < 6; ++i) seed[i] = static_cast<uint32_t>(call.integer(i));
  const int64_t rounds = call.attr_int(AttrKey::k_rounds, 10);
  Counter counter{{seed[2], seed[3], seed[4], seed[5]}};
  const auto advance = static_cast<uint64_t>(shape[1] / 4);
  for (int64_t i = 0; i < valid[0]; ++i) {
    uint32_t* row = out.as<uint32_t>() + i * shape[1];
    for (int64_t chunk = 0; chunk < shape[1]; chunk += 256) {  // the stream does not depend on valid_shape
      for (int64_t lane = 0; lane < 64 && chunk + lane < valid[1]; ++lane) {
        const Counter words = philox(counter.plus(static_cast<uint64_t>(lane)), seed[0], seed[1], rounds);
        for (int64_t r = 0; r < 4; ++r) {
          const int64_t column = chunk + r * 64 + lane;
          if (column < valid[1]) row[column] = words.word[r];
        }
      }
      counter = counter.plus(advance);
    }
  }
  call.set_result(out);
  return ExecStatus::kDone;
}

}  // namespace

void register_create(ExecTable& t) {
  t.set(OpId::k_create_tile, &exec_create);
  t.set(OpId::k_create_l1, &exec_create);
  t.set(OpId::k_full, &exec_full);
  t.set(OpId::k_tile_full, &exec_full);
  t.set(OpId::k_arange, &exec_arange);
  t.set(OpId::k_tile_arange, &exec_arange);
  t.set(OpId::k_tri, &exec_tri);
  t.set(OpId::k_random, &exec_random);
  t.set(OpId::k_tile_random, &exec_random);
}

}  // namespace pypto::vm
