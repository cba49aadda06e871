package share

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"distopt/core/importer"
	"distopt/core/scenario"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "add golden links that are missing; those that exist are never rewritten")

// The dictionary is part of the format: links made with another one do not open.
func TestDictionaryIsFrozen(t *testing.T) {
	sum := sha256.Sum256([]byte(dict1))
	require.Equal(t, "f8bdbf88321ce5be4d31b74c05fc0dd69904822e69678ff8c7a71e1121d02413", hex.EncodeToString(sum[:]),
		"dict1.txt must not change; a better dictionary is a new version of the format")
	sum = sha256.Sum256([]byte(dict2))
	require.Equal(t, "7abe86892bfacc4a7230cc4efcc5ce2b47847088af418ff9e32e7026a2b135d2", hex.EncodeToString(sum[:]))
	require.LessOrEqual(t, len(dict1)+len(dict2), 32<<10, "the compressor's window")
}

// golden returns the links whose fragments are kept for ever.
func golden(t *testing.T) map[string]*Link {
	links := map[string]*Link{
		"empty":  {},
		"umlaut": {A: Document{Text: "# größer\nmodel: {num_layers: 4}\n", Name: "größer"}},
	}
	for _, p := range scenario.Presets() {
		links["preset-"+p.ID] = &Link{A: Document{Text: p.Text, Preset: p.ID}}
	}
	first := scenario.Presets()[0]
	before, err := importer.SetField(first.Text, "framework.version", "before")
	require.NoError(t, err)
	links["compare"] = &Link{
		A: Document{Text: first.Text, Preset: first.ID, StepTime: 194_200_000}, B: Document{Text: before, Name: "before", Preset: first.ID, StepTime: 196_100_000},
		Both: true, Model: "1.0", View: map[string]string{"tab": "buckets", "zoom": "142,192"},
	}
	links["edits"] = &Link{A: Document{Text: edited(t, first.Text), Preset: first.ID, StepTime: 194_200_000}, Model: "1.0"}
	return links
}

// edited returns a text with five edits.
func edited(t *testing.T, text string) string {
	for _, e := range []scenario.Edit{
		{Path: "model.optim.bucket_cap_mb", Value: "125"}, {Path: "trainer.num_nodes", Value: "4"}, {Path: "model.global_batch_size", Value: "256"},
		{Path: "model.encoder_seq_length", Value: "4096"}, {Path: "model.optim.overlap_param_sync", Value: "false"},
	} {
		var err error
		text, err = importer.SetField(text, e.Path, e.Value)
		require.NoError(t, err)
	}
	return text
}

// Every golden link opens, to what it was made from.
func TestGoldenLinks(t *testing.T) {
	if *update {
		for name, l := range golden(t) {
			file := filepath.Join("testdata", name)
			if _, err := os.Stat(file + ".link"); err == nil {
				continue
			}
			fragment, err := Encode(l)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file+".link", []byte(fragment+"\n"), 0o644))
			data, err := json.MarshalIndent(l, "", " ")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file+".json", append(data, '\n'), 0o644))
		}
	}
	files, err := filepath.Glob("testdata/*.link")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 14)
	for _, file := range files {
		fragment, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := Decode(string(fragment))
		require.NoError(t, err, file)
		data, err := os.ReadFile(strings.TrimSuffix(file, ".link") + ".json")
		require.NoError(t, err)
		var want Link
		require.NoError(t, json.Unmarshal(data, &want))
		require.Equal(t, &want, got, file)
	}
}

func TestRoundTrip(t *testing.T) {
	for name, l := range golden(t) {
		fragment, err := Encode(l)
		require.NoError(t, err, name)
		for _, form := range []string{
			fragment, "#" + fragment, "https://example.org/some/path/?x=1#" + fragment, "#embed=1&" + fragment + "&theme=dark",
			fragment + ").", " " + fragment + "\n",
		} {
			got, err := Decode(form)
			require.NoError(t, err, form)
			require.Equal(t, l, got, name)
		}
		again, err := Encode(l)
		require.NoError(t, err)
		require.Equal(t, fragment, again, "the same bytes each time")
	}
}

// A preset that has changed since the dictionary was made costs a few characters for each change.
func TestLength(t *testing.T) {
	for _, p := range scenario.Presets() {
		l := &Link{A: Document{Text: edited(t, p.Text), Preset: p.ID, StepTime: 194_200_000}, Model: "1.0"}
		fragment, err := Encode(l)
		require.NoError(t, err)
		require.LessOrEqual(t, len(fragment), 100, "%s with five edits", p.ID)
	}
}

