package importer

import (
	"slices"
	"strings"

	"distopt/core/scenario"
)

// elsewhere are keys that one might look for under hardware.
var elsewhere = map[string]string{
	"hardware.nodes": "trainer.num_nodes", "hardware.num_nodes": "trainer.num_nodes",
	"hardware.gpus_per_node": "trainer.devices", "hardware.devices": "trainer.devices", "hardware.gpus": "trainer.devices",
	"model.tensor_parallel_size": "model.tensor_model_parallel_size",
	"model.tp":                   "model.tensor_model_parallel_size", "model.pp": "model.pipeline_model_parallel_size",
	"model.vp": "model.virtual_pipeline_model_parallel_size", "model.cp": "model.context_parallel_size",
	"model.mbs": "model.micro_batch_size", "model.gbs": "model.global_batch_size",
}

// known indexes all that is known of paths.
var known = indexKnown()

type knownPaths struct {
	why      map[string]string // no effect, as a value or as a section
	assumed  map[string]*assumption
	own      map[string]bool
	sections map[string]bool // paths above a known key

	names  map[string][]string // of the keys in a section, whose path ends in a dot
	fields map[string][]string // those that are fields
	leaves []string            // names anywhere
	full   map[string]string   // the first path with a name
}

// add lists a path under its name and its sections.
//
//go:noinline
func (k *knownPaths) add(path string) {
	i := strings.LastIndexByte(path, '.') + 1
	section, name := path[:i], path[i:]
	k.names[section] = append(k.names[section], name)
	if k.full[name] == "" {
		k.full[name] = path
		k.leaves = append(k.leaves, name)
	}
	for i, c := range path {
		if c == '.' {
			k.sections[path[:i]] = true
		}
	}
}

func indexKnown() *knownPaths {
	k := &knownPaths{
		why: make(map[string]string), assumed: make(map[string]*assumption),
		own: make(map[string]bool), sections: make(map[string]bool),
		names: make(map[string][]string), fields: make(map[string][]string), full: make(map[string]string),
	}
	for i := range scenario.Fields {
		k.add(scenario.Fields[i].Path)
	}
	for section, names := range k.names {
		k.fields[section] = slices.Clone(names)
	}
	for i := range assumptions {
		k.assumed[assumptions[i].path] = &assumptions[i]
		k.add(assumptions[i].path)
	}
	for _, group := range noEffect {
		for _, path := range strings.Fields(group.keys) {
			path = strings.TrimSuffix(path, ".")
			k.why[path] = group.why
			k.add(path)
		}
	}
	for _, path := range strings.Fields(ownKeys) {
		k.own[path] = true
		k.add(path)
	}
	return k
}

// nearest returns the known key that path is most likely meant to be: a field of the same name
// elsewhere, else one of the same section with a similar name or with its words, else one anywhere.
func (k *knownPaths) nearest(path string) string {
	section, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		section, name = path[:i+1], path[i+1:]
	}
	if there := elsewhere[path]; there != "" {
		return there
	}
	same := k.full[name]
	if _, isField := scenario.ByPath(same); isField && same != path {
		return same
	}
	if near, ok := scenario.Nearest(name, k.names[section]); ok {
		return section + near
	}
	for _, names := range [][]string{k.fields[section], k.names[section]} {
		if near := sameWords(name, names); near != "" {
			return section + near
		}
	}
	if same != "" && same != path {
		return same
	}
	if near, ok := scenario.Nearest(name, k.leaves); ok {
		return k.full[near]
	}
	return k.full[sameWords(name, k.leaves)]
}

// sameWords returns the one name that has all words of name, in their order, and fewest others;
// or whose words name all has. "" if there is none, or more than one.
func sameWords(name string, names []string) string {
	words := strings.Split(strings.ToLower(name), "_")
	if len(words) == 1 && len(name) < 5 { // tp, lr, size: in too many names
		return ""
	}
	near, least, twice := "", 4, false
	for _, n := range names {
		known := strings.Split(strings.ToLower(n), "_")
		if len(known) == 1 || !inOrder(words, known) && !inOrder(known, words) {
			continue
		}
		switch d := max(len(known)-len(words), len(words)-len(known)); {
		case d < least:
			near, least, twice = n, d, false
		case d == least:
			twice = true
		}
	}
	if twice {
		return ""
	}
	return near
}

// inOrder reports whether all words are in others, in their order.
func inOrder(words, others []string) bool {
	for _, o := range others {
		if len(words) > 0 && words[0] == o {
			words = words[1:]
		}
	}
	return len(words) == 0
}
