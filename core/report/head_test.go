package report_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"distopt/core/report"
)

// requireHead demands that a head is what encoding/json makes of r, and gives r back.
func requireHead(t *testing.T, r *report.Result) {
	t.Helper()
	want, err := json.Marshal(r)
	require.NoError(t, err)
	got, err := r.EncodeHead(nil)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	back, err := report.DecodeHead(got)
	require.NoError(t, err)
	reference := &report.Result{}
	require.NoError(t, json.Unmarshal(want, reference))
	require.Equal(t, reference, back)
}

func TestHeadIsWhatJSONMakesOfAResult(t *testing.T) {
	requireHead(t, &report.Result{})
	for _, c := range []run{preset5B(), {layers: 8, hidden: 1024, heads: 16, tp: 2, pp: 4, vp: 1, dp: 2, micros: 8, cap: 20, newNeMo: true, newApex: true}} {
		r, err := report.Make(c.simulate(t))
		require.NoError(t, err)
		requireHead(t, r)
	}
}

// A field that the head forgets fails here: every field of every struct holds something of its own.
func TestHeadHoldsEveryField(t *testing.T) {
	r := &report.Result{}
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).Tag.Get("json") != "-" {
					fill(v.Field(i))
				}
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0))
			fill(v.Index(1))
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.String:
			v.SetString("text " + strconv.Itoa(n))
		case reflect.Float64:
			v.SetFloat(float64(n) + 0.25)
		case reflect.Uint8:
			v.SetUint(uint64(n % 256))
		case reflect.Uint32:
			v.SetUint(uint64(n))
		default:
			v.SetInt(int64(-n))
		}
	}
	fill(reflect.ValueOf(r).Elem())
	requireHead(t, r)
}

func TestHeadWritesNumbersAndTextAsJSONDoes(t *testing.T) {
	for _, f := range []float64{0, 1, -1, 0.1, 1e-6, 9.99e-7, 1e-9, 1e20, 1e21, 1.5e300, 123456.789, 1979e12} {
		requireHead(t, &report.Result{Figures: report.Figures{MFU: f}})
	}
	for _, s := range []string{"", `"`, `\`, "<&>", "buckets 23–26", "5.6\u202fms", "\u2028", "\n\x00\x7f", "\xff", "日本"} {
		requireHead(t, &report.Result{Name: s, Notes: []report.Note{{Text: s + s}}})
	}
	for _, n := range []int64{0, 1<<63 - 1, -1<<63 + 1} {
		requireHead(t, &report.Result{Figures: report.Figures{BucketSize: n}, Collectives: []report.Collective{}})
	}
}

func TestDecodeHeadRefuses(t *testing.T) {
	good, err := (&report.Result{Notes: []report.Note{{Text: "x"}}}).EncodeHead(nil)
	require.NoError(t, err)
	for n := range good {
		_, err := report.DecodeHead(good[:n])
		require.ErrorContains(t, err, "head: byte ", "%s", good[:n])
	}
	_, err = report.DecodeHead(append(good, ' '))
	require.ErrorContains(t, err, "want the end")
}

func FuzzDecodeHead(f *testing.F) {
	head, err := (&report.Result{
		Stages:      []report.Stage{{Params: []report.Param{{Shape: []int64{2, 3}}}, Buckets: []report.Bucket{{Fragments: []report.Fragment{{}}}}}},
		Works:       []report.Work{{Parts: []report.Part{{Name: "qkv"}}}, {}},
		Collectives: []report.Collective{{Buckets: []int32{1}, Cause: "–"}},
	}).EncodeHead(nil)
	require.NoError(f, err)
	f.Add(head)
	f.Add([]byte(`{"model_version":"\u00e4","name":""}`))
	f.Fuzz(func(t *testing.T, head []byte) {
		r, err := report.DecodeHead(head)
		if err != nil || !utf8.Valid(head) {
			return
		}
		again, err := r.EncodeHead(nil)
		require.NoError(t, err)
		back, err := report.DecodeHead(again)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}
