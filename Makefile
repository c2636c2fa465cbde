# Everything here runs on one machine; `make` alone lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO       ?= go
FUZZTIME ?= 30s
CAMPAIGN ?= 10m
JOURNALS ?= 10000
CACHE    := $(CURDIR)/.cache

# A pinned tool, built from its module into .cache.
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)

# Sandboxes are made of the machine's python3, 3.9 or later. Where there is none,
# a CPython is built in: a module of 109 MB, brought once.
PYTHON_FOUND := $(shell command -v python3 >/dev/null 2>&1 && python3 -c 'import sys; print("yes" if sys.version_info >= (3, 9) else "")' 2>/dev/null)

# The program, its tests, the linter and the image are compiled with the same flags, so that
# a machine compiles what they share once. nomsgpack leaves out a codec of gin's that nothing
# here asks for.
export CGO_ENABLED := 0
TAGS           := nomsgpack$(if $(PYTHON_FOUND),,$(shell echo ,embedpython))
export GOFLAGS := $(GOFLAGS) -trimpath -tags=$(TAGS)
STRIPPED       := -ldflags='-s -w'

# The compiler and the linker spend a fifth of their time on memory that they need not free, tests
# of nodes a sixth. Tests collect half as often as usual: some bound the memory that they take.
ROOMY          := env GOGC=400

# Tests wait for disks and for each other: two packages for each processor keep it busy, and
# two tests of a package. The packages that take longest begin first.
LONGEST     := ./internal/e2e ./cmd/writ ./internal/node ./router
TWICE       := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
TEST        := $(ROOMY) $(GO) test -exec 'env GOGC=200' -json -shuffle=on -timeout=20m -p=$(TWICE) -parallel=$(TWICE)
COUNTED     = $(GO) run ./internal/testing/testcount $(if $(EVENTS),-events $(EVENTS))

# The race detector needs a C compiler and makes tests four to twelve times slower.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null || command -v gcc 2>/dev/null)
# SQLite is C, translated to Go, with memory of its own: the detector takes half of the time
# that tests spend on it, and would find what SQLite's own authors do. A program with the
# detector sleeps for a second when it ends, unless told otherwise.
RACE     := env CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(TEST) -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false
# The detector does not run packages that start no goroutines (internal/docs looks), nor those
# whose tests do their work in programs that they start; nor bench, which is no part of the program:
PLAIN   := ./state/agents ./agentic/model/offline ./audit ./cmd/writ ./executors/artifacts ./executors/plans ./executors/python ./intents ./intents/catalog ./internal/config ./internal/docs ./internal/eval ./internal/keydir ./internal/layering ./internal/problem ./internal/testing/testcount ./schemas ./state ./storage ./storage/judge
# audit verifies side by side, in one place. These tests show it there:
BESIDE  := ^(TestBundleVerifies|TestGoldenLog)$$
# And of other packages, tests that go through thousands of cases one after another, or that
# kill programs, or attack one node after another: what they would show, the tests beside them
# show.
ATTACKS := ^TestRedTeam
# And turns through a whole node whose kind others show: what differs is decided by one goroutine.
ALIKE   := ^(TestApprovedAsItWas|TestAskIsShown|TestAskSomeFail|TestAskTooMany|TestAskWithPriorContext|TestBadScriptThenGood|TestCapturedRun|TestChildCallWaits|TestConsoleSkill|TestContractViolationReplans|TestCRM|TestDiscovery|TestDropped|TestEditedTurn|TestInsufficientReplansTheRest|TestLargeDataIsTruncated|TestLongAnswers|TestLoopFailsHalfway|TestMemoriesEnd|TestNoSkillCanDoIt|TestOtherBranch|TestOverseerLeavesOneRecord|TestOwn|TestPayloadsAreTyped|TestRejectedTurn|TestRemoteAgentMissing|TestRequestOfARemoteAgent|TestResumeSession|TestRoutingOffline|TestRunKeepsItsGraph|TestSkillOutsideTheStep|TestStrict|TestThirdReplanIsTheLast|TestTransientLost|TestTurnsCarrySummaries|TestUploadsStopAboveTheFloor|TestUsageOfChildAgents)$$
LONG    := ^(FuzzTransitions|TestAllTickets|TestAssumptions|TestCallsBesidePlainLoop|TestCatalogTypes|TestDemo|TestElevenSteps|TestEscapes|TestEvalCRM|TestEvalDesk|TestEveryPair|TestFailpoints|TestFindTools|TestFloodIsCounted|TestFloodOfEndedTask|TestGuardAtEveryByte|TestHybridIsBest|TestIn|TestKeyCopyKills|TestKillBetweenAsks|TestKillBetweenSteps|TestKillDuringIdempotentCall|TestKillDuringOnceCall|TestKillDuringPureCall|TestKillSideBySide|TestKillWhileHeld|TestKillWhileOpen|TestKillWhilePlanning|TestKilledLedgerWriter|TestKilledWriter|TestLongConversation|TestMeasures|TestMemoAdversarial|TestMemoAgrees|TestMemoGenerated|TestMenu|TestMonitorUnderLoad|TestNoLeak|TestPDF|TestPromptOfARunningPlan|TestRandomTransitions|TestRandomWorkflows|TestRecall|TestRefusedEnvelopesLeaveNothing|TestRemoteAgentKilled|TestReplayOfApproved|TestRoutingKilled|TestRunKilled|TestRunsAtRandom|TestRunsLeaveMemory|TestSQL|TestSQLBombs|TestSchemaBombs|TestSeriesStayBounded|TestSnapshotLeftOut|TestStartsFromState|TestThreeProbes|TestUnprivileged|TestUserEraseKills|TestVerifyVectors)$$
RACED    = $(filter-out aob.dev/writ/bench% $(PLAIN:./%=aob.dev/writ/%),$(shell $(GO) list ./...))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## show the whole chain on real data (writ demo)
	bin/writ demo

