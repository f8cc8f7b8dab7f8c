# SPDX-License-Identifier: Apache-2.0
"""``pypto.jit``: the JIT decorator and the class of what it makes."""

from pypto.language._jit import JITFunction, jit

__all__ = ["JITFunction", "jit"]
