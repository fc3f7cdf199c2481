# make run    builds everything and starts server and agent on this machine
# make test   all checks and tests
SHELL := /bin/bash
.DEFAULT_GOAL := build

BIN        := bin/tidemark
GOFUMPT    := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
PAGE_SOURCES := $(shell find web/app/src web/app/public -type f 2>/dev/null) web/app/index.html web/app/package-lock.json web/app/vite.config.ts

export CGO_ENABLED ?= 0

.PHONY: build run test page lint unit system soak bench-nvps clean $(BIN)

build: page $(BIN)

$(BIN):
	go build -trimpath -ldflags "-s -w" -o $@ ./cmd/tidemark

# The page is built only when one of its sources is newer than the result.
page: web/dist/index.html

web/app/node_modules/.package-lock.json: web/app/package.json web/app/package-lock.json
	cd web/app && npm ci --no-audit --no-fund --loglevel=error

web/dist/index.html: web/app/node_modules/.package-lock.json $(PAGE_SOURCES)
	cd web/app && npm run --silent build

run: build
	$(BIN) up

test: lint unit system

lint: page
	@out=$$(go run $(GOFUMPT) -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofumpt-clean:"; echo "$$out"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	cd bench && go vet ./...
	cd web/app && npm run --silent check

# Unit tests run with the race detector, which needs cgo; the binary that is shipped does not. Most crash clones are made without it: it makes
# them eight times as slow.
unit: page
	bash storage/postgres/install-postgresql.sh
	bash storage/postgres/install-timescale.sh
	bash storage/postgres/install-versions.sh
	CGO_ENABLED=1 TIDEMARK_CRASH_CLONES=500 go test -race -timeout 25m $$(go list ./... | grep -v '^tidemark/test/')
	TIDEMARK_CRASH_CLONES=20000 go test -timeout 15m -run 'TestDB_crash$$$$' ./storage/dbengine
	cd bench && go test ./...
	cd web/app && npm test --silent

# Tests of the whole binary: real agents, kill -9, the page in a browser. They install the peers that they need.
system: build
	bash test/compat/install.sh
	bash test/collect/install.sh
	bash test/metrics/install.sh
	bash test/proxy/install.sh
	bash test/e2e/install.sh
	bash test/mongo/install.sh
	bash test/backup/install.sh
	bash test/zabbix/install.sh
	bash test/zabbixdb/install.sh
	bash test/twoservers/install.sh
	bash test/media/install.sh
	TIDEMARK_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 25m $$(go list ./test/... | grep -v '^tidemark/test/conformance$$')
	TIDEMARK_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 15m ./test/conformance
	TIDEMARK_BIN=$(CURDIR)/$(BIN) bash test/e2e/run.sh

# The counted proofs at full size; hours. Write the results with date and commit into docs/reliability.md.
soak: build
	TIDEMARK_CRASH_CLONES=1000000 TIDEMARK_KILLS=10000 TIDEMARK_FAULT_RUNS=100000 TIDEMARK_FULL_DISKS=1000 TIDEMARK_BIT_FLIPS=100000 TIDEMARK_MODEL_ROUNDS=100000 \
	TIDEMARK_RECOMPRESS_CLONES=100000 TIDEMARK_THIN_CLONES=20000 TIDEMARK_CHURN_SECONDS=1800 TIDEMARK_RECOMPRESS_KILLS=200 TIDEMARK_SNAPSHOT_ROUNDS=1000 \
		go test -count=1 -timeout 0 -run 'TestDB_' -v ./storage/dbengine
	TIDEMARK_TRIAL_REPEATS=17 go test -count=1 -timeout 0 -run 'TestRun$$' -v ./storage/dbengine/trial
	TIDEMARK_MIGRATE_ROWS=20000000 go test -count=1 -timeout 0 -run 'TestMigrate_killed' -v ./storage/postgres
	bash test/mongo/install.sh
	TIDEMARK_BIN=$(CURDIR)/$(BIN) TIDEMARK_MONGO_WAVES=3600 go test -count=1 -timeout 0 -run 'TestChurn' -v ./test/mongo
	TIDEMARK_BIN=$(CURDIR)/$(BIN) TIDEMARK_KILLS=10000 go test -count=1 -timeout 0 -v ./test/crash
	bash test/twoservers/install.sh
	TIDEMARK_BIN=$(CURDIR)/$(BIN) TIDEMARK_KILLS=50 TIDEMARK_DATABASE_KILLS=50 go test -count=1 -timeout 0 -v ./test/twoservers
	TIDEMARK_KILLS=50 TIDEMARK_DATABASE_KILLS=50 go test -count=1 -timeout 0 -run 'TestDB_kill|TestShared_' -v ./storage/postgres

# Five nodes under load are replaced, one after another, by ones with another codec: an hour of history at 2,000 values a second each. Results go into docs/benchmarks.md.
.PHONY: test-rolling
test-rolling: build
	TIDEMARK_BIN=$(CURDIR)/$(BIN) TIDEMARK_ROLLING=$${TIDEMARK_ROLLING:-60} go test -count=1 -timeout 0 -run 'TestRolling$$' -v ./test/standby

# The same random input to Debian's Zabbix 6.0 server and to ours: events, values and trends must be equal. About a minute.
.PHONY: conformance
conformance: $(BIN)
	TIDEMARK_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 15m -v ./test/conformance

# The ladder of new values per second, then Zabbix 6.0 with PostgreSQL 15 beside it (as root; COMPARE= leaves that out). Some five minutes;
# results go into docs/benchmarks.md.
bench-nvps: build
	bash bench/nvps.sh

# The engine beside Prometheus' tsdb, VictoriaMetrics' lib/storage and Netdata, one after the other: targets and ratios. Needs root and gcc; half an
# hour. BENCH passes flags, such as BENCH="-values gauge -runs 3"; results go into docs/benchmarks.md.
.PHONY: bench-engine
bench-engine:
	cd bench && CGO_ENABLED=1 go build -o ../bin/bench-engine ./engine && ../bin/bench-engine $(BENCH)

# PostgreSQL: rows a second beside a bare client, at full tables, dropping a day, bytes a value; results go into docs/benchmarks.md.
.PHONY: bench-postgres
bench-postgres:
	bash bench/postgres.sh

# The MongoDB monitor's speed against gopacket and a driver's BSON, in the process's own time: the quickest run, the mean, allocations.
.PHONY: bench-mongo
bench-mongo: $(BIN)
	@go test -run '^$$' -bench '^BenchmarkMongo$$' -benchtime 1s ./sniff | awk '/^BenchmarkMongo/ { sub(/^BenchmarkMongo\//, "", $$1); sub(/-[0-9]+$$/, "", $$1); \
		printf "%-38s %9s ns  mean %9s ns  %s allocations a run\n", $$1, $$3, $$5, $$(NF-1) }'
	@bash bench/mongo-live.sh

# Checks per second and core against real peers.
.PHONY: bench-collect
bench-collect:
	bash bench/collect.sh

clean:
	rm -rf bin web/dist/assets web/dist/index.html
