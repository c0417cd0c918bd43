# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL: # what is started here uses every core by itself

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Only the race detector needs C; `make test RACE=` leaves it off. All else is
# built without, so that one build cache serves the controller, the linter, the
# demo and the control plane.
export CGO_ENABLED := 0

# Debugging information is a quarter of a cold compile. Who wants to debug builds
# with the go command alone.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -gcflags=all=-dwarf=false)
RACE := $(shell command -v $$(go env CC) >/dev/null && echo -race)

# Compilers and linters end soon: collecting their garbage is a fifth of their work.
brief := env GOGC=400

# The linter vets everything at once; here it would be done for each package.
# Nobody debugs the programs of tests: linked without symbols they are made faster.
go_test := go test -vet=off -ldflags='-s -w'
go_test_race := CGO_ENABLED=$(if $(RACE),1,0) $(go_test) $(RACE)

# With the controller that end-to-end tests run; they themselves gain nothing of it.
race_controller := $(if $(RACE),CONTROLLER_RACE=1)

say_no_race := $(if $(RACE),,echo "There is no C compiler, so the race detector stays off.")

# Under the race detector, and with that of changes to caches: reconcilers read from
# them without copying. Whoever changes what is in one makes client-go panic.
watched := env KUBE_CACHE_MUTATION_DETECTOR=true $(race_controller) $(go_test_race) -count=1

# Where tests need no API server. One that starts it all the same fails.
without_apiserver = $$(go list ./... | grep -v -e /internal/controller -e /internal/health/class/job -e /internal/identity -e /test/admission -e /test/e2e -e /test/faults -e /test/site)

# What decides starts no goroutine: instead of the race detector it gets more seeds.
PURE := ./internal/promotion ./internal/coordination/deployments ./internal/coordination/statefulsets

# The reconcilers, admission, and what else is tested on a real API server without Flux.
# Those that take longest come first.
RECONCILERS := $(addprefix ./internal/controller/,rollout statefulsetrollout ...) ./test/admission ./internal/health/class/job ./internal/identity

# What else can have a data race. Those that take longest come first.
RACED := ./test/performance ./test/pace ./test/controlplane/... ./test/demo/... ./test/faults/wire ./cmd/... $$(go list ./internal/... | grep -v -e /controller -e /health/class/job -e /identity -e /promotion -e /coordination)

# What `make test` proves with everything running: each capability once.
E2E := ./test/e2e ./test/site $(addprefix ./test/e2e/,clusters quiet workloads access alerts alone approvals page installation monitoring measurements rollback recovery)

# What `make test-all` adds: what takes long, or goes wrong in ways that are rare. Those
# that take longest come first.
EXTENDED := ./test/faults/abuse $(addprefix ./test/e2e/,workloads crash olderflux shards tenants) ./test/faults/...

# How many packages are tested at a time. They mostly wait.
AT_ONCE ?= 4

# Tools are kept in a folder named for the go.mod that pins them: they are built
# once, and again when that file changes.
checksum = $(firstword $(shell cksum < $(1)))
TOOLS := bin/tools/$(call checksum,hack/tools/go.mod)
LINT := bin/lint/$(call checksum,hack/lint/go.mod)
HELM := bin/helm/$(call checksum,hack/helm/go.mod)
VULNCHECK := bin/vulncheck/$(call checksum,hack/vulncheck/go.mod)
SBOM := bin/sbom/$(call checksum,hack/sbom/go.mod)
COSIGN := bin/cosign/$(call checksum,hack/cosign/go.mod)

# Where known vulnerabilities are looked up.
VULNDB ?= https://vuln.go.dev

