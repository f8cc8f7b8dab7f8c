// SPDX-License-Identifier: Apache-2.0

// Every vector kernel against its scalar definition, for every dtype, ragged lengths and instruction set.
#include <array>
#include <cfenv>
#include <cmath>
#include <limits>

#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/reference.h"
#include "tests/core/kernels_support.h"

namespace pypto::vm {
namespace {

using namespace testing;

const std::vector<size_t> kLengths = {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 47, 64, 67, 255, 513};

bool is_nan_element(DType dtype, const uint8_t* element) {
  return is_float(dtype) && std::isnan(read_float(dtype, element));
}

std::string bytes_text(DType dtype, const uint8_t* element) {
  return std::to_string(static_cast<double>(reference::load(dtype, element)));
}

/// Distance in representable numbers.
int64_t ulps(DType dtype, const uint8_t* a, const uint8_t* b) {
  auto order = [&](const uint8_t* p) {
    int64_t bits = 0;
    if (dtype == DType::kFp32) {
      int32_t v;
      std::memcpy(&v, p, 4);
      bits = v < 0 ? -static_cast<int64_t>(v & 0x7fffffff) : v;
    } else {
      int16_t v;
      std::memcpy(&v, p, 2);
      bits = v < 0 ? -static_cast<int64_t>(v & 0x7fff) : v;
    }
    return bits;
  };
  return std::abs(order(a) - order(b));
}

// O-303, O-305, O-306, O-311, O-901, O-906, O-1201, O-1203
TEST(KernelsSimd, BinaryMatchesDefinition) {
  const std::vector<BinaryOp> ops = {BinaryOp::kAdd, BinaryOp::kSub,  BinaryOp::kMul,  BinaryOp::kDiv,
                                     BinaryOp::kMax, BinaryOp::kMin,  BinaryOp::kFmod, BinaryOp::kRem,
                                     BinaryOp::kAnd, BinaryOp::kOr,   BinaryOp::kXor,  BinaryOp::kShl,
                                     BinaryOp::kShr, BinaryOp::kLeaky};
  for_each_target([&] {
    for (const DType dtype : arithmetic_dtypes()) {
      const auto width = static_cast<size_t>(dtype_bytes(dtype));
      for (const BinaryOp op : ops) {
        for (const Spread spread : {Spread::kNone, Spread::kLhs, Spread::kRhs}) {
          const BinaryKernel kernel = binary_kernel(op, dtype, spread);
          if (kernel == nullptr) {
            const bool floats_only = op == BinaryOp::kLeaky;
            const bool integers_only = op >= BinaryOp::kAnd && op <= BinaryOp::kShr;
            EXPECT_TRUE(is_float(dtype) ? integers_only : floats_only)
                << dtype_text(dtype) << " op " << static_cast<int>(op);
            continue;
          }
          for (const size_t n : kLengths) {
            auto a = random_elements(dtype, n + 1, static_cast<uint32_t>(n * 3 + 1));
            auto b = random_elements(dtype, n + 1, static_cast<uint32_t>(n * 5 + 2));
            if (op == BinaryOp::kShl || op == BinaryOp::kShr) {
              for (size_t i = 0; i <= n; ++i) {
                write_integer(dtype, b.data() + i * width, static_cast<int64_t>((i * 7) % 70));
              }
            }
            std::vector<uint8_t> out((n + 1) * width, 0xee);
            kernel(a.data(), b.data(), out.data(), n);
            for (size_t i = 0; i < n; ++i) {
              alignas(8) uint8_t expected[8];
              const uint8_t* x = a.data() + (spread == Spread::kLhs ? 0 : i * width);
              const uint8_t* y = b.data() + (spread == Spread::kRhs ? 0 : i * width);
              reference::binary(op, dtype, x, y, expected);
              const uint8_t* got = out.data() + i * width;
              if (is_nan_element(dtype, expected)) {
                ASSERT_TRUE(is_nan_element(dtype, got));
              } else if ((op == BinaryOp::kMax || op == BinaryOp::kMin) && is_float(dtype)) {
                ASSERT_EQ(read_float(dtype, got), read_float(dtype, expected));  // signs of zero: O-308
              } else {
                ASSERT_EQ(std::memcmp(got, expected, width), 0)
                    << dtype_text(dtype) << " op " << static_cast<int>(op) << " n " << n << " i " << i << ": "
                    << bytes_text(dtype, x) << ", " << bytes_text(dtype, y) << " gives "
                    << bytes_text(dtype, got) << ", expected " << bytes_text(dtype, expected);
              }
            }
            for (size_t k = 0; k < width; ++k) ASSERT_EQ(out[n * width + k], 0xee) << "wrote past the row";
          }
        }
      }
    }
  });
}

// Section 10, O-303, O-312
TEST(KernelsSimd, UnaryMatchesDefinition) {
  const std::vector<UnaryOp> ops = {
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) UnaryOp::k##Name,
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
      UnaryOp::kNeg,   UnaryOp::kAbs,  UnaryOp::kLog, UnaryOp::kRsqrt,
      UnaryOp::kRecip, UnaryOp::kRelu, UnaryOp::kNot};
  for_each_target([&] {
    for (const DType dtype : arithmetic_dtypes()) {
      const auto width = static_cast<size_t>(dtype_bytes(dtype));
      for (const UnaryOp op : ops) {
        const UnaryKernel kernel = unary_kernel(op, dtype);
        if (kernel == nullptr) continue;
        for (const size_t n : kLengths) {
          const auto a = random_elements(dtype, n + 1, static_cast<uint32_t>(n * 11 + 1), true);
          std::vector<uint8_t> out((n + 1) * width, 0xee);
          kernel(a.data(), out.data(), n);
          for (size_t i = 0; i < n; ++i) {
            alignas(8) uint8_t expected[8];
            reference::unary(op, dtype, a.data() + i * width, expected);
            const uint8_t* got = out.data() + i * width;
            if (is_nan_element(dtype, expected)) {
              ASSERT_TRUE(is_nan_element(dtype, got));
              continue;
            }
            const bool exact = op == UnaryOp::kNeg || op == UnaryOp::kAbs || op == UnaryOp::kSqrt ||
                               op == UnaryOp::kRecip || op == UnaryOp::kRelu || op == UnaryOp::kNot;
            if (!exact) {
              ASSERT_LE(ulps(dtype, got, expected), dtype == DType::kFp32 ? 4 : 1)
                  << dtype_text(dtype) << " op " << static_cast<int>(op) << " of "
                  << bytes_text(dtype, a.data() + i * width);
            } else {
              ASSERT_EQ(std::memcmp(got, expected, width), 0)
                  << dtype_text(dtype) << " op " << static_cast<int>(op) << " of "
                  << bytes_text(dtype, a.data() + i * width) << " gives " << bytes_text(dtype, got);
            }
          }
          for (size_t k = 0; k < width; ++k) ASSERT_EQ(out[n * width + k], 0xee);
        }
      }
    }
  });
}

// O-1103, O-1104, O-302: rows that are converted in pieces, where single values are NaN or out of range; also
// over their own operand, and whatever the rounding and the flags of the processor were before.
TEST(KernelsSimd, CastsOfLongRows) {
  const std::vector<float> special = {std::bit_cast<float>(0x7fa00001u),
                                      std::bit_cast<float>(0xffc12345u),
                                      std::numeric_limits<float>::infinity(),
                                      -std::numeric_limits<float>::infinity(),
                                      2147483648.0f,
                                      -2147483648.0f,
                                      -2147483904.0f,
                                      2147483520.0f,
                                      3e38f};
  for (const size_t n : {size_t{511}, size_t{1029}, size_t{2048}, size_t{9701}}) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>((i * 7919) % 4001) * 0.25f - 500.0f;
    for (const bool clean : {true, false}) {
      for (size_t k = 0; k < special.size() && !clean; ++k)
        x[(k * k * 131 + 17 * k + n / 2) % n] = special[k];
      for (const DType to : {DType::kFp16, DType::kBf16, DType::kInt32, DType::kInt16, DType::kUInt8}) {
        const auto width = static_cast<size_t>(dtype_bytes(to));
        for (const CastMode mode : {CastMode::kNone, CastMode::kRint, CastMode::kRound, CastMode::kFloor,
                                    CastMode::kCeil, CastMode::kTrunc, CastMode::kOdd}) {
          std::vector<uint8_t> expected(n * width);
          for (size_t i = 0; i < n; ++i)
            reference::cast(DType::kFp32, &x[i], to, expected.data() + i * width, mode);
          for_each_target([&] {
            std::vector<uint8_t> out(n * width + 1, 0xee);
            std::feraiseexcept(FE_INVALID);
            cast_row(DType::kFp32, x.data(), to, out.data(), n, mode);
            ASSERT_NE(std::fetestexcept(FE_INVALID), 0);
            std::feclearexcept(FE_ALL_EXCEPT);
            cast_row(DType::kFp32, x.data(), to, out.data(), n, mode);
            ASSERT_EQ(std::fegetround(), FE_TONEAREST);
            ASSERT_EQ(out[n * width], 0xee);
            out.pop_back();
            std::vector<float> over = x;
            cast_row(DType::kFp32, over.data(), to, over.data(), n, mode);
            ASSERT_EQ(std::memcmp(over.data(), out.data(), n * width), 0) << dtype_text(to);
            for (size_t i = 0; i < n; ++i) {
              if (is_float(to) && std::isnan(x[i])) {
                ASSERT_TRUE(std::isnan(read_float(to, &out[i * width])));
                continue;
              }
              ASSERT_EQ(std::memcmp(&out[i * width], &expected[i * width], width), 0)
                  << dtype_text(to) << " mode " << static_cast<int>(mode) << " of " << x[i] << " at " << i;
            }
          });
        }
      }
    }
  }
}

