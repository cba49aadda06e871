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
func detect(src *source, y *yaml.Node) (Kind, Diagnostic, bool) {
	refuse := func(kind Kind, line int, what string) (Kind, Diagnostic, bool) {
		col, end := src.whole(line)
		return kind, Diagnostic{Line: line, Col: col, EndCol: end,
			Message: "This is " + what + ". Such files are not imported yet; NeMo YAML is."}, true
	}
	if y != nil && y.Kind == yaml.MappingNode {
		keys := make(map[string]*yaml.Node, len(y.Content)/2)
		flags := 0
		for i := 0; i+1 < len(y.Content); i += 2 {
			k := y.Content[i]
			keys[k.Value] = k
			if isFlag(k.Value) {
				flags++
			}
		}
		switch {
		case keys["MODEL_ARGS"] != nil:
			return refuse(MegatronYAML, keys["MODEL_ARGS"].Line, "a Megatron-LM test's YAML (MODEL_ARGS)")
		case flags >= 2 && 2*flags > len(keys):
			return refuse(MegatronYAML, 1, "a list of Megatron-LM flags")
		case keys["architectures"] != nil || keys["model_type"] != nil && (keys["hidden_size"] != nil || keys["n_embd"] != nil || keys["d_model"] != nil):
			return refuse(HuggingFace, 1, "a Hugging Face config.json")
		}
		return 0, Diagnostic{}, false
	}
	flags, first := 0, 0
	for n := 1; n <= len(src.lines) && flags < 2; n++ {
		for _, word := range strings.Fields(src.line(n)) {
			if isFlag(word) {
				if flags++; first == 0 {
					first = n
				}
			}
		}
	}
	if flags >= 2 {
		return refuse(MegatronFlags, first, "a Megatron-LM command line")
	}
	return 0, Diagnostic{}, false
}

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
