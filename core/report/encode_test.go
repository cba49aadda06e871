package report

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// someSpans makes spans of a number of stages, all fields in use.
func someSpans(stages, perLane int) *Spans {
	r := rand.New(rand.NewPCG(3, 4))
	s := &Spans{First: []int32{0}}
	for stage := range stages {
		for lane := range NumLanes {
			at := int64(-1000)
			for range perLane {
				s.Start = append(s.Start, at)
				at += r.Int64N(1 << 33)
				s.End = append(s.End, at)
				s.By = append(s.By, int32(r.IntN(len(s.Start)))-1)
				s.Work = append(s.Work, r.Int32())
				s.Micro = append(s.Micro, int32(r.IntN(9)-1))
				s.Group = append(s.Group, r.Int32()-1<<30)
				s.Stage = append(s.Stage, uint16(stage))
				s.Layer = append(s.Layer, int16(r.IntN(200)-1))
				s.Lane = append(s.Lane, lane)
				s.Kind = append(s.Kind, uint8(r.IntN(18)))
				s.Cause = append(s.Cause, uint8(r.IntN(6)))
				s.State = append(s.State, State(r.IntN(3)))
				s.Chunk = append(s.Chunk, int8(r.IntN(4)-1))
			}
			s.First = append(s.First, int32(s.Len()))
		}
	}
	return s
}

func TestSpansSurviveEncoding(t *testing.T) {
	for _, s := range []*Spans{someSpans(1, 1), someSpans(3, 17), someSpans(2, 0)} {
		got, err := DecodeSpans(s.Encode())
		require.NoError(t, err)
		require.Equal(t, s.Encode(), got.Encode())
		if s.Len() > 0 {
			require.Equal(t, *s, got)
		}
	}
	got, err := DecodeSpans(new(Spans).Encode())
	require.NoError(t, err)
	require.Zero(t, got.Len())
}

func TestDecodeSpansRefusesDamage(t *testing.T) {
	whole := someSpans(2, 2).Encode()
	for n := range whole {
		_, err := DecodeSpans(whole[:n])
		require.Error(t, err)
	}
	_, err := DecodeSpans(append(whole, 0))
	require.ErrorContains(t, err, "bytes, want")

	for name, damage := range map[string]func(s *Spans){
		"by":      func(s *Spans) { s.By[1] = int32(s.Len()) },
		"order":   func(s *Spans) { s.Start[1] = s.Start[0] - 1 },
		"length":  func(s *Spans) { s.End[0] = s.Start[0] - 1 },
		"lane":    func(s *Spans) { s.Lane[0]++ },
		"stage":   func(s *Spans) { s.Stage[0]++ },
		"first":   func(s *Spans) { s.First[1] = 99 },
		"cover":   func(s *Spans) { s.First[len(s.First)-1]-- },
		"missing": func(s *Spans) { s.First = s.First[:2] },
	} {
		s := someSpans(2, 2)
		damage(s)
		_, err := DecodeSpans(s.Encode())
		require.ErrorContains(t, err, "spans: ", name)
	}
}

func FuzzDecodeSpans(f *testing.F) {
	f.Add([]byte{})
	f.Add(new(Spans).Encode())
	f.Add(someSpans(1, 2).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSpans(b)
		if err == nil {
			require.Equal(t, b[:12], s.Encode()[:12])
			require.Equal(t, b[spansHeader:], s.Encode()[spansHeader:])
		}
	})
}

func BenchmarkSpans(b *testing.B) {
	s := someSpans(8, 6000) // 480,000
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			s.Encode()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Len()), "ns/span")
	})
	block := s.Encode()
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeSpans(block); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Len()), "ns/span")
	})
}
