package importer

import (
	"strings"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

// wrapper is the key under which a launcher keeps its training file.
const wrapper = "training"

// mountOf says where in NeMo's configuration the root of a document stands: "" for a whole one,
// "training" for a launcher's, else the section that it is.
func mountOf(root *node) string {
	has := func(name string) bool { return root.child(name) != nil }
	switch {
	case has("model"), has("trainer"), has("hardware"), has("framework"):
		return ""
	case has(wrapper) && root.child(wrapper).isMap():
		return wrapper
	}
	const enough = 2 // keys that a section must be recognised by
	for _, mount := range []string{"model.optim", "model"} {
		count := 0
		for _, c := range root.children {
			if _, ok := scenario.ByPath(mount + "." + c.key.Value); ok {
				count++
			}
		}
		if count >= enough {
			return mount
		}
	}
	return ""
}

// detect recognises files of other tools. y is nil if the text is no YAML.
func detect(src *source, y *yaml.Node) (kind Kind, foreign bool) {
	if y != nil && y.Kind == yaml.MappingNode {
		keys := make(map[string]bool, len(y.Content)/2)
		flags := 0
		for i := 0; i+1 < len(y.Content); i += 2 {
			k := y.Content[i]
			keys[k.Value] = true
			if isFlag(k.Value) {
				flags++
			}
		}
		switch {
		case keys[modelArgs], flags >= 2 && 2*flags > len(keys):
			return MegatronYAML, true
		case keys["architectures"], keys["model_type"] && (keys["hidden_size"] || keys["n_embd"] || keys["d_model"]):
			return HuggingFace, true
		}
		return 0, false
	}
	flags := 0
	for n := 1; n <= len(src.lines) && flags < 2; n++ {
		for _, word := range strings.Fields(src.line(n)) {
			if isFlag(strings.TrimLeft(word, "'\"(")) {
				flags++
			}
		}
	}
	return MegatronFlags, flags >= 2
}

// Keys of a model_config.yaml of Megatron-LM's tests.
const (
	modelArgs = "MODEL_ARGS"
	envVars   = "ENV_VARS"
)

// isFlag reports whether a word is a long option, such as --num-layers.
func isFlag(word string) bool {
	name, ok := strings.CutPrefix(word, "--")
	if !ok || name == "" || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	name, _, _ = strings.Cut(name, "=")
	for i := range len(name) {
		if c := name[i]; !(c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return true
}
