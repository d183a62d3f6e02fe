#!/bin/sh
# Runs every fuzz target of the module for the given time each (default 10s).
set -eu
cd "$(dirname "$0")/.."
time=${1:-10s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fuzz() { go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" "$2" </dev/null >"$log" 2>&1; }

# A worker that is in the middle of an input when the time is over can be reported as a
# failure of the target, without an input that fails. Such a target runs once more, and
# then counts; whatever has an input counts at once.
late() { grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input|panic:|testdata/fuzz' "$log"; }

grep -rlE '^func Fuzz[A-Za-z0-9_]+\(' --include='*_test.go' . | while read -r file; do
	dir=$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
		echo "== $dir $target"
		if ! fuzz "$target" "$dir"; then
			cat "$log"
			late && echo "-- the time was over in the middle of an input: once more" && fuzz "$target" "$dir" || { cat "$log"; exit 1; }
		fi
		cat "$log"
	done
done
