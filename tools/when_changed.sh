#!/usr/bin/env bash
# Run a command unless it succeeded before with the same arguments on the same files of this checkout.
#
#   tools/when_changed.sh NAME COMMAND...      NAME names the stamp in build/; FORCE=1 runs it in any case
#
# The files are those that git tracks or would track. Without git the command always runs.
set -euo pipefail
cd "$(dirname "$0")/.."
name="$1"
stamp="build/.passed-$name"
shift
fingerprint() {
  git ls-files --cached --others --exclude-standard -z | { xargs -0 sha256sum -- 2>/dev/null || true; } | sha256sum
}
git rev-parse --git-dir >/dev/null 2>&1 || exec "$@"
before="$* $(fingerprint)"
if [ "${FORCE:-}" != 1 ] && [ "$(cat "$stamp" 2>/dev/null)" = "$before" ]; then
  echo "$name: passed at $(date -r "$stamp" '+%F %T'), and nothing changed since; FORCE=1 runs it again"
  exit 0
fi
rm -f "$stamp"
"$@"
if [ "$* $(fingerprint)" = "$before" ]; then echo "$before" >"$stamp"; fi
