package sched

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// place runs p on a fresh engine.
func place(t testing.TB, p *Program) ([]Span, []Time) {
	t.Helper()
	spans, meets := make([]Span, len(p.Tasks)), make([]Time, len(p.Messages))
	require.NoError(t, new(Engine).Run(p, spans, meets))
	return spans, meets
}

// check compares the engine with the reference, or demands a deadlock where the reference stops.
func check(t testing.TB, e *Engine, p *Program) []Span {
	t.Helper()
	spans, meets := make([]Span, len(p.Tasks)), make([]Time, len(p.Messages))
	err := e.Run(p, spans, meets)
	wantSpans, wantMeets := simulate(p)
	if wantSpans == nil {
		var d *Deadlock
		require.ErrorAs(t, err, &d)
		require.NotEmpty(t, d.Waits)
		for i, w := range d.Waits {
			require.Equal(t, w.For, d.Waits[(i+1)%len(d.Waits)].Task, "%v", d)
		}
		return nil
	}
	require.NoError(t, err)
	require.Equal(t, wantSpans, spans)
	require.Equal(t, wantMeets, meets)
	return spans
}

func TestRandomProgramsMatchReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := new(Engine) // reused: nothing may be left over from an earlier program
	ran, stuck := 0, 0
	for range 20000 {
		buf := make([]byte, 400)
		for i := range buf {
			buf[i] = byte(r.Uint32())
		}
		if check(t, e, random(&source{buf})) != nil {
			ran++
		} else {
			stuck++
		}
	}
	require.Greater(t, ran, 5000)
	require.Greater(t, stuck, 1000)
}

func FuzzMatchesReference(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 1, 2, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	e := new(Engine)
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, e, random(&source{data}))
	})
}
