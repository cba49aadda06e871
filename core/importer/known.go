package importer

import (
	"strings"

	"distopt/core/scenario"
)

// elsewhere are keys that one might look for under hardware.
var elsewhere = map[string]string{
	"hardware.nodes": "trainer.num_nodes", "hardware.num_nodes": "trainer.num_nodes",
	"hardware.gpus_per_node": "trainer.devices", "hardware.devices": "trainer.devices", "hardware.gpus": "trainer.devices",
}

// known indexes all that is known of paths.
var known = indexKnown()

type knownPaths struct {
	why       map[string]string // no effect, as a value or as a section
	assumed   map[string]*assumption
	own, apex map[string]bool
	sections  map[string]bool // paths above a known key

	names  map[string][]string // of the keys in a section, whose path ends in a dot
	leaves []string            // names anywhere
	full   map[string]string   // the first path with a name
}

func indexKnown() *knownPaths {
	k := &knownPaths{
		why: make(map[string]string), assumed: make(map[string]*assumption),
		own: make(map[string]bool), apex: make(map[string]bool), sections: make(map[string]bool),
		names: make(map[string][]string), full: make(map[string]string),
	}
	add := func(path string) {
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
	for i := range scenario.Fields {
		add(scenario.Fields[i].Path)
	}
	for i := range assumptions {
		k.assumed[assumptions[i].path] = &assumptions[i]
		add(assumptions[i].path)
	}
	for _, group := range noEffect {
		for _, path := range strings.Fields(group.keys) {
			path = strings.TrimSuffix(path, ".")
			k.why[path] = group.why
			add(path)
		}
	}
	for _, path := range strings.Fields(mcoreKeys) {
		k.why[path] = "read by " + mcoreOptim + " alone"
		add(path)
	}
	for _, path := range strings.Fields(ownKeys) {
		k.own[path] = true
		add(path)
	}
	for _, path := range strings.Fields(apexKeys) {
		k.apex[path] = true
	}
	return k
}

// nearest returns the known key that path is most likely meant to be: one of the same name
// elsewhere, else one with a similar name in the same section, else anywhere.
func (k *knownPaths) nearest(path string) string {
	section, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		section, name = path[:i+1], path[i+1:]
	}
	if there := elsewhere[path]; there != "" {
		return there
	}
	if full := k.full[name]; full != "" && full != path {
		return full
	}
	if near, ok := scenario.Nearest(name, k.names[section]); ok {
		return section + near
	}
	if near, ok := scenario.Nearest(name, k.leaves); ok {
		return k.full[near]
	}
	return ""
}