.PHONY: demo-audit
demo-audit: python-or-say-so ## audit the demo's record, command by command (docs/audit.md)
	$(GO) test ./cmd/writ -run '^TestScripts$$/^audit(_execute)?$$' -count=1 -v

.PHONY: build
build: python-or-say-so ## build bin/writ
	$(ROOMY) $(GO) build $(STRIPPED) -o bin/writ ./cmd/writ

.PHONY: test
test: python-or-say-so ## all tests that need nothing but Go
	@$(COUNTED) $(TEST) $(TESTFLAGS) $(LONGEST) ./...

.PHONY: race
race: python-or-say-so ## what runs side by side, under the race detector
ifeq ($(CC_FOUND),)
	@echo "the race detector needs a C compiler: none found (CC, cc, gcc)" >&2; exit 1
else
	@$(COUNTED) $(RACE) -skip '$(LONG)|$(ATTACKS)|$(ALIKE)' $(TESTFLAGS) $(filter $(LONGEST:./%=aob.dev/writ/%),$(RACED)) $(RACED)
	@$(GO) run ./internal/testing/testcount $(RACE) -run '$(BESIDE)' $(TESTFLAGS) ./audit
endif

.PHONY: python-or-say-so
python-or-say-so:
ifeq ($(PYTHON_FOUND),)
	@echo "no python3 of 3.9 or later found: a CPython is built in (a module of 109 MB, brought once)" >&2
endif

.PHONY: integration
integration: python-or-say-so ## tests against software of others (brings it into .cache)
	@$(COUNTED) ./.ci/integration

.PHONY: opensearch
opensearch: ## serve an OpenSearch on 127.0.0.1:9200 (PORT) until interrupted
	./.ci/opensearch run

.PHONY: lint
lint: $(GOLANGCI) ## vet, golangci-lint
	$(GO) vet -tags=integration,$(TAGS) ./...
	GOOS=linux GOARCH=arm64 $(GO) vet ./executors/sandbox/...
	$(GO) vet -tags=embedpython,$(TAGS) ./executors/sandbox
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: $(GOLANGCI) ## format Go (gofumpt, goimports)
	$(GOLANGCI) fmt ./...

