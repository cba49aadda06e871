package arrays

import (
	"fmt"
	"math"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim"
)

// Checkpoint is the optimizer's state in Apex's format 2: whole parameters, whatever ranks, buckets
// and storage it came from. A run with others takes it up without a change of a bit, but for scaled
// states, whose scales belong to fragments.
type Checkpoint struct {
	Format int              // 2
	Step   int              // steps taken
	Groups []optim.AdamArgs // by parameter group
	Params []ParamState     // by parameter
}

// ParamState is the state of one parameter, in the state's format, or in fp32 if it is scaled.
type ParamState struct{ Param, ExpAvg, ExpAvgSq Tensor }

// Model is what the model's own checkpoint holds: parameters, and the scales of FP8 weights.
type Model struct {
	Params []Tensor
	FP8    []optim.FP8Meta // of FP8 parameters; others have none
}

// Save collects the state of all ranks after steps steps of this control flow.
func (r *Ranks) Save(steps int) (*Checkpoint, error) {
	buckets := r.follow()
	c := &Checkpoint{Format: 2, Step: r.begun + steps, Groups: append([]optim.AdamArgs(nil), r.c.Groups...), Params: make([]ParamState, len(r.c.Params))}
	for p, q := range r.c.Params {
		if q.Numel == 0 {
			continue
		}
		if len(r.refs[p]) == 0 {
			return nil, fmt.Errorf("checkpoint: parameter %d has no fragments yet; save after the first step", p)
		}
		d := buckets[r.refs[p][0].bucket].DTypes.State
		if r.c.Scaled {
			d = dtype.FP32
		}
		n := int(q.Numel)
		c.Params[p] = ParamState{NewTensor(d, n), NewTensor(d, n), NewTensor(d, n)}
	}
	for n := range r.c.Distributed {
		k := &r.ranks[n]
		for id := range buckets {
			b := &buckets[id]
			s := &k.shards[id]
			locals(b, 0, k.position, func(l local) {
				part := c.Params[l.param].slice(l.inParam, l.inParam+l.end-l.start)
				x := make([]float32, l.end-l.start)
				r.mainValues(k, s, b, l, x)
				part.Param.Store(x)
				r.stateValues(s.ExpAvg, l, s.scales(l).ExpAvg, x)
				part.ExpAvg.Store(x)
				r.stateValues(s.ExpAvgSq, l, s.scales(l).ExpAvgSq, x)
				part.ExpAvgSq.Store(x)
			})
		}
	}
	return c, nil
}

func (p ParamState) slice(start, end int) ParamState {
	return ParamState{p.Param.Slice(start, end), p.ExpAvg.Slice(start, end), p.ExpAvgSq.Slice(start, end)}
}

// scales returns those of a fragment, 1 if the state is not scaled.
func (s *Shard) scales(l local) Scales {
	if s.Scales == nil {
		return Scales{1, 1, 1}
	}
	return s.Scales[l.fragment]
}

// stateValues reads a part of a state.
func (r *Ranks) stateValues(t Tensor, l local, scale float32, dst []float32) {
	t.Slice(l.start, l.end).Load(dst)
	if r.c.Scaled {
		optim.Unscale(dst, scale)
	}
}

// mainValues reads main parameters, wherever they are.
func (r *Ranks) mainValues(k *rank, s *Shard, b *bucket.Bucket, l local, dst []float32) {
	switch {
	case b.StoresParams:
		r.stateValues(s.Param, l, s.scales(l).Param, dst)
	case b.StoresRemainders:
		k.params[l.param].Slice(l.inParam, l.inParam+len(dst)).join(dst, s.Remainders.Slice(l.start, l.end))
	default:
		r.modelValues(k, l, dst)
	}
}

