# SPDX-License-Identifier: Apache-2.0
"""`python -m pypto.tools.clean_sim_trace <file>`: our timelines need no cleaning; the file is checked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pypto.tools.clean_sim_trace", description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(argv)
    try:
        text = options.trace.read_text(encoding="utf-8")
        count = len(json.loads(text)["traceEvents"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{options.trace} is no timeline: {error!r}", file=sys.stderr)
        return 1
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    print(f"{options.trace}: {count} events, nothing to clean")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