// presetsOfMCore are texts that dict2 holds.
func presetsOfMCore(t testing.TB) map[string]string {
	texts := map[string]string{}
	for _, id := range []string{"llama3-8b-mcore", "gpt3-5b-mcore", "mixtral-8x7b-mcore"} {
		b, err := os.ReadFile("../scenario/presets/" + id + ".yaml")
		require.NoError(t, err)
		texts[id] = string(b)
	}
	return texts
}

// The later version is written where it helps, and only there.
func TestVersions(t *testing.T) {
	for name, l := range golden(t) {
		if l.A.Preset != "" && strings.HasSuffix(l.A.Preset, "-mcore") {
			continue
		}
		fragment, err := Encode(l)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(fragment, "c=1."), "%s: %s", name, fragment)
	}
	for id, text := range presetsOfMCore(t) {
		l := &Link{A: Document{Text: edited(t, text), Preset: id, StepTime: 194_200_000}, Model: "1.0"}
		fragment, err := Encode(l)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(fragment, "c=2."), id)
		require.LessOrEqual(t, len(fragment), 110, "%s with five edits", id)
		got, err := Decode(fragment)
		require.NoError(t, err)
		require.Equal(t, l, got)
		_, err = Decode("c=1." + strings.TrimPrefix(fragment, "c=2."))
		require.IsType(t, &Error{}, err, "the versions are not mixed up")
	}
}

// A document with every field goes through a link as it is, and means the same.
func TestEveryField(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, name := range []string{scenario.NeMoAdam, scenario.PlainApex, scenario.MCoreAdam, scenario.TorchDDP} {
		s := scenario.Default(name)
		text := ""
		for i := range scenario.Fields {
			f := &scenario.Fields[i]
			value := f.Get(&s)
			switch {
			case f.Path == "model.optim.name":
			case f.Kind == scenario.Choice:
				value = f.Choices[rng.IntN(len(f.Choices))]
			case f.Kind == scenario.Bool && rng.IntN(2) == 0:
				value = "true"
			case f.Optional:
				value = "3"
			}
			var err error
			text, err = importer.SetField(text, f.Path, value)
			require.NoError(t, err, f.Path)
		}
		fragment, err := Encode(&Link{A: Document{Text: text}})
		require.NoError(t, err)
		got, err := Decode(fragment)
		require.NoError(t, err)
		require.Equal(t, text, got.A.Text)
		require.Equal(t, importer.Read(text).Scenario, importer.Read(got.A.Text).Scenario)
		require.Equal(t, name, importer.Read(got.A.Text).Scenario.Optim.Name)
		require.LessOrEqual(t, len(fragment), 2000)
	}
}

func TestErrors(t *testing.T) {
	good, err := Encode(golden(t)["compare"])
	require.NoError(t, err)
	for _, c := range []struct {
		name, fragment, want string
	}{
		{"empty", "", "This is no link of this program: it has no part that begins with c=1. or c=2."},
		{"another hash", "#%zz", "This is no link of this program: it has no part that begins with c=1. or c=2."},
		{"no version", "c=abc", "This is no link of this program: it has no part that begins with c=1. or c=2."},
		{"version in words", "c=one.abc", "This is no link of this program: it has no part that begins with c=1. or c=2."},
		{"newer", "c=3.abc", "This link was made by a newer version of this program (link format 3; this one reads up to format 2)."},
		{"no code", "c=1.", "This link is cut off: its end is missing."},
		{"sign", good[:20] + "%" + good[20:], `This link is damaged: character 17 of its code is '%', and only letters, digits, - and _ are possible.`},
		{"cut off", good[:len(good)-8], "This link is cut off: its end is missing."},
		{"added", good + "AAAA", "This link is damaged: some of its characters were changed or added."},
		{"too long", "c=1." + strings.Repeat("A", 200_000), "This link is too long: the link has 200004 bytes, at most 100000 are possible."},
		{"bomb", code(t, make([]byte, 20<<20)), "This link is too long: the record has 1048577 bytes, at most 1048576 are possible."},
		{"no text", code(t, nil), "This link does not hold a configuration: there is no text in it."},
		{"no tag", code(t, []byte{0, 0}), "This link does not hold a configuration: a field has no tag."},
		{"beyond the record", code(t, []byte{1, 200}), "This link does not hold a configuration: a field is longer than the record."},
		{"twice", code(t, []byte{1, 0, 1, 0}), "This link does not hold a configuration: a field is given twice."},
		{"bytes", code(t, []byte{1, 1, 0xff}), "This link does not hold a configuration: configuration A is not UTF-8 text."},
		{"step time", code(t, []byte{1, 0, 7, 1, 0x80}), "This link does not hold a configuration: a step time is no number."},
		{"view", code(t, []byte{1, 0, 10, 1, 9}), "This link does not hold a configuration: an entry of the view has no key."},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode(c.fragment)
			require.EqualError(t, err, c.want)
			require.IsType(t, &Error{}, err)
		})
	}
}

