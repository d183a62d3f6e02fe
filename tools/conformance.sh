#!/bin/bash
# Starts the built binary on a free port, for a conformance suite, and holds it
# against the protocol from outside; then certifies what was seen with a throwaway
# key, verifies the bundle, and sees that a forged one is refused. Whatever is
# broken or cannot be measured fails.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
host=
stop() { [ -z "$host" ] || { kill "$host" 2>/dev/null || true; wait "$host" 2>/dev/null || true; host=; }; }
trap 'stop; rm -rf "$dir"' EXIT

go build -o "$dir/fermata" ./cmd/fermata
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
FERMATA_BOOTSTRAP_KEY="check-$(random)"
export FERMATA_BOOTSTRAP_KEY FERMATA_API_KEY="$FERMATA_BOOTSTRAP_KEY"
"$dir/fermata" conformance keygen --out "$dir/key" >/dev/null
"$dir/fermata" conformance authority --out "$dir/ca" >/dev/null

serve() {
	: >"$dir/out"
	"$dir/fermata" serve --listen 127.0.0.1:0 --data "$dir/data" "$@" >"$dir/out" 2>>"$dir/err" &
	host=$!
	url=
	for _ in $(seq 100); do
		url=$(grep -o 'http://[0-9.:]*' "$dir/out" | head -n 1) && break
		sleep 0.1
	done
	[ -n "$url" ] || { cat "$dir/out" "$dir/err"; exit 1; }
}

# The first start makes the data, the second tenant in it, and a run; while it is down,
# the run is let go of.
serve
FERMATA_SECOND_API_KEY=$("$dir/fermata" tenants add second --server "$url" --json | sed -n 's/^ *"key": "\(.*\)",$/\1/p')
export FERMATA_SECOND_API_KEY
[ -n "$FERMATA_SECOND_API_KEY" ]
cat >"$dir/past.json" <<'JSON'
{"id":"past","name":"past","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},
 "nodes":[{"id":"only","typeId":"core.noop","name":"only","position":{"x":0,"y":0},"config":{},"inputs":{}}]}
JSON
"$dir/fermata" --server "$url" workflows apply "$dir/past.json" >/dev/null
"$dir/fermata" --server "$url" runs start past --watch >/dev/null 2>&1
past=$("$dir/fermata" --server "$url" runs list --json | grep -o '"runId": *"[^"]*"' | cut -d'"' -f4)
stop
"$dir/fermata" runs prune --older-than 0s --data "$dir/data" >/dev/null
# The suite's receivers are on loopback, and their authority is one of its own. Where
# webhooks have settings of their own, they are told the same, and to give up soon.
flags=(--conformance-seams on --allow-egress 127.0.0.0/8 --egress-ca-file "$dir/ca.pem" --signing-keys "$dir/key.pub.pem")
if "$dir/fermata" serve --help | grep -q -- --allow-webhooks; then
	flags+=(--allow-webhooks 127.0.0.0/8 --webhook-ca "$dir/ca.pem" --webhook-attempts 3 --webhook-backoff 100ms)
fi
serve "${flags[@]}"

code=0
"$dir/fermata" conformance --base-url "$url" --receiver-ca "$dir/ca.key.pem" --expired-run "$past" \
	--certify "$dir/bundle.json" --signing-key "$dir/key.pem" >"$dir/report" || code=$?
grep -vE '^ *(pass|inapplicable) ' "$dir/report"
[ "$code" = 0 ] || { cat "$dir/err"; exit "$code"; }

# 6 means sound evidence that does not certify all that is claimed: this host calls
# loopback, a relaxation, which rules out the profile that webhooks belong to.
code=0
"$dir/fermata" conformance verify "$dir/bundle.json" --base-url "$url" >"$dir/verdict" || code=$?
cat "$dir/verdict"
[ "$code" = 0 ] || [ "$code" = 6 ] || exit 1
grep -q '^signature  attributed' "$dir/verdict"
for profile in openwop-discovery-core openwop-conformance-seams-v2; do
	grep -q "^profile    $profile (self): certified\$" "$dir/verdict"
done
# All of the floor is met; nothing but what the operator of this very test has relaxed
# stands against certifying it.
grep -qE '^  openwop-core-standard +pass$' "$dir/report"
grep -qE '^profile    openwop-core-standard \(self\): not certified: (the operator has relaxed [a-z.-]+(; )?)+$' "$dir/verdict"

refused() {
	code=0
	"$dir/fermata" conformance verify "$@" >/dev/null || code=$?
	[ "$code" = "$want" ] || { echo "verify $* ended with $code, not $want"; exit 1; }
}
want=3 refused "$dir/bundle.json"
sed 's/"artifact-sha256"/"commit"/' "$dir/bundle.json" >"$dir/forged.json"
want=5 refused "$dir/forged.json" --base-url "$url"
sed '0,/"witnessCount": [0-9]*/s//"witnessCount": 99/' "$dir/bundle.json" >"$dir/forged.json"
want=1 refused "$dir/forged.json" --base-url "$url"

# Version 1: a host without it says so, and one with it meets all of it. Nothing may be
# blocked, or left out.
want=2
code=0
"$dir/fermata" conformance --base-url "$url" --target-major 1 >/dev/null 2>"$dir/none" || code=$?
[ "$code" = "$want" ] && grep -q 'does not serve major 1' "$dir/none" || { cat "$dir/none"; exit 1; }
stop
serve "${flags[@]}" --v1 on
code=0
"$dir/fermata" conformance --base-url "$url" --target-major 1 --receiver-ca "$dir/ca.key.pem" >"$dir/report" || code=$?
cat "$dir/report"
[ "$code" = 0 ] || { cat "$dir/err"; exit "$code"; }
grep -qE ', 0 failed, 0 below a SHOULD, 0 blocked, 0 inapplicable$' "$dir/report"
stop
