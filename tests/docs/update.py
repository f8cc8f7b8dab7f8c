# SPDX-License-Identifier: Apache-2.0
"""Rewrites the reports that pages show (`<!-- report of FILE -->`) from what the programs print now.

PYTHONPATH=python python tests/docs/update.py
"""

import functools

from pages import LANGUAGES, REPORT, pages, report


def main() -> None:
    cached = functools.cache(report)
    for language in LANGUAGES:
        for page in pages(language):
            old = page.read_text()
            new = REPORT.sub(lambda m: f"<!-- report of {m['file']} -->\n```text\n{cached(m['file'])}```", old)
            if new != old:
                page.write_text(new)
                print(f"wrote {page}")


if __name__ == "__main__":
    main()
