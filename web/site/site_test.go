package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes a small work tree.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

func small() map[string]string {
	return map[string]string{
		"index.html": `<link href="web/static/style.css"><script src="web/static/boot.js" ` +
			`data-wasm="web/static/app.wasm" data-bytes="0" data-gz="" data-sw=""></script>`,
		"web/static/style.css":          "body {}",
		"web/static/boot.js":            "run()",
		"web/static/app.wasm":           "program",
		"web/static/app.wasm.gz":        "left over",
		"web/static/asked-for-later.js": "later",
		"LICENSE":                       "free",
		"THIRD_PARTY_NOTICES":           "theirs",
	}
}

func TestCollect(t *testing.T) {
	files, err := collect(tree(t, small()))
	require.NoError(t, err)
	paths, first := []string{}, []string{}
	content := map[string]string{}
	for _, f := range files {
		paths, content[f.path] = append(paths, f.path), string(f.data)
		if f.first {
			first = append(first, f.path)
		}
	}
	require.Equal(t, []string{
		"index.html", "LICENSE.txt", "THIRD_PARTY_NOTICES.txt", "sw.js",
		"web/static/app.1310ca2c.wasm", "web/static/app.1310ca2c.wasm.gz", "web/static/asked-for-later.js",
		"web/static/boot." + digest([]byte("run()")) + ".js", "web/static/style." + digest([]byte("body {}")) + ".css",
	}, paths)
	require.Len(t, first, 4, "the page, the program, its script, its style")
	index := content["index.html"]
	require.Contains(t, index, `data-wasm="web/static/app.1310ca2c.wasm" data-bytes="7" data-gz="web/static/app.1310ca2c.wasm.gz" data-sw="sw.js"`)
	require.NotContains(t, index, "style.css")
	require.Contains(t, content["sw.js"], `files = ["web/static/app.1310ca2c.wasm",`)
	require.NotContains(t, content["sw.js"], `build = ""`)
}

func TestCollectRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"url in a style":         {"web/static/style.css", "a { background: url(x.png) }", "names a file by its plain name"},
		"a file that is missing": {"index.html", `"web/static/app.wasm" data-bytes="0" data-gz="" data-sw="" "web/static/lost.js"`, `names "web/static/lost.js"`},
		"no data-gz":             {"index.html", `"web/static/app.wasm" data-bytes="0" data-sw=""`, `want data-gz="" once`},
	} {
		t.Run(name, func(t *testing.T) {
			files := small()
			files[c.file] = c.text
			_, err := collect(tree(t, files))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestReport(t *testing.T) {
	files := []file{{path: "a", data: []byte("abcdefgh"), first: true}, {path: "b", data: []byte("later")}}
	var out strings.Builder
	require.NoError(t, report(&out, files, budget))
	require.Regexp(t, `(?m)^ +8 +\d+ +\d+ +a$`, out.String())
	require.NotRegexp(t, `(?m) b$`, out.String())
	require.ErrorContains(t, report(&out, files, weight{gzip: 1000, brotli: 4}), "at most 1000 and 4 are allowed")
	require.ErrorContains(t, report(&out, files, weight{gzip: 4, brotli: 1000}), "at most 4 and 1000 are allowed")
}