# Everything that `make generate` writes. OUT is where to.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go api/coordination/v1/zz_generated.deepcopy.go \
	api/environments/v1alpha1/zz_generated.deepcopy.go \
	config/crd/bases config/coordination/crd/bases config/rbac/role.yaml \
	config/coordination/rbac/role.yaml config/statefulset-rollout/rbac/role.yaml \
	docs/api/v1alpha1/reference.md docs/api/coordination/v1/reference.md \
	docs/api/environments/v1alpha1/reference.md docs/cli/reference docs/cli/schemas docs/messages.md \
	$(addprefix charts/rollout-controller/templates/,crds.yaml rbac.yaml rbac-registry-credentials.yaml rbac-health-workloads.yaml \
		approvals.yaml deploy-user.yaml sign.yaml \
		$(addprefix deploymentcoordination-,crd.yaml rbac.yaml policy.yaml webhook.yaml) statefulsetrollout-rbac.yaml \
		servicemonitor.yaml prometheusrule.yaml dashboard.yaml kubestatemetrics.yaml) \
	$(addprefix charts/kube-deployment-coordinator/templates/,rbac.yaml webhook-rbac.yaml uninstall.yaml) \
	charts/kube-deployment-coordinator-crds/templates/crd.yaml
OUT ?= .

# Where the sources are, for what is made of them and published.
SOURCE ?= https://github.com/fluxrollouts/rollout-controller

# When they were made: what is published of one commit is the same whenever it is made.
created = $$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)

# Where the manifests and the charts are that are published: here, or in PINNED, where
# `make release-pin` puts them with the digest of the image.
FROM ?= .
PINNED ?= bin/pinned

# The chart that is pushed.
CHART ?= rollout-controller

# What `make push-image` builds for.
ARCHITECTURES ?= amd64,arm64

# What `make release-cli` builds, and the folder that it writes to.
PLATFORMS ?= $(foreach os,linux darwin windows,$(os)/amd64 $(os)/arm64)
RELEASE ?= bin/release

# What `make controlplane` builds: all, demo, or names with commas between.
PARTS ?= all

# How long `make fuzz` searches with each test.
FUZZTIME ?= 30s

step := hack/step.sh

# $(call generate_api,package,folder) writes what follows from the types of a
# package below api: deepcopy functions, CRDs, and the reference.
define generate_api
mkdir -p $(OUT)/docs/api/$(1) && \
$(TOOLS)/controller-gen paths=./api/$(1) \
	object:headerFile=hack/boilerplate.go.txt output:object:dir=$(OUT)/api/$(1) \
	crd output:crd:dir=$(OUT)/$(2) && \
$(TOOLS)/crd-ref-docs --log-level=ERROR --renderer=markdown --max-depth=20 --source-path=api/$(1) \
	--config=hack/api-docs/$(or $(3),config).yaml --templates-dir=hack/api-docs/templates \
	--output-path=$(OUT)/docs/api/$(1)/reference.md
endef

.PHONY: help
help: ## Show what can be made.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
demo: ## Watch a release being promoted on a real control plane; DEMO_ARGS are its arguments.
	@$(step) "Building the demo" env GOGC=off GOMEMLIMIT=2GiB go build -buildvcs=false -o bin/demo ./test/demo
	@exec bin/demo $(DEMO_ARGS)

.PHONY: run
run: ## Run the controller against the current kubeconfig context, or an embedded control plane; RUN_ARGS are its flags.
	@go build -buildvcs=false -o bin/run ./test/cmd/run
	@exec bin/run -- $(RUN_ARGS)

.PHONY: kind
kind: ## Install Flux and the controller of this checkout on a new kind cluster, and see a release held. It needs docker, kind and kubectl.
	@hack/kind.sh $(KIND_ARGS)

# The picture is drawn of a whole run, so that it shows the order and the times of one.
.PHONY: docs
docs: ## Build the pages of docs/ as a site in bin/site. It needs Node.
	@VERSION=$(VERSION) hack/site/build.sh bin/site

# story selects the lines of the picture of the README.
story := ^(1.1.0 is|you|registry|NAME|shop|HealthCheck Unhealthy|Rollout (promotes|goes back|1.[01].0 is [IFS]|1.1.0 waits: not))

draw_held := go run ./test/cmd/pictures -command "make demo DEMO_ARGS=--scenario=held" -in bin/held.txt

