package derive

import (
	"encoding/json"
	"sync"

	"distopt/core/scenario"
	"distopt/web/state"
)

type completion struct {
	Path   string `json:"path"`
	Detail string `json:"detail,omitempty"`
	Info   string `json:"info,omitempty"`
}

var completions = sync.OnceValue(func() string {
	list := make([]completion, 0, len(scenario.Fields))
	for i := range scenario.Fields {
		f := &scenario.Fields[i]
		list = append(list, completion{f.Path, f.Want(), f.Help})
	}
	return encode(list)
})

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers always marshal
	}
	return string(text)
}

func editor(read *state.Reading) *Editor {
	e := &Editor{Completions: completions(), Diagnostics: "[]"}
	if read == nil {
		return e
	}
	e.Text = read.Text
	if n := len(read.Diagnostics); n > 0 {
		e.Diagnostics = encode(read.Diagnostics[:min(n, 200)])
	}
	return e
}
