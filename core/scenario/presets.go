package scenario

import _ "embed" // preset documents

// Preset is a document to start from.
type Preset struct {
	ID   string // stable: links and tests name it
	Name string // as the document says
	Text string
}

//go:embed presets/gpt3-5b-fp8.yaml
var presetGPT35BFP8 string

//go:embed presets/gpt3-5b-bf16.yaml
var presetGPT35B string

//go:embed presets/gpt3-20b-fp8.yaml
var presetGPT320B string

//go:embed presets/gpt3-40b-bf16.yaml
var presetGPT340B string

//go:embed presets/gpt3-175b-fp8.yaml
var presetGPT3175B string

//go:embed presets/llama3-8b-bf16.yaml
var presetLlama38B string

//go:embed presets/llama3-70b-fp8.yaml
var presetLlama370B string

//go:embed presets/gpt2-124m-apex.yaml
var presetGPT2Apex string

//go:embed presets/tiny-fp8.yaml
var presetTiny string

//go:embed presets/gpt3-1t-bf16.yaml
var presetGPT1T string

//go:embed presets/gpt3-5b-mcore.yaml
var presetGPT35BMCore string

//go:embed presets/llama3-8b-mcore.yaml
var presetLlama38BMCore string

//go:embed presets/mixtral-8x7b-mcore.yaml
var presetMixtral string

// Presets lists the presets in the order of the picker; the page opens on the first.
func Presets() []Preset {
	return []Preset{
		{"gpt3-5b-fp8", "GPT-3 5B, FP8", presetGPT35BFP8},
		{"gpt3-5b-bf16", "GPT-3 5B, BF16", presetGPT35B},
		{"gpt3-20b-fp8", "GPT-3 20B, FP8", presetGPT320B},
		{"gpt3-40b-bf16", "GPT-3 40B, BF16", presetGPT340B},
		{"gpt3-175b-fp8", "GPT-3 175B, FP8", presetGPT3175B},
		{"llama3-8b-bf16", "Llama 3 8B, BF16", presetLlama38B},
		{"llama3-70b-fp8", "Llama 3 70B, FP8", presetLlama370B},
		{"gpt3-5b-mcore", "GPT-3 5B, Megatron-Core", presetGPT35BMCore},
		{"llama3-8b-mcore", "Llama 3 8B, Megatron-Core", presetLlama38BMCore},
		{"mixtral-8x7b-mcore", "Mixtral 8x7B, Megatron-Core", presetMixtral},
		{"gpt2-124m-apex", "GPT-2 124M, plain Apex", presetGPT2Apex},
		{"tiny-fp8", "Tiny, FP8", presetTiny},
		{"gpt3-1t-bf16", "GPT 1T, BF16", presetGPT1T},
	}
}