// O-312: every 16-bit pattern of every unary operation, and the same bits on every instruction set.
TEST(KernelsSimd, EverySixteenBitPattern) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const DType dtype : {DType::kFp16, DType::kBf16}) {
    for (const UnaryOp op : {UnaryOp::kNeg, UnaryOp::kAbs, UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kSqrt,
                             UnaryOp::kRsqrt, UnaryOp::kRecip, UnaryOp::kRelu}) {
      std::vector<uint16_t> first;
      for_each_target([&] {
        std::vector<uint16_t> out(all.size());
        unary_kernel(op, dtype)(all.data(), out.data(), all.size());
        if (first.empty()) {
          first = out;
          for (size_t i = 0; i < all.size(); ++i) {
            uint16_t expected;
            reference::unary(op, dtype, &all[i], &expected);
            const double want = read_float(dtype, &expected), got = read_float(dtype, &out[i]);
            if (std::isnan(want)) {
              ASSERT_TRUE(std::isnan(got)) << "op " << static_cast<int>(op) << " pattern " << i;
            } else {
              ASSERT_LE(ulps(dtype, reinterpret_cast<const uint8_t*>(&out[i]),
                             reinterpret_cast<const uint8_t*>(&expected)),
                        1)
                  << dtype_text(dtype) << " op " << static_cast<int>(op) << " pattern " << i << " got " << got
                  << " want " << want;
            }
          }
        } else {
          ASSERT_EQ(first, out) << dtype_text(dtype) << " op " << static_cast<int>(op);
        }
      });
    }
  }
}

