// Command devserver serves a folder for work on the page: the repository's root or dist/, under
// any prefix, never cached.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

func main() {
	dir := flag.String("dir", ".", "folder to serve")
	port := flag.String("port", "8080", "port on localhost; 0 picks a free one")
	prefix := flag.String("prefix", "/", "path under which the folder appears")
	flag.Parse()
	if err := run(*dir, *port, *prefix); err != nil {
		fmt.Fprintln(os.Stderr, "devserver:", err)
		os.Exit(1)
	}
}

func run(dir, port, prefix string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("localhost", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %s is taken by another program; choose another: make run PORT=8081", port)
	}
	if err != nil {
		return err
	}
	prefix = "/" + strings.Trim(prefix, "/")
	_, bound, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	fmt.Printf("Distopt Playground: http://localhost:%s%s (Ctrl+C ends it)\n", bound, strings.TrimSuffix(prefix, "/")+"/")
	return http.Serve(listener, Handler(dir, prefix))
}