.PHONY: pictures
pictures: ## Draw the pictures of the README and of the command line from what the demo prints.
	@mkdir -p bin docs/pictures
	@$(MAKE) --no-print-directory demo DEMO_ARGS="--once --scenario=story" > bin/story.txt
	@go run ./test/cmd/pictures -command "make demo DEMO_ARGS=--scenario=story" -only '$(story)' \
		-step "2. Held, approved, baked, rolled back" -in bin/story.txt -out docs/pictures/story.svg
	@$(MAKE) --no-print-directory demo DEMO_ARGS="--once --scenario=held" > bin/held.txt
	@$(draw_held) -step "3. A freeze holds it, too" -out docs/pictures/simulate.svg
	@$(draw_held) -step "4. And a failed check" -out docs/pictures/remedies.svg

##@ Test

.PHONY: check
check: lint verify portable test-unit ## Check what every change needs, in two minutes: format, lint, generated files, tests without an API server.

.PHONY: test
test: check test-controlled ## Check, and test the reconcilers and each capability on a real API server with Flux.

.PHONY: test-all
test-all: vulncheck test-long test-race test-extended ## Test the rest: under the race detector, with faults, tenants, replicas, and what takes long.

.PHONY: test-unit
test-unit: ## Test what needs no API server.
	@$(step) "Unit tests" $(brief) CONTROLPLANE_NO_PARTS=1 $(go_test) -short $(without_apiserver)

.PHONY: test-controlled
test-controlled: ## Test the reconcilers under the race detector, and the end-to-end tests.
	@$(say_no_race)
	@go run ./test/controlplane/cmd/build -parts all
	@$(step) "Reconcilers" $(watched) -short -shuffle=on -p $(AT_ONCE) -timeout 30m $(RECONCILERS)
	@$(step) "End-to-end tests" env $(race_controller) $(go_test) -short -shuffle=on -count=1 -p $(AT_ONCE) -timeout 20m $(E2E)

.PHONY: test-long
test-long: ## Simulate with ten times as many seeds, and build the release of the command line.
	@$(step) "Long simulations" $(go_test) -count=1 -timeout 20m $(PURE) ./internal/registry/fetch -args -seeds=10
	@$(step) "Release of the command line" $(go_test) -count=1 -timeout 30m -run '^TestReleaseOfTheCommandLine$$' ./test/packaging

.PHONY: test-race
test-race: ## Test what else can have a data race under the race detector, and two hundred Rollouts at once.
	@$(say_no_race)
	@go run ./test/controlplane/cmd/build -parts all
	@$(step) "Race detector" $(watched) -shuffle=on -p $(AT_ONCE) -timeout 30m $(RACED)
	@$(step) "Two hundred Rollouts" $(watched) -timeout 20m -run '^TestNothingWritesToTheCachesWhateverPeopleDo$$' ./internal/controller/rollout

.PHONY: test-controlplane
test-controlplane: controlplane ## Test the control plane that the other tests stand on.
	@$(step) "Control plane tests" $(go_test) -timeout 20m ./test/controlplane/...

# REPORT is a folder where each test of a fault stores what it did and saw. These
# tests wait much, for leases and bakes, so several run at a time.
REPORT ?=

.PHONY: test-extended
test-extended: ## Test that promises hold whatever fails, and for whomever: crashes, faults, tenants, shards.
	@go run ./test/controlplane/cmd/build -parts all
	@$(step) "Extended tests" env FAULTS_REPORT=$(abspath $(REPORT)) $(race_controller) $(go_test) -p $(AT_ONCE) -parallel 4 -count=1 -timeout 30m $(EXTENDED)

# RUNS is how often, PACKAGES is what. BUSY is how many processors are kept busy; empty means
# all of them.
RUNS ?= 10
PACKAGES ?= $(sort $(RECONCILERS) $(E2E) $(EXTENDED))

