// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python/bind/common.h"

namespace pypto::bind {

struct PySpan {
  Span span;
};

struct PyDiagnostic {
  Diagnostic d;
};

}  // namespace pypto::bind
