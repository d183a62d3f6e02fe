#!/bin/bash
# Pastes the README's five-minute tour into a shell, and fails if it does not do
# what the README says.
set -euo pipefail
cd "$(dirname "$0")/.."
script=$(mktemp)
out=$(mktemp)
trap 'rm -f "$script" "$out"' EXIT
{
	echo 'set -euo pipefail; trap '\''kill ${HOST:-} 2>/dev/null || true; wait'\'' EXIT'
	awk '/^```sh tour$/ {on=1; next} /^```$/ {on=0} on' README.md
} >"$script"
bash "$script" </dev/null >"$out" 2>&1 || { cat "$out"; exit 1; }
cat "$out"
for want in '"message": "Hello, Ada!"' 'created' 'waiting-approval' 'interrupt.resolved' 'run.completed' '"status":"completed"' 'event: '; do
	grep -qF -- "$want" "$out" || { echo "the tour did not print: $want"; exit 1; }
done
echo "the tour works"
