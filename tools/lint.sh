#!/usr/bin/env bash
# Formatting and static checks. All of them run, then the exit code tells whether one complained.
#   tools/lint.sh          check
#   tools/lint.sh format   rewrite files to the project's format
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH" PYRIGHT_PYTHON_IGNORE_WARNINGS=1
mapfile -t cpp < <(git ls-files '*.h' '*.cpp' | while read -r f; do [ -f "$f" ] && echo "$f"; done)

if [ "${1:-}" = format ]; then
  ruff check --quiet --fix . || true
  ruff format --quiet .
  [ "${#cpp[@]}" -eq 0 ] || clang-format -i "${cpp[@]}"
  exit 0
fi

failed=()
step() { # name, command...
  local name="$1"; shift
  if "$@"; then echo "lint: $name ok"; else echo "lint: $name FAILED"; failed+=("$name"); fi
}
step "ruff check" ruff check --quiet .
step "ruff format" ruff format --quiet --check .
[ "${#cpp[@]}" -eq 0 ] || step "clang-format" clang-format --dry-run --Werror "${cpp[@]}"
step "layers" python tools/check_layers.py
if [ -n "$(git ls-files 'python/pypto/*.py' 'examples/*.py')" ]; then step "pyright" pyright; fi
[ "${#failed[@]}" -eq 0 ] || { echo "lint: FAILED: ${failed[*]} (make format may help)"; exit 1; }