$(GOLANGCI):
	@mkdir -p $(CACHE)/bin
	GOBIN=$(CACHE)/bin/tmp $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/bin/tmp/golangci-lint $@

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (30s)
	@set -eu; found=0; \
	for file in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
	    found=1; echo "== $$target in $$(dirname $$file)"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file); \
	  done; \
	done; \
	test $$found = 1 || { echo "no fuzz target found" >&2; exit 1; }

.PHONY: redteam
redteam: python-or-say-so ## what strangers, users, models and skill servers must not get past a running node
	cd internal/e2e && $(GO) test -count=1 -timeout=10m -run '^TestRedTeam'

.PHONY: campaign
campaign: ## kills, power cuts, lost messages, lying servers, wrong clocks, flipped bits, JOURNALS random journals and a million log lines, again and again for CAMPAIGN (10m each)
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -count=1 -timeout=60m -run '^(TestFailpoints|TestRedTeamBombs)$$' ./internal/e2e
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -count=1 -timeout=20m -run '^TestMemoGenerated$$' ./policies
	$(GO) test -count=20 -timeout=20m -run 'PowerCut' ./storage/sqlite
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -count=1 -timeout=0 -v -run '^TestCampaign$$' ./internal/node
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -count=1 -timeout=0 -v -run '^TestFaults$$' ./internal/e2e/graphs
	WRIT_GRAPHS=500 $(GO) test -count=1 -timeout=0 -v -run '^TestGraphs$$' ./internal/e2e/graphs
	WRIT_RUNS=10000 $(GO) test -count=1 -timeout=0 -v -run '^TestRunsLeaveMemory$$' ./router
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -count=1 -timeout=0 -v -run '^TestManyLines$$' ./internal/logging
	WRIT_JOURNALS=$(JOURNALS) $(GO) test -tags=integration,$(TAGS) -count=1 -timeout=0 -run '^TestIntegrationSecondAuditorOfRandomJournals$$' ./audit
	WRIT_INTENTS=100000 $(GO) test -tags=integration,$(TAGS) -count=1 -timeout=0 -v -run '^TestIntegrationAuditMemory$$' ./bench/measure
	WRIT_INTENTS=100000 $(GO) test -count=1 -timeout=0 -v -run '^TestConsolePages$$' ./internal/e2e
	WRIT_KB_QUERIES=100000 $(GO) test -count=1 -timeout=0 -v -run '^TestNoLeak$$' ./executors/knowledge
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -tags=integration,$(TAGS) -count=1 -timeout=0 -v -run '^TestIntegration(PowerCut|ReadsLeaveNoRecord)$$' ./internal/e2e
	WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -tags=integration,$(TAGS) -count=1 -timeout=0 -v -run '^TestIntegrationServers$$' ./storage/jetstream
	./.ci/opensearch fetch
	eval "$$(./.ci/opensearch env)" && WRIT_CAMPAIGN=$(CAMPAIGN) $(GO) test -tags=integration,$(TAGS) -count=1 -timeout=0 -v -run '^TestIntegration(CellFaults|Decider)$$' ./internal/e2e

.PHONY: bench
bench: ## benchmarks of every package
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: ratios
ratios: ## whole paths beside their baselines, five times; RATIOS="NAME [flags]" for others
	$(GO) run ./bench $(or $(RATIOS),all --runs 5)

.PHONY: eval
eval: python-or-say-so ## model requests, tokens and time of tasks beside a plain tool loop
	@$(GO) test -count=1 -timeout=10m -v -run '^TestCallsBesidePlainLoop$$' ./internal/e2e

.PHONY: generate
generate: ## documents that are made from the code
	$(GO) generate ./...

.PHONY: check
check: ## everything that CI runs
	./.ci/run

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin .cache