.PHONY: deflake
deflake: ## Run PACKAGES again and again (RUNS), with busy processors and processes that are stopped and woken.
	@go run ./test/controlplane/cmd/build -parts all
	@env $(race_controller) go run ./test/cmd/deflake -runs $(RUNS) -p $(AT_ONCE) $(if $(BUSY),-busy $(BUSY)) -- -vet=off -timeout=60m $(PACKAGES)

# DURATION is how long releases come and go.
DURATION ?= 1h

.PHONY: soak
soak: ## Let releases, failures, gates and Rollouts come and go for DURATION, and compare memory, goroutines and requests at rest.
	@go run ./test/controlplane/cmd/build -parts all
	@SOAK_DURATION=$(DURATION) $(go_test) -count=1 -timeout 0 -v -run '^TestNothingGrows' ./test/faults/soak

# WORDS selects the tests.
WORDS ?=

.PHONY: cases
cases: ## List the tests and their cases that contain all WORDS.
	@go run ./test/cmd/cases $(WORDS)

# TIMED is what is measured.
TIMED ?= $(sort $(RECONCILERS) $(E2E) $(EXTENDED))

.PHONY: timings
timings: ## Measure how long the packages TIMED take, and what CPU time and control planes.
	@go run ./test/controlplane/cmd/build -parts all
	@env $(race_controller) go run ./test/cmd/timings -vet=off -count=1 -p $(AT_ONCE) -timeout 60m $(TIMED)

.PHONY: reliability
reliability: ## Run the tests of faults and write what they saw to bin/reliability.md.
	@rm -rf bin/faults
	@$(MAKE) --no-print-directory test-extended EXTENDED=./test/faults/... REPORT=bin/faults
	@go run ./test/faults/cmd/table -in bin/faults

.PHONY: bench
bench: ## Measure 10,000 Rollouts and the command line, and write bin/performance.md; BENCH_ARGS are its arguments.
	@go run ./test/controlplane/cmd/build -parts etcd,kube-apiserver,kubectl
	@go run -buildvcs=false ./test/performance $(BENCH_ARGS)

.PHONY: fuzz
fuzz: ## Search with each fuzz test for FUZZTIME.
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: controlplane
controlplane: ## Build the parts of the control plane ahead of their use.
	@go run ./test/controlplane/cmd/build -parts $(PARTS)

##@ Check and generate

.PHONY: generate
generate: $(TOOLS) ## Generate deepcopy functions, CRDs, RBAC, the chart's copies of config/, the references of the API and the command line, and its JSON schemas.
	@$(call generate_api,v1alpha1,config/crd/bases)
	@$(call generate_api,coordination/v1,config/coordination/crd/bases)
	@$(call generate_api,environments/v1alpha1,config/crd/bases,environments)
	@$(TOOLS)/controller-gen paths="./internal/controller/rollout;./internal/controller/schedule;./internal/controller/healthcheck;./internal/controller/measurement;./internal/controller/environment;./internal/controller/quarantine" \
		rbac:roleName=manager-role output:rbac:dir=$(OUT)/config/rbac
	@$(TOOLS)/controller-gen paths="./internal/controller/deploymentcoordination;./internal/admission" \
		rbac:roleName=deploymentcoordination-role output:rbac:dir=$(OUT)/config/coordination/rbac
	@$(TOOLS)/controller-gen paths=./internal/controller/statefulsetrollout \
		rbac:roleName=statefulsetrollout-role output:rbac:dir=$(OUT)/config/statefulset-rollout/rbac
	@hack/chart/generate.sh $(TOOLS)/kustomize $(OUT)/charts
	@rm -rf $(OUT)/docs/cli/reference
	@go run -buildvcs=false ./hack/manual $(OUT)/docs/cli/reference markdown
	@go run -buildvcs=false ./hack/manual $(OUT)/docs messages
	@rm -rf $(OUT)/docs/cli/schemas
	@go -C hack/tools run ./schemas $(CURDIR) $(abspath $(OUT))/docs/cli/schemas