// O-311: FP32 functions give the same bits everywhere, over all exponents; O-303: within 4 ulp.
TEST(KernelsSimd, MathBitsAndErrors) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521 * 13) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (int i = -120; i < 120; ++i) {
    for (int k = 0; k < 40; ++k) x.push_back(static_cast<float>(i) + static_cast<float>(k) / 40.0f + 1e-4f);
  }
  for (const float special : {0.0f, -0.0f, 1.0f, -103.9720f, -103.98f, -104.0f, 88.72283f, 88.73f, -87.4f,
                              0.99999994f, 1.0000001f, 1e-45f, 1.1754942e-38f, 3.4028235e38f}) {
    x.push_back(special);
  }
  struct Case {
    UnaryOp op;
    const char* name;
    int64_t bound;
  };
  for (const Case c :
       {Case{UnaryOp::kExp, "exp", 4}, Case{UnaryOp::kLog, "log", 4}, Case{UnaryOp::kSqrt, "sqrt", 0},
        Case{UnaryOp::kRsqrt, "rsqrt", 4}, Case{UnaryOp::kRecip, "recip", 0}}) {
    std::vector<float> first;
    for_each_target([&] {
      std::vector<float> out(x.size());
      unary_kernel(c.op, DType::kFp32)(x.data(), out.data(), x.size());
      if (first.empty()) {
        first = out;
        int64_t worst = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          float expected;
          reference::unary(c.op, DType::kFp32, &x[i], &expected);
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(out[i])) << c.name << " of " << x[i];
            continue;
          }
          const int64_t distance = ulps(DType::kFp32, reinterpret_cast<const uint8_t*>(&out[i]),
                                        reinterpret_cast<const uint8_t*>(&expected));
          ASSERT_LE(distance, c.bound)
              << c.name << " of " << x[i] << " gives " << out[i] << ", expected " << expected;
          worst = std::max(worst, distance);
        }
        ::testing::Test::RecordProperty(std::string("ulp_") + c.name, static_cast<int>(worst));
        std::printf("    %-6s worst error %lld ulp over %zu arguments\n", c.name,
                    static_cast<long long>(worst), x.size());
      } else {
        ASSERT_EQ(std::memcmp(first.data(), out.data(), x.size() * 4), 0) << c.name;
      }
    });
  }
}

