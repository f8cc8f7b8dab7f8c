// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/dtype.h"
#include "core/machine/run.h"
#include "core/vm/emit.h"

/// The programs of all examples and of the planted mistakes, compiled and saved by
/// tools/make_saved_programs.py, run without Python and do what they did there: results, reports and errors
/// (04 PLAT-5). That script describes the files.
namespace pypto::machine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemake = "; `make saved` writes the files of build/saved";

fs::path folder() { return fs::path(PYPTO_SOURCE_DIR) / "build" / "saved"; }

std::string file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + " is missing" + kRemake);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Reads little-endian values; running off the end is an error of the test's files.
class Bytes {
 public:
  explicit Bytes(std::string data) : data_(std::move(data)) {}

  template <class T>
  T get() {
    T value{};
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string text() {
    const auto size = get<uint32_t>();
    return {take(size), size};
  }
  std::string block() {
    const auto size = get<uint64_t>();
    return {take(size), size};
  }
  bool begins_with(std::string_view tag) {
    return tag.size() <= data_.size() && std::string_view(take(tag.size()), tag.size()) == tag;
  }
  bool done() const { return at_ == data_.size(); }

 private:
  const char* take(size_t n) {
    if (n > data_.size() - at_) throw std::runtime_error(std::string("a file is cut off") + kRemake);
    at_ += n;
    return data_.data() + at_ - n;
  }

  std::string data_;
  size_t at_ = 0;
};

/// What one run did, in Python or here.
struct Outcome {
  std::string error;
  std::vector<std::string> reports;
  std::vector<std::string> results;  ///< bytes of each tensor
  bool operator==(const Outcome&) const = default;
};

struct RecordedRun {
  Schedule schedule;
  uint64_t seed;
  Checks checks;
  Outcome expected;
};

struct Case {
  vm::ProgramPtr program;
  int entry = -1;
  std::vector<int> device_ids;
  std::vector<HostArg> args;
  std::vector<std::string> inputs;  ///< bytes of each tensor
  bool says_ids = false;
  std::set<std::string> ids;  ///< what must be reported
  std::vector<RecordedRun> runs;
};

/// The executable form is the first block of the file, after a tag.
std::string program_bytes(const fs::path& path) {
  Bytes in(file_bytes(path));
  if (!in.begins_with("PYPTOBIN1")) {
    throw std::runtime_error(path.string() + ": another form of saved programs" + kRemake);
  }
  return in.block();
}

HostArg argument(Bytes& in, const std::vector<std::string>& blobs, std::vector<std::string>& inputs) {
  HostArg a;
  a.is_tensor = in.get<uint8_t>() == 1;
  if (!a.is_tensor) {
    a.int_value = in.get<int64_t>();
    a.float_value = in.get<double>();
    return a;
  }
  a.dtype = dtype_from_code(in.get<uint8_t>()).value();
  a.shape.resize(in.get<uint8_t>());
  for (int64_t& n : a.shape) n = in.get<int64_t>();
  inputs.push_back(blobs.at(in.get<uint32_t>()));
  return a;
}

Case read_case(const fs::path& path) {
  Bytes in(file_bytes(path));
  if (!in.begins_with("PYPTOCASE1")) throw std::runtime_error("another form of cases" + std::string(kRemake));
  Case c;
  c.program = vm::load(program_bytes(path.parent_path() / in.text()));
  const std::string entry = in.text();
  c.entry = entry.empty() ? c.program->entry : c.program->find(entry);
  std::vector<std::string> blobs(in.get<uint32_t>());
  for (auto& b : blobs) b = in.block();
  c.device_ids.resize(in.get<uint32_t>());
  for (int& id : c.device_ids) id = in.get<int32_t>();
  c.args.resize(in.get<uint32_t>());
  for (HostArg& a : c.args) a = argument(in, blobs, c.inputs);
  if (const auto listed = in.get<uint32_t>()) {
    c.says_ids = true;
    for (uint32_t i = 1; i < listed; ++i) c.ids.insert(in.text());
  }
  c.runs.resize(in.get<uint32_t>());
  for (RecordedRun& r : c.runs) {
    r.schedule = static_cast<Schedule>(in.get<uint8_t>());
    r.seed = in.get<uint64_t>();
    r.checks = static_cast<Checks>(in.get<uint8_t>());
    r.expected.error = in.text();
    r.expected.reports.resize(in.get<uint32_t>());
    for (auto& t : r.expected.reports) t = in.text();
    for (size_t i = 0; i < c.inputs.size(); ++i) r.expected.results.push_back(blobs.at(in.get<uint32_t>()));
  }
  EXPECT_TRUE(in.done());
  return c;
}

std::string place(const Span& span, int rank) {
  const std::string file = span.known() ? fs::path(span.file->path).filename().string() : "";
  return file + ":" + std::to_string(span.known() ? span.line : 0) + "@" + std::to_string(rank);
}

/// The text that `report_text` of the script makes of the same finding.
std::string report_text(const Diagnostic& d) {
  std::set<std::string> places;
  for (const auto& a : d.accesses) places.insert(place(a.span, a.rank));
  for (const auto& w : d.waits) places.insert(place(w.span, w.rank));
  if (places.empty()) places.insert(place(d.span, d.rank));
  std::string out = d.severity == Severity::kError     ? "error "
                    : d.severity == Severity::kWarning ? "warning "
                                                       : "note ";
  out += d.id.empty() ? "-" : d.id;
  for (const auto& p : places) out += " " + p;
  return out + " | " + d.message;
}

/// One run, its findings collected. `ids` gets their ids.
Outcome outcome(const Case& c, const RecordedRun& how, int threads, std::set<std::string>* ids) {
  Outcome out;
  out.results = c.inputs;
  std::vector<HostArg> args = c.args;
  size_t next = 0;
  for (HostArg& a : args) {
    if (a.is_tensor) a.data = reinterpret_cast<uint8_t*>(out.results[next++].data());
  }
  RunOptions options;
  options.schedule = how.schedule;
  options.seed = how.seed;
  options.checks = how.checks;
  options.threads = threads;
  options.collect = true;
  options.device_ids = c.device_ids;
  RunReport report;
  try {
    run(*c.program, c.entry, args, options, nullptr, nullptr, &report);
  } catch (const Failure& f) {
    out.error = f.diagnostic().message;
  }
  std::set<std::string> texts;
  for (const auto& d : report.diagnostics) {
    texts.insert(report_text(d));
    ids->insert(d.id);
  }
  out.reports.assign(texts.begin(), texts.end());
  return out;
}

std::vector<fs::path> files(const char* extension) {
  std::vector<fs::path> out;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder(), missing)) {
    if (entry.path().extension() == extension) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.stem().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

// ---------------------------------------------------------------- every call that was recorded

class SavedCall : public testing::TestWithParam<fs::path> {};

TEST_P(SavedCall, DoesWhatItDidInPython) {
  const Case c = read_case(GetParam());
  ASSERT_GE(c.entry, 0);
  ASSERT_GE(c.runs.size(), 6u);
  for (size_t i = 0; i < c.runs.size(); ++i) {
    const RecordedRun& how = c.runs[i];
    for (const int threads : {1, 2, 4}) {
      if (threads > 1 && how.checks == Checks::kStrict)
        continue;  // these three are said to be independent (M-35)
      SCOPED_TRACE("run " + std::to_string(i) + ", threads " + std::to_string(threads));
      std::set<std::string> ids;
      const Outcome got = outcome(c, how, threads, &ids);
      EXPECT_EQ(got.error, how.expected.error);
      EXPECT_EQ(got.reports, how.expected.reports);
      EXPECT_TRUE(got.results == how.expected.results) << "other bytes in a result";
      if (c.says_ids && how.checks == Checks::kDefault) {
        EXPECT_EQ(ids, c.ids);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SavedCall, testing::ValuesIn(files(".case")), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SavedCall);

// ---------------------------------------------------------------- every program

class SavedProgram : public testing::TestWithParam<fs::path> {};

TEST_P(SavedProgram, SavesAgainToTheSameBytes) {
  const std::string bytes = program_bytes(GetParam());
  const vm::ProgramPtr program = vm::load(bytes);
  EXPECT_EQ(vm::save(*program), bytes);
  EXPECT_FALSE(vm::disassemble(*program).empty());
}

/// Damaged bytes are refused with the error that says so (04 SER-9); with a checksum that fits them they may
/// also be a program, but never crash the reader.
TEST_P(SavedProgram, SurvivesDamage) {
  constexpr size_t kSum = 16, kRest = 24;  // after the magic, the version and the operations
  const std::string bytes = program_bytes(GetParam());
  uint32_t x = static_cast<uint32_t>(bytes.size());
  for (int trial = 0; trial < 24; ++trial) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) {
      x = x * 1664525u + 1013904223u;
      damaged[(x >> 4) % damaged.size()] ^= static_cast<char>(x >> 24 | 1);
    }
    if (trial % 4 == 0) damaged.resize((x >> 7) % damaged.size());
    const bool sealed = trial % 3 != 0 && damaged.size() > kRest;
    if (sealed) {
      damaged.replace(0, kSum, bytes, 0, kSum);
      uint64_t sum = 0xCBF29CE484222325u;
      for (size_t i = kRest; i < damaged.size(); ++i) {
        sum = (sum ^ static_cast<uint8_t>(damaged[i])) * 0x100000001B3u;
      }
      std::memcpy(damaged.data() + kSum, &sum, sizeof sum);
    }
    try {
      (void)vm::load(damaged);
      EXPECT_TRUE(sealed) << "trial " << trial;
    } catch (const Failure& f) {
      EXPECT_EQ(f.diagnostic().cls, ErrorClass::kValueError) << f.diagnostic().message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SavedProgram, testing::ValuesIn(files(".bin")), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SavedProgram);

// ---------------------------------------------------------------- and that they are there

TEST(SavedPrograms, AreAllThere) {
  ASSERT_TRUE(fs::is_regular_file(folder() / "stamp")) << folder() << " is not complete" << kRemake;
  std::ifstream stamp(folder() / "stamp");
  std::string fingerprint;
  size_t examples = 0, planted = 0, programs = 0;
  ASSERT_TRUE(stamp >> fingerprint >> examples >> planted >> programs);
  const auto cases = files(".case");
  EXPECT_EQ(cases.size(), examples + planted) << kRemake;
  EXPECT_EQ(files(".bin").size(), programs) << kRemake;
  const auto of_planted =
      static_cast<size_t>(std::count_if(cases.begin(), cases.end(), [](const fs::path& p) {
        return p.filename().string().rfind("planted_", 0) == 0;
      }));
  EXPECT_EQ(of_planted, planted);
  EXPECT_GE(examples, 200u);
  EXPECT_GE(planted, 280u);
  EXPECT_GE(programs, 250u);
}

}  // namespace
}  // namespace pypto::machine
