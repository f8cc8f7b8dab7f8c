#!/usr/bin/env bash
# Make this machine ready: Debian packages that are missing, and a Python environment in .venv.
#
#   tools/setup.sh build   what building and running the examples needs (no torch)
#   tools/setup.sh test    that, and what the tests and linters need
#
# Safe to call again: it does only what is missing, and nothing takes well under a second.
set -euo pipefail
cd "$(dirname "$0")/.."
what="${1:-test}"
case "$what" in
  build) requirements=(tools/requirements-build.txt) ;;
  test) requirements=(tools/requirements-build.txt tools/requirements.txt) ;;
  *) echo "usage: tools/setup.sh [build|test]" >&2; exit 2 ;;
esac

mkdir -p build
exec 9>build/.setup.lock
flock 9 # two calls at once: the second waits and finds the work done

# --- Debian packages ---
python="${PYTHON:-python3}"
missing=()
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
while read -r package alternative; do
  case "$package" in '' | '#'*) continue ;; esac
  if [ -n "$alternative" ] && command -v "${alternative#command:}" >/dev/null; then continue; fi
  installed "$package" || missing+=("$package")
done <tools/apt-packages.txt
command -v "$python" >/dev/null || missing+=(python3)
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
"$python" -c 'import os, sysconfig as s; os.stat(os.path.join(s.get_paths()["include"], "Python.h"))' 2>/dev/null ||
  missing+=(python3-dev)

if [ "${#missing[@]}" -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "setup: no apt-get on this machine; please install what these Debian packages hold: ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  root=()
  [ "$(id -u)" = 0 ] || root=(sudo)
  "${root[@]}" apt-get -qq update
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

# --- Python environment ---
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  { echo "setup: Python 3.10 or later is needed, $python is $("$python" --version)" >&2; exit 1; }
[ -x .venv/bin/pip ] && .venv/bin/python -c '' 2>/dev/null || "$python" -m venv --clear .venv

for file in "${requirements[@]}"; do
  stamp=".venv/.$(basename "$file" .txt).stamp"
  wanted="$(cat "${requirements[@]}" | sha256sum)"
  [ "$file" = "${requirements[0]}" ] && wanted="$(sha256sum <"$file")"
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "setup: installing $file into .venv"
    .venv/bin/pip install --quiet --disable-pip-version-check -r "$file"
    echo "$wanted" >"$stamp"
  fi
done

# The package is used from where it lies: python/ is on the path, and the console commands call into it.
site="$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
[ "$(cat "$site/pypto-checkout.pth" 2>/dev/null)" = "$PWD/python" ] || echo "$PWD/python" >"$site/pypto-checkout.pth"
command_for() { # name, module
  [ -x ".venv/bin/$1" ] || { printf '#!/bin/sh\nexec "%s/.venv/bin/python" -m %s "$@"\n' "$PWD" "$2" >".venv/bin/$1"; chmod +x ".venv/bin/$1"; }
}
command_for pypto pypto
command_for pypto-ir-trace pypto.tools.ir_trace