// O-303, O-313: sine and cosine of any finite argument within 1e-6; B-41.
TEST(KernelsSimd, SinCosAnyArgument) {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1e-30f,
                          0.5f,
                          1.5707964f,
                          3.1415927f,
                          -2.0f,
                          1e4f,
                          524287.9f,
                          524288.0f,
                          1e6f,
                          1e10f,
                          16367173.0f * 1024.0f,
                          1e20f,
                          1e30f,
                          -1e30f,
                          3.4028235e38f,
                          -3.4028235e38f};
  for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 104729u)
    x.push_back(std::bit_cast<float>(bits));
  std::vector<float> s(x.size()), c(x.size());
  unary_kernel(UnaryOp::kSin, DType::kFp32)(x.data(), s.data(), x.size());
  unary_kernel(UnaryOp::kCos, DType::kFp32)(x.data(), c.data(), x.size());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    // glibc reduces double arguments exactly.
    worst = std::max(worst, std::fabs(std::sin(static_cast<double>(x[i])) - static_cast<double>(s[i])));
    worst = std::max(worst, std::fabs(std::cos(static_cast<double>(x[i])) - static_cast<double>(c[i])));
    ASSERT_LE(worst, 1e-7) << x[i];
  }
  const float nowhere[3] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  float out[3];
  unary_kernel(UnaryOp::kSin, DType::kFp32)(nowhere, out, 3);
  for (const float v : out) EXPECT_TRUE(std::isnan(v));
  unary_kernel(UnaryOp::kCos, DType::kFp32)(nowhere, out, 3);
  for (const float v : out) EXPECT_TRUE(std::isnan(v));
}

// O-313
TEST(KernelsSimd, RangesOfExpAndLog) {
  const float inf = std::numeric_limits<float>::infinity();
  const float x[6] = {inf, -inf, 88.8f, -104.0f, -88.0f, 0.0f};
  for_each_target([&] {
    float e[6];
    unary_kernel(UnaryOp::kExp, DType::kFp32)(x, e, 6);
    EXPECT_EQ(e[0], inf);
    EXPECT_EQ(e[1], 0.0f);
    EXPECT_EQ(e[2], inf);
    EXPECT_EQ(e[3], 0.0f);
    EXPECT_GT(e[4], 0.0f);
    EXPECT_LT(e[4], std::numeric_limits<float>::min());  // subnormal
    EXPECT_EQ(e[5], 1.0f);
    const float y[5] = {0.0f, -0.0f, inf, -1.0f, 1.0f};
    float l[5];
    unary_kernel(UnaryOp::kLog, DType::kFp32)(y, l, 5);
    EXPECT_EQ(l[0], -inf);
    EXPECT_EQ(l[1], -inf);
    EXPECT_EQ(l[2], inf);
    EXPECT_TRUE(std::isnan(l[3]));
    EXPECT_EQ(l[4], 0.0f);
  });
}