// Load takes up a state, with the arguments of its parameter groups. Remainders get the low halves
// of main parameters: the high ones must come with the model.
func (r *Ranks) Load(c *Checkpoint) error {
	buckets := r.follow()
	switch {
	case c.Format != 2:
		return fmt.Errorf("checkpoint: got format %d, want 2", c.Format)
	case len(c.Params) != len(r.c.Params):
		return fmt.Errorf("checkpoint: got %d parameters, want %d", len(c.Params), len(r.c.Params))
	case len(c.Groups) != len(r.c.Groups):
		return fmt.Errorf("checkpoint: got %d parameter groups, want %d", len(c.Groups), len(r.c.Groups))
	}
	for p, q := range r.c.Params {
		st := &c.Params[p]
		for _, t := range []Tensor{st.Param, st.ExpAvg, st.ExpAvgSq} {
			if t.Len() != int(q.Numel) || !t.DType.Float() {
				return fmt.Errorf("checkpoint: got %d %s elements of state for parameter %d, want %d in a floating-point format", t.Len(), t.DType, p, q.Numel)
			}
		}
		if q.Numel > 0 && len(r.refs[p]) == 0 {
			return fmt.Errorf("checkpoint: parameter %d has no fragments yet; place all parameters before", p)
		}
	}
	for n := range r.ranks {
		k := &r.ranks[n]
		for id := range buckets {
			s := &k.shards[id]
			locals(&buckets[id], 0, k.position, func(l local) {
				r.loadFragment(s, l, c.Params[l.param].slice(l.inParam, l.inParam+l.end-l.start))
			})
		}
	}
	r.c.Groups = append([]optim.AdamArgs(nil), c.Groups...)
	r.begun = c.Step
	return nil
}

func (r *Ranks) loadFragment(s *Shard, l local, from ParamState) {
	x := make([]float32, l.end-l.start)
	store := func(to Tensor, from Tensor, scale func(*Scales) *float32) {
		from.Load(x)
		if r.c.Scaled {
			*scale(&s.Scales[l.fragment]) = optim.Rescale(x, to.DType)
		}
		to.Slice(l.start, l.end).Store(x)
	}
	store(s.ExpAvg, from.ExpAvg, func(c *Scales) *float32 { return &c.ExpAvg })
	store(s.ExpAvgSq, from.ExpAvgSq, func(c *Scales) *float32 { return &c.ExpAvgSq })
	if s.Param.Len() > 0 {
		store(s.Param, from.Param, func(c *Scales) *float32 { return &c.Param })
	}
	if s.Remainders.Len() > 0 {
		from.Param.Load(x)
		for i, v := range x {
			_, s.Remainders.Halfs[l.start+i] = dtype.Split(math.Float32bits(v))
		}
	}
}

// Model returns a copy of the model's own state, which is the same on every rank.
func (r *Ranks) Model() *Model {
	m := &Model{Params: make([]Tensor, len(r.c.Params)), FP8: make([]optim.FP8Meta, len(r.c.Params))}
	for p := range m.Params {
		m.Params[p] = r.ranks[0].params[p].Clone()
		m.FP8[p] = copyMeta(r.ranks[0].meta[p])
	}
	return m
}

// SetModel gives every rank the model's state. Main parameters are not touched: those come with the
// optimizer's checkpoint.
func (r *Ranks) SetModel(m *Model) error {
	if len(m.Params) != len(r.c.Params) || len(m.FP8) != len(r.c.Params) {
		return fmt.Errorf("model: got %d parameters, want %d", len(m.Params), len(r.c.Params))
	}
	for p := range m.Params {
		if t := r.ranks[0].params[p]; t.DType != m.Params[p].DType || t.Len() != m.Params[p].Len() {
			return fmt.Errorf("model: got %d %s elements of parameter %d, want %d %s", m.Params[p].Len(), m.Params[p].DType, p, t.Len(), t.DType)
		}
	}
	for n := range r.ranks {
		for p := range m.Params {
			r.ranks[n].params[p].copyBits(m.Params[p])
			r.ranks[n].meta[p] = copyMeta(m.FP8[p])
		}
	}
	return nil
}

func copyMeta(m optim.FP8Meta) optim.FP8Meta {
	m.Amax = append([]float32(nil), m.Amax...)
	return m
}