.PHONY: verify
verify: $(TOOLS) ## Fail if a generated file or go.mod is not up to date.
	@$(step) "Generated files" hack/verify-generated.sh $(GENERATED)
	@$(step) "Modules" go mod tidy -diff
	@$(step) "Page" hack/web.sh --check

.PHONY: web
web: ## Bundle the page of the command line from web/. Needs Node.
	@hack/web.sh

.PHONY: lint
lint: $(LINT) ## Lint all Go code, tests included.
	@$(step) "Lint" $(brief) $(LINT)/golangci-lint run ./...

# Whoever works on a Mac can compile everything, tests included.
.PHONY: portable
portable: ## Vet all Go code for macOS.
	@$(step) "Code for macOS" $(brief) GOOS=darwin GOARCH=arm64 go vet ./...

.PHONY: vulncheck
vulncheck: $(VULNCHECK) ## Look for known vulnerabilities in what the code calls, if VULNDB can be reached, and for changed modules.
	@$(step) "Modules are what go.sum says" go mod verify
	@$(step) "Known vulnerabilities" hack/vulncheck.sh $(VULNCHECK)/govulncheck $(VULNDB) ./...

.PHONY: fmt
fmt: $(LINT) ## Format all Go code.
	@$(LINT)/golangci-lint fmt ./...

$(TOOLS) $(LINT) $(HELM) $(VULNCHECK) $(SBOM) $(COSIGN): folder = hack/$(notdir $(@D))
$(TOOLS) $(LINT) $(HELM) $(VULNCHECK) $(SBOM) $(COSIGN):
	@$(step) "Building the tools of $(folder), once" go -C $(folder) build -pgo=off -ldflags '-s -w' -o $(CURDIR)/$@.part/ tool >&2
	@mv $@.part $@

##@ Build

.PHONY: build
build: ## Build bin/rollout-controller.
	@$(step) "Building bin/rollout-controller $(VERSION)" \
		go build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/rollout-controller ./cmd/controller

# One program with three names: see internal/cli/verbs/names.go.
.PHONY: build-cli
build-cli: ## Build the command line: bin/flux-rollout, and its names for kubectl.
	@$(step) "Building bin/flux-rollout $(VERSION)" \
		go build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/flux-rollout ./cmd/flux-rollout
	@ln -sf flux-rollout bin/kubectl-rollouts
	@ln -sf flux-rollout bin/kubectl_complete-rollouts

.PHONY: clean
clean: ## Remove everything that was built here.
	@rm -rf bin

##@ Publish

.PHONY: push-image
push-image: ## Push the image of the controller for ARCHITECTURES to REPOSITORY:TAG, with a program of the version TAG.
	@go run -buildvcs=false ./hack/image -repository "$(REPOSITORY)" -tag "$(TAG)" -architectures "$(ARCHITECTURES)" \
		-revision "$$(git rev-parse HEAD)$$(git diff --quiet HEAD || echo -dirty)" -created "$(created)"

.PHONY: push-artifact
push-artifact: ## Push the manifests to REPOSITORY:TAG, as an artifact that Flux installs from.
	@go run -buildvcs=false ./hack/artifact -path "$(FROM)/config" -repository "$(REPOSITORY)" -tag "$(TAG)" -source "$(SOURCE)" \
		-revision "$(TAG)@sha1:$$(git rev-parse HEAD)$$(git diff --quiet HEAD -- config || echo -dirty)" \
		-created "$(created)"