// O-1003: the difference is rounded to the dtype before exp.
TEST(KernelsSimd, ExpDifRoundsTheDifference) {
  for_each_target([&] {
    for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
      const auto width = static_cast<size_t>(dtype_bytes(dtype));
      const size_t n = 131;
      std::vector<uint8_t> a(n * width), b(n * width), d(n * width), expected(n * width), out(n * width);
      for (size_t i = 0; i < n; ++i) {
        write_float(dtype, a.data() + i * width, 3.0 - static_cast<double>(i) * 0.0317);
        write_float(dtype, b.data() + i * width, 1.0 + static_cast<double>(i % 7) * 0.123);
      }
      binary_kernel(BinaryOp::kSub, dtype, Spread::kNone)(a.data(), b.data(), d.data(), n);
      unary_kernel(UnaryOp::kExp, dtype)(d.data(), expected.data(), n);
      binary_kernel(BinaryOp::kExpDif, dtype, Spread::kNone)(a.data(), b.data(), out.data(), n);
      EXPECT_EQ(out, expected) << dtype_text(dtype);
    }
  });
}

// O-307: order of row reductions, bit for bit.
TEST(KernelsSimd, ReduceMatchesDefinition) {
  for_each_target([&] {
    for (const DType dtype : arithmetic_dtypes()) {
      const auto width = static_cast<size_t>(dtype_bytes(dtype));
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
        for (const size_t n : kLengths) {
          if (n == 0) continue;
          auto x = random_elements(dtype, n, static_cast<uint32_t>(n + 77));
          if (is_float(dtype)) {
            for (size_t i = 0; i < n; ++i) {
              const double v =
                  1.0 + std::sin(static_cast<double>(i * 37 + 5)) * (op == ReduceOp::kProd ? 0.1 : 900.0);
              write_float(dtype, x.data() + i * width, v);
            }
          }
          alignas(8) uint8_t got[8] = {}, expected[8] = {};
          reduce_kernel(op, dtype)(x.data(), n, got);
          reference::reduce(op, dtype, x.data(), n, expected);
          ASSERT_EQ(std::memcmp(got, expected, width), 0)
              << dtype_text(dtype) << " op " << static_cast<int>(op) << " n " << n << ": "
              << bytes_text(dtype, got) << ", expected " << bytes_text(dtype, expected);
        }
      }
    }
  });
}

// O-307, O-311: the greatest value of a row is what taking element after element into 16 partial results
// gives, NaN and zeros of either sign included.
TEST(KernelsSimd, GreatestAndLeastTakeElementsInOrder) {
  std::mt19937 random(7);
  for (const size_t n : {31u, 128u, 131u, 1000u, 4099u}) {
    for (int round = 0; round < 12; ++round) {
      std::vector<float> x(n);
      for (float& v : x) v = static_cast<float>(random() % 5) - (round % 2 != 0 ? 4.0f : 2.0f);
      for (float& v : x) v = v == 0.0f && random() % 2 != 0 ? -0.0f : v;
      for (int k = 0; k < round / 3; ++k) x[random() % n] = std::nanf("");
      for (const bool greatest : {true, false}) {
        const auto step = [&](float a, float b) { return (greatest ? a > b : a < b) ? a : b; };
        const float neutral = std::numeric_limits<float>::infinity() * (greatest ? -1.0f : 1.0f);
        std::array<float, 16> partial;
        partial.fill(neutral);
        for (size_t i = 0; i < n; ++i) partial[i % 16] = step(partial[i % 16], x[i]);
        for (size_t j = n % 16; j != 0 && j < 16; ++j) partial[j] = step(partial[j], neutral);
        for (size_t half = 8; half != 0; half /= 2) {
          for (size_t j = 0; j < half; ++j) partial[j] = step(partial[j], partial[j + half]);
        }
        for_each_target([&] {
          float got = 0;
          reduce_kernel(greatest ? ReduceOp::kMax : ReduceOp::kMin, DType::kFp32)(x.data(), n, &got);
          EXPECT_EQ(std::memcmp(&got, partial.data(), 4), 0) << n << ": " << got << " for " << partial[0];
        });
      }
    }
  }
}

