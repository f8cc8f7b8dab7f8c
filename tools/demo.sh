#!/usr/bin/env bash
# Two ranks exchange tiles through window memory, by remote_load and by remote_store; both must say OK.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
ring=examples/distributed/05_remote_load_store.py
hello=examples/beginner/hello_world.py
run() { echo "\$ python $*"; "$python" "$@"; }
if [ -f "$ring" ]; then
  run "$ring" -p a2a3sim -d 0,1
  run "$ring" -p a2a3sim -d 0,1 --mode store
elif [ -f "$hello" ]; then
  run "$hello"
else
  echo "demo: no example to run yet"
fi
