# Targets that are named like folders (wasm) are phony: without that, make would skip them.
.PHONY: help run wasm editor notices site lint test test-native test-wasm determinism check-site e2e bench golden fuzz shots need clean

PORT ?= 8080
FUZZTIME ?= 30s
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
WASM = GOOS=js GOARCH=wasm
NODE_EXEC = $(CURDIR)/.ci/wasm_exec
# -buildvcs=false: the commit would be part of the bytes, and the same tree must give the same bytes.
# -modfile: go-app without its server (wasm/slim). COOL runs once for an edit at most: without inlining it
# takes 0.14 MB less of the download.
COOL = distopt/web/view distopt/web/derive distopt/web/state distopt/core/importer distopt/core/scenario distopt/core/finding \
	go.yaml.in/yaml/v3 github.com/maxence-charriere/go-app/v9/pkg/app
BUILD = $(WASM) go build -modfile=bin/slim.mod -trimpath -buildvcs=false $(COOL:%=-gcflags=%=-l)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' Makefile

run: wasm ## build and serve the page at http://localhost:8080 (PORT=)
	@go run ./web/devserver -port $(PORT)

wasm:
	@echo "compiling the program to WebAssembly: a minute or two the first time"
	@go run ./wasm/slim
	@$(BUILD) -ldflags='-s -w' -o web/static/app.wasm ./wasm
	@cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" web/static/wasm_exec.js
	@chmod u+w web/static/wasm_exec.js

site: wasm ## build dist/, which any file server can serve under any path, and print its weight
	@echo "writing dist/ and weighing it; brotli -11 takes a minute"
	@go run ./web/site -out dist

test: need lint test-native test-wasm determinism site check-site e2e ## run every test

need:
	@.ci/need chromium node
	@.ci/need --wish firefox

lint: ## check form: gofmt, vet, staticcheck, licences
	@unformatted=$$(gofmt -l core e2e wasm web); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted" >&2; exit 1; }
	go vet ./...
	$(WASM) go vet ./core/... ./wasm/... ./web/...
	@.ci/staticcheck $(STATICCHECK)
	go run ./web/notices -check
	@.ci/editor --check

test-native:
	go test $$(go list ./... | grep -v /e2e$$)

test-wasm: need
	$(WASM) go test -exec '$(NODE_EXEC)' $$(go list ./core/... ./wasm/bridge/ | grep -v /core/cmd/)

determinism: ## compare results of amd64, GOAMD64=v3 and js/wasm, byte for byte
	@.ci/determinism

check-site:
	@.ci/check-site $(BUILD)

e2e: need
	E2E=1 go test -count=1 -timeout 25m ./e2e/

bench: need site ## measure the budgets and print them as a table
	@go run ./e2e/bench

golden: ## rewrite the golden files
	@for p in $$(grep -rl --include='*_test.go' 'flag.Bool("update"' core wasm web | xargs -n1 dirname | sort -u); do go test ./$$p -update || exit 1; done

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' core wasm web | sed 's/:func / /' | while read -r file target; do \
		echo "$$target"; go test ./$$(dirname "$$file") -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; done

shots: site ## take the screenshots in docs/img
	@go run ./e2e/shots

editor: ## bundle the YAML editor again (needs npm)
	@.ci/editor
	@go run ./web/notices

notices: ## write THIRD_PARTY_NOTICES
	go run ./web/notices

clean: ## remove what was built
	rm -rf dist bin web/static/app.wasm web/static/wasm_exec.js web/editor/node_modules
