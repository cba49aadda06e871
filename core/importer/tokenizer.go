package importer

import "strings"

// vocabularies are sizes of tokenizers by the beginning of their name: NeMo's or Megatron-LM's type, or the name
// on the Hugging Face hub. Sources: the published config.json or tokenizer of each.
var vocabularies = []struct {
	prefix string
	size   int
}{
	{"GPT2BPETokenizer", 50257},
	{"Llama2Tokenizer", 32000},
	{"Llama3Tokenizer", 128256},
	{"gpt2", 50257},
	{"openai-community/gpt2", 50257},
	{"EleutherAI/gpt-neox-20b", 50277},
	{"meta-llama/Meta-Llama-3", 128256},
	{"meta-llama/Llama-3", 128256},
	{"meta-llama/Llama-2-", 32000},
	{"mistralai/Mistral-7B-v0.1", 32000},
	{"mistralai/Mistral-7B-v0.3", 32768},
	{"mistralai/Mixtral-8x7B", 32000},
	{"mistralai/Mixtral-8x22B", 32000},
	{"google/gemma-2b", 256000},
	{"google/gemma-7b", 256000},
	{"google/gemma-2-", 256000},
	{"bigcode/starcoder2", 49152},
	{"Qwen/Qwen2", 151936},
	{"Qwen/Qwen3", 151936},
}

// vocabulary returns the size of the tokenizer called name, 0 if it is not known.
func vocabulary(name string) int {
	for _, v := range vocabularies {
		if strings.HasPrefix(name, v.prefix) {
			return v.size
		}
	}
	return 0
}
