package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	static  = "web/static"
	program = static + "/app.wasm"
)

//go:embed sw.js
var serviceWorker []byte

// file is one file of the site. Path is relative to its root, with slashes.
type file struct {
	path  string
	data  []byte
	first bool // a first visit loads it
}

// collect returns the files of the site: index.html first, the rest in order of their paths.
func collect(root string) ([]file, error) {
	index, err := os.ReadFile(filepath.Join(root, "index.html"))
	if err != nil {
		return nil, err
	}
	files, index, err := assets(root, index)
	if err != nil {
		return nil, err
	}
	for name, as := range map[string]string{
		"LICENSE":             "LICENSE.txt",
		"THIRD_PARTY_NOTICES": "THIRD_PARTY_NOTICES.txt",
	} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: as, data: data})
	}
	worker, err := offline(files, index)
	if err != nil {
		return nil, err
	}
	files = append(files, file{path: "sw.js", data: worker})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return append([]file{{path: "index.html", data: index, first: true}}, files...), nil
}

// assets returns what lies in web/static. What index names gets the hash of its content in its
// name, in index too; the program gets a .gz beside it, for servers that do not compress.
func assets(root string, index []byte) (files []file, rewritten []byte, err error) {
	entries, err := os.ReadDir(filepath.Join(root, static))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		plain := path.Join(static, e.Name())
		if strings.HasPrefix(plain, program+".") {
			continue // left by an earlier build
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(plain)))
		if err != nil {
			return nil, nil, err
		}
		quoted := []byte(`"` + plain + `"`)
		if !bytes.Contains(index, quoted) {
			files = append(files, file{path: plain, data: data})
			continue
		}
		if path.Ext(plain) == ".css" && bytes.Contains(data, []byte("url(")) {
			return nil, nil, fmt.Errorf("%s: url() names a file by its plain name, which the site does not have; name it in index.html", plain)
		}
		hashed := hashedName(plain, data)
		files = append(files, file{path: hashed, data: data, first: true})
		index = bytes.ReplaceAll(index, quoted, []byte(`"`+hashed+`"`))
		if plain == program {
			packed, err := pack(data)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, file{path: hashed + ".gz", data: packed})
			index, err = fill(index, "bytes", fmt.Sprint(len(data)), "0")
			if err != nil {
				return nil, nil, err
			}
			index, err = fill(index, "gz", hashed+".gz", "")
			if err != nil {
				return nil, nil, err
			}
		}
	}
	if lost := plainName.Find(index); lost != nil {
		return nil, nil, fmt.Errorf("index.html names %s, which is not there; build it first (make wasm)", lost)
	}
	index, err = fill(index, "sw", "sw.js", "")
	return files, index, err
}

// plainName matches a file of web/static without a hash in its name.
var plainName = regexp.MustCompile(`"web/static/[^".]+\.[^".]+"`)

// fill sets a data attribute of index that must stand there with the value old.
func fill(index []byte, name, value, old string) ([]byte, error) {
	empty := fmt.Appendf(nil, `data-%s="%s"`, name, old)
	if bytes.Count(index, empty) != 1 {
		return nil, fmt.Errorf("index.html: want %s once", empty)
	}
	return bytes.Replace(index, empty, fmt.Appendf(nil, `data-%s="%s"`, name, value), 1), nil
}

// hashedName puts a content's hash before the extension: app.wasm, app.0a1b2c3d.wasm.
func hashedName(name string, data []byte) string {
	ext := path.Ext(name)
	return fmt.Sprintf("%s.%s%s", strings.TrimSuffix(name, ext), digest(data), ext)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%x", sum[:4])
}

// offline returns the service worker for this very build.
func offline(files []file, index []byte) ([]byte, error) {
	names := []string{}
	build := sha256.New()
	build.Write(index)
	for _, f := range files {
		if f.first {
			names = append(names, f.path)
			build.Write(f.data)
		}
	}
	slices.Sort(names)
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	worker := bytes.Replace(serviceWorker, []byte(`build = ""`), fmt.Appendf(nil, "build = %q", fmt.Sprintf("%x", build.Sum(nil)[:8])), 1)
	return bytes.Replace(worker, []byte(`files = []`), append([]byte("files = "), list...), 1), nil
}

// pack compresses as gzip -9 does, without name and time.
func pack(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
