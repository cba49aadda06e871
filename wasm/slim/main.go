// Command slim makes copies of go-app and of the YAML package without what the page never calls but
// their initialisers keep in the program: go-app's server (net/http with TLS, text/template: 1.5 MB,
// 0.4 MB of the download), its encrypted storage, and regular expressions, of which one matches every
// address and two match numbers.
//
// It writes bin/go-app, bin/yaml and bin/slim.mod; the build takes the latter with -modfile. Nothing
// else of them changes, and everything but the program (tests, vet) uses the real ones.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module = "github.com/maxence-charriere/go-app/v9"
	target = "bin/go-app"

	yaml       = "go.yaml.in/yaml/v3"
	yamlTarget = "bin/yaml"
)

// server lists the files of the package app that only its server needs, but for the functions in
// kept, which the page needs.
var (
	server = []string{"cache.go", "http.go", "resource.go", "static.go", "wasm.go"}
	kept   = []string{"isRemoteLocation", "isStaticResourcePath", "parseSrc"}
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "slim:", err)
		os.Exit(1)
	}
}

func run() error {
	source, err := place(module, target)
	if err != nil {
		return err
	}
	for _, pkg := range []string{"pkg/app", "pkg/errors"} {
		if err := copyPackage(filepath.Join(source, pkg), filepath.Join(target, pkg)); err != nil {
			return err
		}
	}
	rest, err := extract(filepath.Join(target, "pkg/app"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(target, "pkg/app/paths.go"), rest, 0o644); err != nil {
		return err
	}
	if err := change(filepath.Join(target, "pkg/app"), appChanges); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(target, "pkg/app/crypto.go"), appFile, 0o644); err != nil {
		return err
	}
	if source, err = place(yaml, yamlTarget); err != nil {
		return err
	}
	if err := copyPackage(source, yamlTarget); err != nil {
		return err
	}
	if err := change(yamlTarget, yamlChanges); err != nil {
		return err
	}
	numbers := bytes.Replace(numbersFile, []byte("package main"), []byte("package yaml"), 1)
	if err := os.WriteFile(filepath.Join(yamlTarget, "numbers.go"), numbers, 0o644); err != nil {
		return err
	}
	return writeModFile()
}

// place empties the folder of a module's copy but for its go.mod, and returns where the module is.
func place(module, target string) (string, error) {
	if err := exec.Command("go", "mod", "download", module).Run(); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	if err := os.RemoveAll(target); err != nil {
		return "", err
	}
	source := strings.TrimSpace(string(dir))
	return source, copyFile(filepath.Join(source, "go.mod"), filepath.Join(target, "go.mod"))
}

// copyPackage copies the Go files of a package, without tests.
func copyPackage(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// extract removes the files of the server from dir and returns a file with what is kept of them.
func extract(dir string) ([]byte, error) {
	files := token.NewFileSet()
	var functions bytes.Buffer
	imports := map[string]bool{}
	missing := slices.Clone(kept)
	for _, name := range server {
		path := filepath.Join(dir, name)
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !slices.Contains(kept, f.Name.Name) {
				continue
			}
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == f.Name.Name })
			functions.WriteString("\n")
			if err := format.Node(&functions, files, f); err != nil {
				return nil, err
			}
			functions.WriteString("\n")
			if err := addImports(imports, file, f); err != nil {
				return nil, err
			}
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s has no functions %q any more", module, missing)
	}
	out := bytes.NewBufferString("package app\n\n")
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(out, "import %q\n", path)
	}
	out.Write(functions.Bytes())
	return format.Source(out.Bytes())
}

// addImports adds the imports of file whose packages f names.
func addImports(imports map[string]bool, file *ast.File, f *ast.FuncDecl) error {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		name := path[strings.LastIndex(path, "/")+1:]
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
					imports[path] = true
				}
			}
			return true
		})
	}
	return nil
}

// writeModFile writes go.mod and go.sum again, with the modules replaced by the copies.
func writeModFile() error {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	if err := copyFile("go.sum", "bin/slim.sum"); err != nil {
		return err
	}
	return os.WriteFile("bin/slim.mod", fmt.Appendf(mod, "\nreplace (\n\t%s => ./%s\n\t%s => ./%s\n)\n", module, target, yaml, yamlTarget), 0o644)
}
