# Everything here also works by hand; the targets only spare typing.
GO ?= go
export CGO_ENABLED ?= 0

.PHONY: help build test race lint fuzz kill bench scaling long update ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/fermata
	$(GO) build -trimpath -ldflags '-s -w' -o bin/fermata ./cmd/fermata

test: ## what the README says: every test that needs only Go
	$(GO) test ./...

race: ## the tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

lint: ## formatting, vet and staticcheck, at pinned versions
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

fuzz: ## every fuzz target for FUZZTIME (default 60s) each
	./tools/fuzz.sh $(or $(FUZZTIME),60s)

kill: ## 200 SIGKILLs under load
	FERMATA_KILLS=200 $(GO) test -count=1 -timeout 60m ./internal/kill

bench: ## speed of the built binary, as ratios to the raw floor of this disk
	$(GO) run ./tools/bench

scaling: ## what a run costs a PostgreSQL database, and plans on one with four million events
	$(GO) run ./tools/bench -scaling
	FERMATA_EVENTS=$(or $(EVENTS),4000000) $(GO) test -count=1 -timeout 60m -v -run TestWorkDoesNotGrow ./internal/store/postgres

long: ## the long forms of tests that have one (100,000 runs and the like)
	FERMATA_LONG=1 $(GO) test -count=1 -timeout 60m ./...

update: ## rewrite the golden files; review the diff
	$(GO) test ./internal/run ./internal/config -update

ci: ## what continuous integration runs
	./.ci/run
