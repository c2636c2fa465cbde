# Everything here runs on one machine; `make` alone lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO       ?= go
FUZZTIME ?= 30s
CACHE    := $(CURDIR)/.cache

# Pinned tools, built from their modules into .cache. OPA's own tool is of the
# version that go.mod names.
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)
OPA_VERSION       = $(shell $(GO) list -m -f '{{.Version}}' github.com/open-policy-agent/opa)
OPA              := $(CACHE)/bin/opa

# The race detector needs a C compiler. Without one the tests still run, except
# where CI=true says that they must not.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null || command -v gcc 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race)
TEST     := $(GO) test -shuffle=on -timeout=20m $(RACE)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## show the whole chain on real data (writ demo)
	$(GO) run ./cmd/writ demo

.PHONY: build
build: ## build bin/writ
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/writ ./cmd/writ

# A sandbox is made of the machine's python3. Without one the tests that start a
# sandbox are left out, and said to be, except where CI=true says that they must not.
PYTHON_FOUND := $(shell command -v python3 2>/dev/null)
SANDBOXED    := /(cmd/writ|executors/(python|sandbox.*)|internal/(bench|cli|demo|e2e|node))$$
TESTED       := $(if $(PYTHON_FOUND),./...,$$($(GO) list ./... | grep -vE '$(SANDBOXED)'))

.PHONY: test
test: race-or-say-so python-or-say-so ## all tests that need nothing but Go (and python3, where there is one)
	$(TEST) $(TESTFLAGS) $(TESTED)

.PHONY: race-or-say-so
race-or-say-so:
ifeq ($(RACE),)
ifeq ($(CI),true)
	@echo "CI=true wants the race detector, which needs a C compiler: none found (CC, cc, gcc)" >&2; exit 1
else
	@echo "no C compiler found: the tests run without the race detector" >&2
endif
endif

.PHONY: python-or-say-so
python-or-say-so:
ifeq ($(PYTHON_FOUND),)
ifeq ($(CI),true)
	@echo "CI=true wants every test, and sandboxes need python3: none found" >&2; exit 1
else
	@echo "no python3 found: the tests that start a sandbox are left out; install CPython 3.9 or later for them" >&2
endif
endif

.PHONY: integration
integration: ## tests against software of others (brings it into .cache)
	./.ci/integration

.PHONY: lint
lint: $(GOLANGCI) ## vet, golangci-lint
	$(GO) vet ./...
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: $(GOLANGCI) ## format Go (gofumpt, goimports)
	$(GOLANGCI) fmt ./...

$(GOLANGCI):
	@mkdir -p $(CACHE)/bin
	GOBIN=$(CACHE)/bin/tmp $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/bin/tmp/golangci-lint $@

.PHONY: policy
policy: $(OPA) ## Rego: format, strict check, METADATA, tests, decision tables
	$(OPA) fmt --fail --diff policies/writ
	$(OPA) check --strict policies/writ
	$(OPA) test --fail-on-empty policies/writ
	$(GO) test -count=1 -run 'TestRego|TestTables|TestEmbedded' ./policies

$(OPA): go.mod
	GOBIN=$(CACHE)/bin $(GO) install github.com/open-policy-agent/opa@$(OPA_VERSION)
	touch $@

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

.PHONY: bench
bench: ## benchmarks of every package
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: generate
generate: ## documents that are made from the code
	$(GO) generate ./...

.PHONY: check
check: ## everything that CI runs
	./.ci/run

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin .cache
