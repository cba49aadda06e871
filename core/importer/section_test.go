package importer

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSection(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"whole", "a: 3\nmodel:\n  optim:\n    lr: 1e-4\n    betas: [0.9, \"${multiply:0.5,${a}}\"]\n    x: ${a}\n    on: True\n    word: 'true'\n    none:\n    lost: ${nowhere}\n    sched: {name: Cosine}\n",
			`{"betas":[0.9,1.5],"lr":0.0001,"none":null,"on":true,"sched":{"name":"Cosine"},"word":"true","x":3}`},
		{"section alone", "name: distributed_fused_adam\nbucket_cap_mb: 25\n", `{"bucket_cap_mb":25,"name":"distributed_fused_adam"}`},
		{"model alone", "num_layers: 2\nhidden_size: 4\noptim: {lr: 1}\n", `{"lr":1}`},
		{"launcher", "training:\n  model:\n    optim: {lr: 1}\n", `{"lr":1}`},
		{"through an interpolation", "model:\n  optim: ${x}\nx: {lr: 2}\n", `{"lr":2}`},
		{"none", "model: {}\n", `null`},
		{"a value", "model: {optim: 3}\n", `null`},
		{"no YAML", "model: [\n", `null`},
		{"empty", "", `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(Section(c.text, "model.optim"))
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
	// One that holds itself twice ends.
	require.NotNil(t, Section("model:\n  optim:\n    a: ${..optim}\n    b: ${..optim}\n", "model.optim"))
}
