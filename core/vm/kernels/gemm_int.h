// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pypto::vm {

/// INT8 rows times one panel of columns: c[r][j] += sum over quads of the products of 4 bytes.
struct IntPanel {
  int64_t quads = 0;
  const int8_t* a = nullptr;  ///< rows of 4 * quads bytes
  int64_t a_pitch = 0;        ///< bytes between rows
  const int8_t* b = nullptr;  ///< [quads][panel columns][4]
  int64_t b_pitch = 0;        ///< VNNI: bytes between rows of 16, which `b` then has as they are; 0: packed
  int32_t* c = nullptr;
  int64_t c_pitch = 0;                ///< elements between rows
  int64_t cols = 0;                   ///< columns of the panel that exist
  const int32_t* row_sums = nullptr;  ///< VNNI: sums of the bytes of the rows; null: not known yet
  bool from_zero = false;
};

/// Whether the dot-product instructions of gemm_vnni.cpp can be used on this machine.
bool vnni_available();

/// Runs a panel of 1..8 rows and up to 32 columns; packed, `b` holds its bytes with 128 added (the
/// instruction multiplies unsigned by signed bytes), which the row sums of A take back.
void vnni_panel(int rows, const IntPanel& panel);

/// Runs the panel for any number of rows, few enough that packing would not pay.
void vnni_few_rows(int64_t rows, const IntPanel& panel);

/// Sums of `bytes` signed bytes per row.
void vnni_row_sums(const int8_t* a, int64_t pitch, int64_t rows, int64_t bytes, int32_t* sums);

}  // namespace pypto::vm
