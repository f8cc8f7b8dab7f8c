# SPDX-License-Identifier: Apache-2.0
"""`pypto` / `python -m pypto`: run a program, list the environment, explain a diagnostic."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path


def _run(options: argparse.Namespace) -> int:
    script = Path(options.script)
    if not script.is_file():
        print(f"pypto run: {script} does not exist", file=sys.stderr)
        return 2
    if options.fabric is not None:
        os.environ["PYPTO_FABRIC"] = options.fabric
    sys.argv = [str(script), *options.args]
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0


def _env(options: argparse.Namespace) -> int:
    from pypto import _env

    print(_env.table())
    return 0


def _explain(options: argparse.Namespace) -> int:
    from pypto import _explain

    page = _explain.page(options.id)
    if page is None:
        near = _explain.nearest(options.id)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        print(
            f"pypto explain: there is no diagnostic {options.id!r}.{hint} `pypto explain --list` lists them.",
            file=sys.stderr,
        )
        return 1
    print(page)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="pypto", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    run = commands.add_parser("run", help="run a Python program with a chosen fabric")
    run.add_argument("--fabric", choices=("inproc", "mpi"))
    run.add_argument("script")
    run.add_argument("args", nargs=argparse.REMAINDER)
    run.set_defaults(function=_run)
    env = commands.add_parser("env", help="list environment variables with value, default, meaning")
    env.set_defaults(function=_env)
    explain = commands.add_parser("explain", help="say what a diagnostic means and how to fix it")
    explain.add_argument("id", nargs="?", default="--list")
    explain.add_argument("--list", action="store_true", help="list all diagnostics")
    explain.set_defaults(function=_explain)
    options = parser.parse_args(argv)
    if options.command == "explain" and (options.list or options.id == "--list"):
        from pypto import _explain as pages

        print(pages.listing())
        return 0
    return options.function(options)


if __name__ == "__main__":
    raise SystemExit(main())
