package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func run1(t *testing.T, c Config) (*Session, *Frame) {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	for !s.Done() {
		require.NoError(t, s.Step())
	}
	f, err := s.Frame(0, Watch{}, nil)
	require.NoError(t, err)
	return s, f
}

func TestAllVariants(t *testing.T) {
	for _, m := range []string{Transformer, MLP} {
		c := Default(m)
		all := Variants()
		for i := 0; i < len(all); i += MaxVariants {
			c.Variants = all[i:min(i+MaxVariants, len(all))]
			_, f := run1(t, c)
			for _, v := range f.Variants {
				t.Logf("%s %-16s first %.4f last %.4f (%.0f%%) %s %s\n skipped %d buckets %d agree %+v before %+v state %s", m, v.ID, v.First, v.Last, 100*v.Last/v.First, v.Health, v.Note, v.Skipped, v.Buckets, v.Agree, v.Before, v.State)
			}
		}
	}
}
