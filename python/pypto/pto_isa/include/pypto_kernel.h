// SPDX-License-Identifier: Apache-2.0
#pragma once

// What hand-written kernels may include on the simulator. The headers of a device's tile library are not part
// of this package: PYPTO_PTO_ISA_ROOT says where they are.

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __global__
#define __global__
#endif
