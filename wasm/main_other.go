//go:build !js

package main

import "log"

func main() {
	log.Fatal("this program runs in a browser: build it with GOOS=js GOARCH=wasm, or use `make run`")
}
