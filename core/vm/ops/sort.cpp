// SPDX-License-Identifier: Apache-2.0
// sort32 and mrgsort (02 section 20).
#include "core/vm/kernels/sort.h"

#include <algorithm>
#include <cstring>

#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::AttrKey;
using ir::OpId;

RecordKind record_kind(DType dtype) { return dtype == DType::kFp16 ? RecordKind::kFp16 : RecordKind::kFp32; }

int64_t rows_of(const View& v) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < v.rank; ++i) rows *= v.shape[i];
  return rows;
}

/// Blocks of 32 columns -> records, for each row (02 O-2001).
ExecStatus exec_sort32(OpCall& call) {
  const DType dtype = call.result_dtype();
  const View values = as_packed(call, read_operand(call, 0), dtype);
  const View indices = as_packed(call, read_operand(call, 1), call.view(1).dtype);
  const int last = values.rank - 1;
  const int64_t width = values.shape[last], rows = rows_of(values), size = dtype_bytes(dtype);
  if (width % 32 != 0) {
    fault(call, 0, "has " + std::to_string(width) + " columns, sort32 needs a multiple of 32");
  }
  if (!std::equal(values.shape, values.shape + values.rank, indices.shape)) {
    fault(call, 1,
          "of shape " + list_text(shape_of(indices).span()) + " does not fit shape " +
              list_text(shape_of(values).span()) + " of the values",
          "both need one shape");
  }
  Extents shape = shape_of(values);
  shape[last] = width * 8 / size;
  View out = call.alloc(dtype, shape.span(), false);
  const RecordKind kind = record_kind(dtype);
  for (int64_t block = 0; block < rows * (width / 32); ++block) {
    sort_block(kind, values.data() + block * 32 * size, indices.as<uint32_t>() + block * 32,
               out.as<uint64_t>() + block * 32);
  }
  inherit_rows(out, {&values, &indices});
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

void require_records(const OpCall& call, int param, const View& v) {
  const int64_t per_record = 8 / dtype_bytes(call.result_dtype());
  if (v.shape[v.rank - 1] % per_record == 0) return;
  fault(call, param,
        "has " + std::to_string(v.shape[v.rank - 1]) + " columns, a record takes " +
            std::to_string(per_record));
}

/// Every four runs of `block_len` elements merged (02 O-2002).
ExecStatus merge_format1(OpCall& call, int block_param) {
  const DType dtype = call.result_dtype();
  const View source = as_packed(call, read_operand(call, 0), dtype);
  require_records(call, 0, source);
  const int64_t per_record = 8 / dtype_bytes(dtype);
  const int64_t block_len = param_int(call, block_param, AttrKey::k_block_len, 64);
  if (block_len <= 0 || block_len % 64 != 0) {
    fault(call, 0,
          "is merged with block_len " + std::to_string(block_len) + ", which is no positive multiple of 64");
  }
  const int64_t total = source.shape[source.rank - 1] / per_record;
  const int64_t run = std::min(block_len / per_record, total);  // a longer run would overflow `start`
  View out = call.alloc(dtype, shape_of(source).span(), false);
  const RecordKind kind = record_kind(dtype);
  for (int64_t row = 0; row < rows_of(source); ++row) {
    const uint64_t* from = source.as<uint64_t>() + row * total;
    uint64_t* to = out.as<uint64_t>() + row * total;
    for (int64_t start = 0; start < total; start += 4 * run) {
      Run runs[4];
      int count = 0;
      int64_t records = 0;
      for (int64_t at = start; at < total && count < 4; at += run) {
        runs[count] = {from + at, std::min(run, total - at)};
        records += runs[count++].count;
      }
      merge_runs(kind, runs, count, to + start, records, false);
    }
  }
  inherit_rows(out, {&source});
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

/// Two to four sorted inputs merged (02 O-2003).
ExecStatus merge_format2(OpCall& call, int inputs, int tmp_param, int exhausted_param) {
  const DType dtype = call.result_dtype();
  const RecordKind kind = record_kind(dtype);
  const int64_t per_record = 8 / dtype_bytes(dtype);
  View sources[4];
  int count = 0;
  int64_t elements = 0;
  for (int i = 0; i < inputs; ++i) {
    if (!call.has(i)) continue;
    sources[count] = as_packed(call, read_operand(call, i), dtype);
    require_records(call, i, sources[count]);
    if (rows_of(sources[count]) != rows_of(sources[0])) {
      fault(call, i,
            "of shape " + list_text(shape_of(sources[count]).span()) + " does not fit shape " +
                list_text(shape_of(sources[0]).span()) + " of the first operand",
            "all need the same rows");
    }
    elements += sources[count].shape[sources[count].rank - 1];
    ++count;
  }
  const int last = sources[0].rank - 1;
  Extents shape = shape_of(sources[0]);
  shape[last] = elements;
  if (call.result_is_tile() && call.has(tmp_param)) shape = shape_of(call.view(tmp_param));
  const bool exhausted = param_int(call, exhausted_param, AttrKey::k_exhausted, 0) != 0;
  View out = call.alloc(dtype, shape.span(), true);
  const int64_t width = shape[shape.rank - 1] / per_record;
  for (int64_t row = 0; row < rows_of(sources[0]); ++row) {
    Run runs[4];
    for (int i = 0; i < count; ++i) {
      const int64_t records = sources[i].shape[last] / per_record;
      runs[i] = {sources[i].as<uint64_t>() + row * records, records};
    }
    merge_runs(kind, runs, count, out.as<uint64_t>() + row * width, width, exhausted);
  }
  for (int i = 0; i < count; ++i) inherit_rows(out, {&sources[i]});
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_mrgsort(OpCall& call) {
  if (call.has_attr(AttrKey::k_block_len) || call.has(6)) return merge_format1(call, 6);
  return merge_format2(call, 4, 4, 5);
}
ExecStatus exec_mrgsort_format1(OpCall& call) { return merge_format1(call, 1); }
ExecStatus exec_mrgsort_format2(OpCall& call) { return merge_format2(call, 4, 4, 5); }

}  // namespace

void register_sort(ExecTable& table) {
  table.set(OpId::k_sort32, exec_sort32);
  table.set(OpId::k_mrgsort, exec_mrgsort);
  table.set(OpId::k_mrgsort_format1, exec_mrgsort_format1);
  table.set(OpId::k_mrgsort_format2, exec_mrgsort_format2);
}

}  // namespace pypto::vm
