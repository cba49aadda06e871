package scenario

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/units"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

const docs = "../../docs/configuration.md"

// TestDocs keeps docs/configuration.md in step with the field table.
func TestDocs(t *testing.T) {
	got := markdown()
	if *update {
		require.NoError(t, os.WriteFile(docs, []byte(got), 0o644))
	}
	want, err := os.ReadFile(docs)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./core/scenario -update rewrites it")
}

// readers names the optimizers that read a field.
func readers(f *Field) string {
	var names []string
	for family := range numFamilies {
		if f.ReadBy&(1<<family) != 0 {
			names = append(names, family.String())
		}
	}
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, "; ")
}

func markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Configuration

Written by `+"`go test ./core/scenario -update`"+` from the field table; do not edit.

A configuration is YAML with NeMo's own keys under trainer, model and model.optim, plus hardware
and framework. A key that is not given has the default below, which is NeMo's or Apex's own. OmegaConf
interpolations work (%s): keys by path, multiply, divide, floor_div and their
like, oc.env with a default, oc.decode and oc.select. Keys of NeMo that change neither layout nor time
are listed on import with the reason; others are listed as unknown.

The framework is model.optim.name: distributed_fused_adam (NeMo on Apex), apex_distributed_fused_adam (Apex's
class by itself), mcore_distributed_optim (Megatron-Core's distributed optimizer) or torch_ddp (PyTorch's
DistributedDataParallel with an Adam on every rank; a name of this program's own). A key has an effect only with
the optimizers that read it; with others it is listed as without effect. What Megatron-Core reads and NeMo has no
key for stands under framework.mcore, named as Megatron-LM's flag.

A text may have 256 KiB. What is simulated is limited too: %s buckets over all stages,
%s fragments on one stage, %s layer passes and messages in the two simulated
steps, %s parameters, 1e18 operations in a pass of one layer, 1e21 in
two steps.
`, "`${.hidden_size}`, `${multiply:4, ${.hidden_size}}`",
		units.Count(MaxBuckets), units.Count(MaxFragments), units.Count(MaxTasks), units.Count(MaxParameters))
	group := NumGroups
	for i := range Fields {
		f := &Fields[i]
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n## %v\n\n| key | value | default | meaning | read by | source |\n| --- | --- | --- | --- | --- | --- |\n", group)
		}
		def := f.Default
		if f.PlainDefault != "" {
			def += "; plain Apex " + f.PlainDefault
		}
		if f.MCoreDefault != "" {
			def += "; Megatron-Core " + f.MCoreDefault
		}
		if f.Optional && f.Default == Null {
			def = "null: " + f.Null
		}
		value := f.Want()
		switch {
		case f.Kind == Choice:
			value = "`" + strings.Join(f.Choices, "`, `") + "`"
		case f.Kind == Bool:
			value = "boolean"
		}
		if f.Optional && f.Kind == Choice {
			value += " or null"
		}
		if f.Optional && f.Default != Null {
			value += " (" + f.Null + ")"
		}
		if f.Unit != "" {
			value += ", in " + f.Unit
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Path, value, def, f.Help, readers(f), f.Source)
	}
	b.WriteString("\n## GPUs and networks\n\n| value | means |\n| --- | --- |\n")
	for i, id := range gpuIDs {
		fmt.Fprintf(&b, "| `hardware.gpu: %s` | %s |\n", id, gpuNames[i])
	}
	for i, id := range networkIDs {
		fmt.Fprintf(&b, "| `hardware.network: %s` | %s |\n", id, networkNames[i])
	}
	b.WriteString("\n## Presets\n\n| name | file |\n| --- | --- |\n")
	for _, p := range Presets() {
		fmt.Fprintf(&b, "| %s | core/scenario/presets/%s.yaml |\n", p.Name, p.ID)
	}
	return b.String()
}
