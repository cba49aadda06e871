package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// replacement is a text in a file that must be there once, and what takes its place.
type replacement struct{ file, from, to string }

var appChanges = []replacement{
	{"route.go", `"regexp"`, ""},
	{"route.go", "*regexp.Regexp", "everything"},
	{"route.go", "regexp.MustCompile(pattern)", "compile(pattern)"},
	{"context.go", `"github.com/google/uuid"`, ""},
	{"context.go", "uuid.NewString()", "newID()"},
	{"state.go", `"github.com/google/uuid"`, ""},
	{"state.go", "uuid.NewString()", "newID()"},
}

// appFile takes the place of crypto.go.
var appFile = []byte(`package app

import (
	"errors"
	"strconv"
	"time"
)

var errLeftOut = errors.New("encryption is left out of this build")

func encrypt(string, []byte) ([]byte, error) { return nil, errLeftOut }

func decrypt(string, []byte) ([]byte, error) { return nil, errLeftOut }

func newID() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

// everything is the one pattern of a route that this build knows.
type everything struct{}

func compile(pattern string) everything {
	if pattern != ".*" {
		panic("patterns other than .* are left out of this build: " + pattern)
	}
	return everything{}
}

func (everything) MatchString(string) bool { return true }
`)

var yamlChanges = []replacement{
	{"encode.go", `"regexp"`, ""},
	{"encode.go", "regexp.MustCompile(`" + base60Pattern + "`)", "matcher(matchBase60)"},
	{"resolve.go", `"regexp"`, ""},
	{"resolve.go", "regexp.MustCompile(`" + floatPattern + "`)", "matcher(matchFloat)"},
}

// The patterns that numbers.go stands in for.
const (
	base60Pattern = `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`
	floatPattern  = `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
)

// numbersFile goes into the copy of the YAML package.
//
//go:embed numbers.go
var numbersFile []byte

// change makes replacements in the files of a folder.
func change(dir string, all []replacement) error {
	for _, r := range all {
		path := filepath.Join(dir, r.file)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(data), r.from); n != 1 {
			return fmt.Errorf("%s: got %q %d times, want it once", path, r.from, n)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), r.from, r.to, 1)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
