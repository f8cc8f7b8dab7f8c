# SPDX-License-Identifier: Apache-2.0
"""Exception classes of the front end and their renderer."""

from pypto._errors import (
    ErrorRenderer,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    concise_error_message,
)

__all__ = [
    "ErrorRenderer",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "concise_error_message",
]