// code makes a fragment of any record.
func code(t testing.TB, record []byte) string {
	var b bytes.Buffer
	b.Write(checksum(record))
	w, err := flate.NewWriterDict(&b, 9, []byte(dict1))
	require.NoError(t, err)
	_, err = w.Write(record)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return "c=1." + base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// A later program's tags are skipped.
func TestUnknownTags(t *testing.T) {
	l := golden(t)["compare"]
	record := appendField(nil, 11, []byte("new"))
	record = appendRecord(record, l)
	record = appendField(record, 1<<40, bytes.Repeat([]byte("x"), 100))
	record = appendField(record, 11, nil)
	got, err := Decode(code(t, record))
	require.NoError(t, err)
	require.Equal(t, l, got)
}

func TestEncodeRefuses(t *testing.T) {
	for _, l := range []*Link{
		{A: Document{Text: strings.Repeat("x", MaxText+1)}},
		{A: Document{Name: strings.Repeat("x", MaxName+1)}},
		{A: Document{Text: "\xff"}},
		{View: map[string]string{"k": strings.Repeat("x", MaxSetting+1)}},
	} {
		_, err := Encode(l)
		require.Error(t, err)
	}
	noise := make([]byte, 200_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(' ' + rng.IntN(95))
	}
	_, err := Encode(&Link{A: Document{Text: string(noise)}})
	require.ErrorContains(t, err, "at most 100000 are possible")
}

// Any single change of a character is noticed, or leads to the same link.
func TestEveryChangeIsNoticed(t *testing.T) {
	l := golden(t)["edits"]
	good, err := Encode(l)
	require.NoError(t, err)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := 4; i < len(good); i++ {
		for _, c := range alphabet {
			if byte(c) == good[i] {
				continue
			}
			_, err := Decode(good[:i] + string(c) + good[i+1:])
			require.Error(t, err, "character %d as %c", i, c)
		}
		_, err := Decode(good[:i])
		require.Error(t, err, "%d characters", i)
	}
}

// Opening hostile links stays within 50 ms and 16 MB.
func TestBounds(t *testing.T) {
	hostile := []string{
		code(t, make([]byte, 60<<20)), // inflates without end
		code(t, bytes.Repeat([]byte{11, 0}, MaxInflated/2)),
		code(t, bytes.Repeat([]byte{10, 2, 1, 'k'}, 1000)),
		"c=1." + strings.Repeat("_", MaxFragment-4),
		strings.Repeat("c=1.&", MaxFragment/5),
		strings.Repeat("#", MaxFragment),
	}
	var before, after runtime.MemStats
	for i, fragment := range hostile {
		runtime.ReadMemStats(&before)
		begin := time.Now()
		_, err := Decode(fragment)
		took := time.Since(begin)
		runtime.ReadMemStats(&after)
		require.Error(t, err, "%d", i)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "%d", i)
		require.Less(t, took, 5*time.Second, "%d: a hundred times the bound, for a busy machine", i)
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.link")
	require.NoError(f, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(b))
	}
	f.Add(code(f, []byte{1, 0, 200, 1, 0}))
	f.Fuzz(func(t *testing.T, fragment string) {
		l, err := Decode(fragment)
		if err != nil {
			require.IsType(t, &Error{}, err)
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := Encode(l)
		require.NoError(t, err)
		same, err := Decode(again)
		require.NoError(t, err)
		require.Equal(t, l, same)
	})
}

// FuzzRecord fuzzes what is inside of the checksum.
func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, &Link{A: Document{Text: "a: 1"}, Both: true, View: map[string]string{"a": "b"}}))
	f.Fuzz(func(t *testing.T, record []byte) {
		l, err := parseRecord(record)
		if err != nil {
			return
		}
		same, err := parseRecord(appendRecord(nil, l))
		require.NoError(t, err)
		require.Equal(t, l, same)
	})
}

func BenchmarkDecode(b *testing.B) {
	fragment, err := os.ReadFile("testdata/compare.link")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(string(fragment)); err != nil {
			b.Fatal(err)
		}
	}
}