.PHONY: push-chart
push-chart: $(HELM) ## Push the Helm chart CHART to the repository REPOSITORY/CHART.
	@rm -rf bin/chart
	@$(HELM)/helm package $(FROM)/charts/$(CHART) --destination bin/chart >&2
	@go run -buildvcs=false ./hack/archive -created "$(created)" bin/chart/*.tgz
	@TZ=UTC $(HELM)/helm push bin/chart/*.tgz "oci://$(REPOSITORY)" $(HELM_FLAGS) 2>&1 | tee /dev/stderr | \
		awk '/^Digest: / { print "$(REPOSITORY)/$(CHART)@" $$2; found = 1 } END { exit !found }'

.PHONY: release-pin
release-pin: ## Copy the manifests and the charts to PINNED, with the image by its digest DIGEST.
	@[[ "$(DIGEST)" =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "DIGEST is no digest of an image: '$(DIGEST)'." >&2; exit 1; }
	@rm -rf "$(PINNED)" && mkdir -p "$(PINNED)" && cp -r config charts "$(PINNED)"
	@sed -i -E 's/^  newTag: .*/&\n  digest: $(DIGEST)/' "$(PINNED)/config/manager/kustomization.yaml"
	@sed -i -E 's|^annotations:$$|&\n  rollout-controller.kuberik.com/image-digest: $(DIGEST)|' "$(PINNED)"/charts/*/Chart.yaml

.PHONY: release-prepare
release-prepare: ## Name the version TAG wherever one is named, and in the changelog, for the commit before the tag.
	@hack/version.sh set "$(TAG)"

.PHONY: release-check
release-check: ## Fail if anything names another version than TAG, the changelog has no section of it, or the Dockerfile names an image without its digest.
	@hack/version.sh check "$(TAG)"

.PHONY: release-notes
release-notes: ## Print the section of the version TAG in the changelog, whose links lead to the pages of that version.
	@awk -v tag="$(TAG)" '/^## / { printed = $$2 == tag; next } printed && (/./ || some) { print; some = 1 } END { exit !some }' CHANGELOG.md | \
		sed -E 's#\]\(([^:)]+\))#]($(SOURCE)/blob/$(TAG)/\1#g'

.PHONY: release-cli
release-cli: ## Write the command line VERSION for PLATFORMS to RELEASE, with checksums and manifests for krew, Flux and Homebrew.
	@rm -rf bin/man
	@go run -buildvcs=false ./hack/manual bin/man man "$(VERSION)" "$(created)"
	@$(step) "Building the command line $(VERSION) for $(PLATFORMS)" \
		go run -buildvcs=false ./hack/release -version "$(VERSION)" -created "$(created)" -source "$(SOURCE)" \
		-platforms "$(PLATFORMS)" -man bin/man -out "$(RELEASE)"

.PHONY: release-files
release-files: $(TOOLS) $(HELM) $(SBOM) ## Write what a release of VERSION offers for download to bin/release.
	@rm -rf bin/release && mkdir -p bin/release
	@$(TOOLS)/kustomize build $(FROM)/config/default > bin/release/install.yaml
	@$(HELM)/helm package $(dir $(wildcard $(FROM)/charts/*/Chart.yaml)) --destination bin/release
	@go run -buildvcs=false ./hack/archive -created "$(created)" bin/release/*.tgz
	@for program in controller:rollout-controller flux-rollout:flux-rollout; do \
		GOOS=linux GOARCH=amd64 GOFLAGS= $(SBOM)/cyclonedx-gomod app -json -std -noserial -notimestamp \
			-main "cmd/$${program%:*}" -output "bin/release/$${program#*:}_$(VERSION:v%=%).cdx.json" .; \
	done
	@$(MAKE) --no-print-directory release-cli RELEASE=bin/release

# Nothing leaves this machine.
.PHONY: release-rehearsal
release-rehearsal: $(COSIGN) $(HELM) $(TOOLS) $(SBOM) ## Release HEAD as the workflow does, to a registry of the embedded control plane, and verify it as a stranger would.
	@go run ./test/controlplane/cmd/build -parts all
	@$(go_test) -c -o bin/rehearsal ./test/rehearsal
	@cd test/rehearsal && COSIGN=$(CURDIR)/$(COSIGN)/cosign RELEASE_TAG="$(or $(TAG),$(shell sed -n "s/^appVersion: //p" charts/rollout-controller/Chart.yaml))" PLATFORMS="$(PLATFORMS)" ARCHITECTURES="$(ARCHITECTURES)" $(CURDIR)/bin/rehearsal -test.timeout 2h
