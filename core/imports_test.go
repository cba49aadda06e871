package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module  = "distopt/"
	command = "cmd/distopt" // may do what a command does
)

// packageOrder reads the map of packages in doc.go.
func packageOrder(t *testing.T) []string {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var order []string
	for line := range strings.Lines(file.Doc.Text()) {
		if strings.HasPrefix(line, "\t") {
			order = append(order, strings.Fields(line)[0])
		}
	}
	require.Greater(t, len(order), 10, "the map in doc.go was not found")
	return order
}

// source is a Go file of a package that is built, tests left out.
type source struct {
	name string // from the repository's root
	dir  string // its package's folder from the repository's root
	file *ast.File
	set  *token.FileSet
}

func sources(t *testing.T, root string) (found []source) {
	err := filepath.WalkDir("../"+root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, "_") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(filepath.ToSlash(name), "../")
		found = append(found, source{name, path.Dir(name), file, set})
		return nil
	})
	require.NoError(t, err)
	return found
}

func (s source) imports(t *testing.T) []string {
	var list []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		list = append(list, name)
	}
	return list
}

// Inside core imports point up the list, never down.
func TestImportDirection(t *testing.T) {
	order := packageOrder(t)
	for _, s := range sources(t, "core") {
		own := strings.TrimPrefix(strings.TrimPrefix(s.dir, "core"), "/")
		if own == "" {
			continue // the map itself
		}
		place := slices.Index(order, own)
		require.GreaterOrEqual(t, place, 0, "%s: package %s is not in the map of core/doc.go", s.name, own)
		for _, name := range s.imports(t) {
			if !strings.HasPrefix(name, module) {
				continue
			}
			other, inCore := strings.CutPrefix(name, module+"core/")
			require.True(t, inCore, "%s imports %s: core knows nothing outside core", s.name, name)
			require.Contains(t, order[:place], other, "%s imports %s, which does not stand above %s in core/doc.go", s.name, name, own)
		}
	}
}

// Outside: core, then wasm/bridge, then web, then wasm.
func TestImportsOutsideCore(t *testing.T) {
	may := func(dir, name string) bool {
		name = strings.TrimPrefix(name, module)
		switch {
		case dir == "wasm/bridge":
			return strings.HasPrefix(name, "core/")
		case dir == "web" || strings.HasPrefix(dir, "web/"):
			return strings.HasPrefix(name, "core/") || strings.HasPrefix(name, "web/") || name == "wasm/bridge"
		}
		return true
	}
	for _, root := range []string{"wasm", "web"} {
		if _, err := os.Stat("../" + root); os.IsNotExist(err) {
			continue
		}
		for _, s := range sources(t, root) {
			for _, name := range s.imports(t) {
				if strings.HasPrefix(name, module) {
					require.True(t, may(s.dir, name), "%s imports %s", s.name, name)
				}
			}
		}
	}
}

// forbidden are packages that would let a result depend on more than the scenario.
var forbidden = regexp.MustCompile(`^(os|net|syscall|log|plugin|io/ioutil|runtime/debug|math/rand|crypto/rand|unsafe|C)(/.*)?$`)

// impure are functions of permitted packages that look at the world.
var impure = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// Core is pure: no files, network, clock, randomness or goroutines.
func TestCoreIsPure(t *testing.T) {
	for _, s := range sources(t, "core") {
		if s.dir == "core/"+command {
			continue
		}
		local := map[string]string{} // name in this file: import path
		for _, spec := range s.file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.False(t, forbidden.MatchString(name), "%s imports %s", s.name, name)
			as := path.Base(name)
			if spec.Name != nil {
				as = spec.Name.Name
				require.NotEqual(t, ".", as, "%s imports %s by dot", s.name, name)
			}
			local[as] = name
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine", s.set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(impure[local[x.Name]], n.Sel.Name) {
					t.Errorf("%s: calls %s.%s", s.set.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			case *ast.CallExpr:
				if x, ok := n.Fun.(*ast.Ident); ok && (x.Name == "print" || x.Name == "println") {
					t.Errorf("%s: calls %s", s.set.Position(n.Pos()), x.Name)
				}
			}
			return true
		})
	}
}