// O-303, O-311: reciprocals are correctly rounded, for every fraction and at the ends of the range.
TEST(KernelsSimd, ReciprocalOfEveryFraction) {
  constexpr size_t kStrip = 4096;
  std::vector<float> x(kStrip), got(kStrip);
  for_each_target([&] {
    const UnaryKernel kernel = unary_kernel(UnaryOp::kRecip, DType::kFp32);
    size_t wrong = 0;
    for (const uint32_t exponent : {0u, 1u, 63u, 64u, 127u, 191u, 192u, 252u, 253u, 254u, 255u}) {
      const uint32_t stride = exponent == 127 ? 1 : 61;
      for (uint32_t fraction = 0; fraction < 1u << 23; fraction += kStrip * stride) {
        for (size_t i = 0; i < kStrip; ++i) {
          const uint32_t at = (fraction + static_cast<uint32_t>(i) * stride) & 0x7fffffu;
          const uint32_t bits = (i % 2 != 0 ? 1u << 31 : 0) | exponent << 23 | (i == 0 ? 0x7fffffu : at);
          std::memcpy(&x[i], &bits, 4);
        }
        kernel(x.data(), got.data(), kStrip);
        for (size_t i = 0; i < kStrip; ++i) {
          const float want = 1.0f / x[i];
          if (std::memcmp(&got[i], &want, 4) != 0 && !(std::isnan(want) && std::isnan(got[i]))) ++wrong;
        }
      }
    }
    EXPECT_EQ(wrong, 0u);
  });
}

// O-308, section 13
TEST(KernelsSimd, CompareMatchesDefinition) {
  for (const DType dtype : arithmetic_dtypes()) {
    const auto width = static_cast<size_t>(dtype_bytes(dtype));
    for (const size_t n : kLengths) {
      if (n == 0) continue;
      auto a = random_elements(dtype, n, 5, true);
      auto b = random_elements(dtype, n, 6, true);
      for (size_t i = 0; i < n; i += 3) std::memcpy(b.data() + i * width, a.data() + i * width, width);
      for (int op = 0; op < 6; ++op) {
        std::vector<uint8_t> flags(n);
        compare_kernel(dtype, Spread::kNone)(static_cast<CompareOp>(op), a.data(), b.data(), flags.data(), n);
        std::vector<uint8_t> bits((n + 7) / 8);
        pack_bits(flags.data(), bits.data(), n);
        for (size_t i = 0; i < n; ++i) {
          const bool want = reference::compare(static_cast<CompareOp>(op), dtype, a.data() + i * width,
                                               b.data() + i * width);
          ASSERT_EQ(flags[i], want ? 1 : 0);
          ASSERT_EQ((bits[i / 8] >> (i % 8)) & 1, want ? 1 : 0);
        }
      }
    }
  }
}

// O-1103 - O-1106
TEST(KernelsSimd, CastMatchesDefinition) {
  std::vector<DType> all = arithmetic_dtypes();
  for (const DType d :
       {DType::kInt4, DType::kUInt4, DType::kFp4, DType::kFp8E4M3FN, DType::kFp8E5M2, DType::kHf8})
    all.push_back(d);
  for_each_target([&] {
    for (const DType from : all) {
      for (const DType to : all) {
        if (from == to) continue;
        for (int mode = 0; mode < 7; ++mode) {
          for (const size_t n : {size_t{1}, size_t{17}, size_t{600}}) {
            const auto from_width = static_cast<size_t>(dtype_bytes(from));
            const auto to_width = static_cast<size_t>(dtype_bytes(to));
            auto x = random_elements(from, n, static_cast<uint32_t>(n * 7 + static_cast<size_t>(mode)), true);
            if (is_float(from)) {
              for (size_t i = 0; i < n; i += 4) {  // ties
                write_float(from, x.data() + i * from_width, static_cast<double>(i) / 2 - 40);
              }
            }
            std::vector<uint8_t> out(n * to_width + 1, 0xee);
            cast_row(from, x.data(), to, out.data(), n, static_cast<CastMode>(mode));
            for (size_t i = 0; i < n; ++i) {
              alignas(8) uint8_t expected[8] = {};
              reference::cast(from, x.data() + i * from_width, to, expected, static_cast<CastMode>(mode));
              const uint8_t* got = out.data() + i * to_width;
              if (is_nan_element(to, expected)) {
                ASSERT_TRUE(is_nan_element(to, got));
                continue;
              }
              ASSERT_EQ(std::memcmp(got, expected, to_width), 0)
                  << dtype_text(from) << " -> " << dtype_text(to) << " mode " << mode << " of "
                  << bytes_text(from, x.data() + i * from_width) << " gives " << bytes_text(to, got)
                  << ", expected " << bytes_text(to, expected);
            }
            ASSERT_EQ(out[n * to_width], 0xee);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace pypto::vm
