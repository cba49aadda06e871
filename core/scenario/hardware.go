package scenario

import (
	"strings"

	"distopt/core/hw"
)

// Hardware that a document gets when it names none.
const (
	DefaultGPU     = "h100"
	DefaultNetwork = "ndr"
)

var (
	gpuIDs, gpuNames, gpuAliases             = hardwareChoices(len(hw.GPUs), func(i int) (string, string) { return hw.GPUs[i].ID, hw.GPUs[i].Name })
	networkIDs, networkNames, networkAliases = hardwareChoices(len(hw.Networks), func(i int) (string, string) { return hw.Networks[i].ID, hw.Networks[i].Name })
)

// hardwareChoices lists the ids of a hardware table, what each is called, and the names as other
// spellings of the ids.
func hardwareChoices(n int, at func(i int) (id, name string)) (ids, names []string, aliases map[string]string) {
	aliases = make(map[string]string, n)
	for i := range n {
		id, name := at(i)
		ids, names = append(ids, id), append(names, name)
		aliases[strings.ToLower(name)] = id
	}
	return ids, names, aliases
}

// gpuHasFP8 reports whether the GPU multiplies in FP8.
func gpuHasFP8(id string) bool {
	g := hw.Lookup(id)
	return g != nil && g.FP8 > 0
}
