.PHONY: wasm run
PORT ?= 8080

wasm:
	GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o web/static/app.wasm ./wasm
	cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" web/static/

run: wasm
	go run ./web/devserver -port $(PORT)
