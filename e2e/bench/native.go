package main

import (
	"encoding/json"
	"fmt"

	"distopt/core/report"
	"distopt/core/scenario"
	"distopt/wasm/bridge"
)

// opening and largest are the presets that the budgets speak of.
const (
	opening = "gpt3-5b-fp8"
	largest = "gpt3-1t-bf16"
	// megatron is the opening preset's model on Megatron-Core's optimizer; the budgets hold for it too.
	megatron = "gpt3-5b-mcore"
)

func preset(id string) (string, error) {
	for _, p := range scenario.Presets() {
		if p.ID == id {
			return p.Text, nil
		}
	}
	return "", fmt.Errorf("no preset %q", id)
}

// native times whole answers: read, record, price, simulate, report, encode.
func native() ([]row, error) {
	var rows []row
	for _, c := range []struct {
		what, budget, preset string
		runs                 int
	}{
		{"edit to answer, opening preset, native", "16 ms with the draw", opening, runs},
		{"edit to answer, opening preset on Megatron-Core, native", "16 ms with the draw", megatron, runs},
		{"edit to answer, largest preset, native", "", largest, 3},
	} {
		text, err := preset(c.preset)
		if err != nil {
			return nil, err
		}
		request, err := json.Marshal(bridge.Request{Op: bridge.Eval, A: text})
		if err != nil {
			return nil, err
		}
		var simulator bridge.Bridge
		var head []byte
		var spans *report.Spans
		ms, err := timed(c.runs, func() (err error) {
			head, spans, err = simulator.Handle(request, func(float64) {})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.preset, err)
		}
		rows = append(rows, row{c.what, c.budget, fmt.Sprintf("%.1f ms (head %d kB, spans %d kB)", ms, len(head)/1000, spans.Len()*report.SpanBytes/1000)})
	}
	return rows, nil
}
