package apex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"distopt/core/bucket"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/units"
)

// ledger is a Runtime that holds an optimizer to what any correct one does: who touches a bucket
// has waited for whoever touched it before on another stream, and every bucket goes through each
// stage of a step once.
type ledger struct {
	t    testing.TB
	what string
	l    *Layout

	issued  map[optim.Stream]int    // effects on a stream so far
	seen    map[[2]optim.Stream]int // effects of the second that the first has waited for
	buckets []entry
	noSync  bool
	finite  bool
	skipped bool

	log          []string
	norms, amaxs int
	updated      units.Elems // by Adam on this rank, in this step
	copied       []units.Elems
}

// entry is what happened to one bucket in this step.
type entry struct {
	filled                     int // effect on Main that last added to it
	reduce, keep, update, cast int // counts
	gather                     int
	launched                   at // its reduction
	redundant                  int
	gathered                   at
	written                    int // effect on Main that last wrote its shard
	inFlight                   bool
	clean                      bool // its memory is there and holds only gradients not yet reduced
}

// at is a place in a stream.
type at struct {
	stream optim.Stream
	n      int
}

func newLedger(t testing.TB, l *Layout, what string) *ledger {
	g := &ledger{t: t, what: what, l: l, issued: map[optim.Stream]int{}, seen: map[[2]optim.Stream]int{}, finite: true}
	g.copied = make([]units.Elems, len(l.Params))
	return g
}

func (g *ledger) require(ok bool, format string, args ...any) {
	g.t.Helper()
	if !ok {
		require.FailNow(g.t, fmt.Sprintf(format, args...), g.what)
	}
}

func (g *ledger) bucket(id bucket.ID) *entry {
	for len(g.buckets) <= int(id) {
		g.buckets = append(g.buckets, entry{clean: g.l.Options.ContiguousGradBuffer})
	}
	return &g.buckets[id]
}

func (g *ledger) issue(s optim.Stream, format string, args ...any) at {
	g.issued[s]++
	g.log = append(g.log, fmt.Sprintf(format, args...))
	return at{s, g.issued[s]}
}

// waited says whether a stream runs after an effect.
func (g *ledger) waited(s optim.Stream, a at) bool {
	return a.n == 0 || a.stream == s || g.seen[[2]optim.Stream{s, a.stream}] >= a.n
}

func (g *ledger) Wait(waiter, on optim.Stream) {
	g.require(waiter != on, "%d waits for itself", waiter)
	g.seen[[2]optim.Stream{waiter, on}] = g.issued[on]
	g.log = append(g.log, fmt.Sprintf("%d waits %d", waiter, on))
}

func (g *ledger) ZeroGrad(*optim.Zero) {
	g.issue(optim.Main, "zero grad")
	for id := range g.buckets {
		b := &g.buckets[id]
		g.require(!b.inFlight, "bucket %d is cleared while it is reduced", id)
		*b = entry{gather: b.gather, gathered: b.gathered, written: b.written, clean: g.l.Options.ContiguousGradBuffer}
	}
}

func (g *ledger) AccumulateGrad(a *optim.Accumulation) {
	g.require(len(a.Params) == len(a.Paths), "%d paths of %d parameters", len(a.Paths), len(a.Params))
	for _, id := range a.Zeroed {
		b := g.bucket(id)
		g.require(!b.clean, "bucket %d loses gradients", id)
		b.clean = true
	}
	for i, p := range a.Params {
		here := g.issue(optim.Main, "add p%d by %d", p, a.Paths[i])
		for _, ref := range g.l.Fragments[p] {
			b := g.bucket(ref.Bucket)
			g.require(!b.inFlight, "p%d is added to bucket %d while it is reduced", p, ref.Bucket)
			g.require(b.clean, "p%d is added to what is in bucket %d", p, ref.Bucket)
			b.filled = here.n
		}
	}
}

func (g *ledger) members(c *optim.Collective, shard bool, visit func(id bucket.ID, b *entry)) {
	g.require(c.Stream != optim.Main, "a collective of buckets on the compute stream")
	var elems units.Elems
	var bytes units.Bytes
	for _, m := range c.Members {
		b := &g.l.Buckets[m.Bucket]
		want := b.Size
		if shard {
			want = b.Shard
		}
		g.require(m.Elems == want, "bucket %d: %d elements, want %d", m.Bucket, m.Elems, want)
		elems += m.Elems
		bytes += bytesOf(m.Elems, m.DType)
		visit(m.Bucket, g.bucket(m.Bucket))
	}
	g.require(elems == c.Elems && bytes == c.Bytes, "sizes of the group do not add up")
}

func (g *ledger) ReduceScatter(c *optim.Collective) {
	here := g.issue(c.Stream, "reduce-scatter %v", ids(c))
	g.require(!g.noSync, "a reduce-scatter under no_sync")
	g.require(len(c.Members) > 0, "a reduce-scatter of nothing")
	g.members(c, false, func(id bucket.ID, b *entry) {
		g.require(!b.inFlight, "bucket %d is reduced twice at a time", id)
		g.require(g.waited(c.Stream, at{optim.Main, b.filled}), "bucket %d is reduced before its gradients are there", id)
		b.inFlight, b.launched = true, here
		b.reduce++
	})
}

func (g *ledger) AllReduceShards(c *optim.Collective) {
	here := g.issue(c.Stream, "all-reduce %v", ids(c))
	g.require(!g.noSync, "an all-reduce under no_sync")
	g.members(c, true, func(id bucket.ID, b *entry) {
		g.require(b.inFlight || g.l.Options.Distributed == 1, "bucket %d: its shard is reduced before the bucket", id)
		b.inFlight, b.launched = true, here
		b.redundant++
	})
}

func (g *ledger) KeepShards(k *optim.Kept) {
	g.issue(optim.Main, "keep %v add %v zero %v", k.Stored, k.Added, k.Zeroed)
	for _, list := range [][]bucket.ID{k.Stored, k.Added, k.Zeroed} {
		g.require(slices.IsSorted(list), "%v is not ascending", list)
	}
	for _, id := range slices.Concat(k.Stored, k.Added) {
		b := g.bucket(id)
		g.require(g.waited(optim.Main, b.launched), "bucket %d is kept before it is reduced", id)
		b.inFlight, b.clean = false, false
		b.keep++
	}
	for _, id := range k.Stored {
		g.require(g.bucket(id).keep == 1, "bucket %d overwrites its shard", id)
	}
	for _, id := range k.Added {
		g.require(g.bucket(id).keep > 1, "bucket %d is added to nothing", id)
	}
	for _, id := range k.Zeroed {
		g.require(g.bucket(id).keep == 0, "bucket %d loses its shard", id)
		g.bucket(id).keep++
	}
}

func (g *ledger) AllReduceGrads(r *optim.GradReduction) {
	g.issue(optim.Main, "all-reduce grads %v over %v", r.Params, r.Group)
	for _, p := range r.Params {
		for _, ref := range g.l.Fragments[p] {
			b := g.bucket(ref.Bucket)
			g.require(b.reduce+b.redundant == 0, "p%d is added up after bucket %d was reduced", p, ref.Bucket)
			b.filled = g.issued[optim.Main]
		}
	}
}

func (g *ledger) LocalNorm(n *optim.Norm) {
	g.issue(optim.Main, "norm")
	for id := range g.l.Buckets {
		g.require(g.bucket(bucket.ID(id)).keep > 0, "norm without bucket %d", id)
	}
	g.require(n.Params != nil || len(n.Buckets) == len(g.l.Buckets), "norm of %d buckets", len(n.Buckets))
}

func (g *ledger) AllReduceNorm(*optim.Reduction) { g.norms++; g.issue(optim.Main, "all-reduce norm") }
func (g *ledger) Clip(float64)                   { g.issue(optim.Main, "clip") }
func (g *ledger) CheckFinite() bool              { g.skipped = !g.finite; return g.finite }

func (g *ledger) Adam(u *optim.Update) {
	here := g.issue(optim.Main, "adam %v", u.Buckets)
	for _, id := range u.Buckets {
		b := g.bucket(id)
		g.require(b.keep > 0 && !b.inFlight, "bucket %d is updated without its gradients", id)
		b.update++
		b.written = here.n
		b.gather = 0
	}
	for _, l := range u.Launches {
		g.require(l.Tensors > 0 && l.Elems > 0, "an empty kernel")
		want := 5
		if l.Remainders {
			want = 6
		}
		g.require(len(l.Operands) == want, "%d operands", len(l.Operands))
		g.updated += l.Elems
	}
}

func (g *ledger) Cast(c *optim.Cast) {
	here := g.issue(optim.Main, "cast %v", c.Buckets)
	for _, f := range c.FP8 {
		g.require(slices.Contains(c.Buckets, f.Bucket), "a cast in bucket %d", f.Bucket)
	}
	for _, id := range c.Buckets {
		b := g.bucket(id)
		g.require(b.update > 0, "bucket %d is cast before its update", id)
		b.cast++
		b.written = here.n
	}
}

// Apex waits for streams and does not scale by tokens.
func (g *ledger) WaitCall(_, _ optim.Stream, _ int) { g.t.Error("wait for one call") }
func (g *ledger) ScaleGrads(*optim.GradScaling)     { g.t.Error("gradients scaled by tokens") }

func (g *ledger) UpdateScaleInv(*optim.Reduction) { g.issue(optim.Main, "scale_inv") }
func (g *ledger) AllReduceAmax(*optim.Reduction)  { g.amaxs++; g.issue(optim.Main, "all-reduce amax") }

func (g *ledger) AllGather(c *optim.Collective) {
	here := g.issue(c.Stream, "all-gather %v", ids(c))
	g.members(c, false, func(id bucket.ID, b *entry) {
		g.require(g.waited(c.Stream, at{optim.Main, b.written}), "bucket %d is gathered before its update", id)
		b.gather++
		b.gathered = here
		g.require(b.gather == 1, "bucket %d is gathered twice", id)
	})
}

func (g *ledger) UseParams(u *optim.ParamUse) {
	g.issue(optim.Main, "use %v", u.Copies)
	for _, c := range u.Copies {
		b := g.bucket(c.Bucket)
		g.require(b.gather == 1 || g.l.Options.Distributed == 1, "p%d is read from bucket %d, which nobody gathered", c.Param, c.Bucket)
		g.require(g.waited(optim.Main, b.gathered), "p%d is read from bucket %d before it is gathered", c.Param, c.Bucket)
		g.copied[c.Param] += units.Elems(c.N)
	}
}

func ids(c *optim.Collective) []bucket.ID {
	var list []bucket.ID
	for _, m := range c.Members {
		list = append(list, m.Bucket)
	}
	return list
}

// afterStep checks that each bucket was reduced and updated once, and reads what was gathered if
// nothing is left to the next forward pass.
func (g *ledger) afterStep(s *Sharded) {
	o := &g.l.Options
	for id := range g.l.Buckets {
		b := g.bucket(bucket.ID(id))
		if o.Distributed > 1 {
			g.require(b.reduce == 1, "bucket %d was reduced %d times", id, b.reduce)
		}
		if o.Redundant > 1 {
			g.require(b.redundant == 1, "bucket %d was reduced %d times over the redundant group", id, b.redundant)
		}
		g.require(b.update == 1, "bucket %d was updated %d times", id, b.update)
		g.require(s.GradStatus(bucket.ID(id)) == optim.GradReady, "bucket %d is left %v", id, s.GradStatus(bucket.ID(id)))
	}
	want := units.Elems(0)
	for _, b := range g.l.Buckets {
		for _, f := range b.Fragments {
			if r, ok := Local(f, b.Shard, s.c.Rank); ok {
				want += r.Shard.Len()
			}
		}
	}
	g.require(g.updated == want, "%d elements were updated, want %d", g.updated, want)
	g.updated = 0
	if !o.OverlapParamSync || o.Distributed == 1 {
		g.afterUse(s)
	}
}

// afterUse checks that every parameter has its new values and no bucket is left.
func (g *ledger) afterUse(s *Sharded) {
	for id := range g.l.Buckets {
		if g.l.Options.Distributed > 1 {
			g.require(g.bucket(bucket.ID(id)).gather == 1, "bucket %d was gathered %d times", id, g.bucket(bucket.ID(id)).gather)
		}
		g.require(s.ParamStatus(bucket.ID(id)) == optim.ParamConsumed, "bucket %d is left %v", id, s.ParamStatus(bucket.ID(id)))
	}
	for p := range g.copied {
		g.require(g.copied[p] >= g.l.Params[p].Numel, "%d elements of p%d were copied, want %d", g.copied[p], p, g.l.Params[p].Numel)
		g.copied[p] = 0
	}
}

// trainer runs training steps of a stage as NeMo and Megatron do, every model chunk in turn.
type trainer struct {
	s     *Sharded
	g     *ledger
	stage *model.Stage
	r     *rand.Rand
	batch bool // hooks of a module at once
	steps int
}

func (tr *trainer) step(microbatches int) {
	s, g := tr.s, tr.g
	s.ZeroGrad()
	for m := range microbatches {
		last := m == microbatches-1
		if tr.stage.PP == 1 || m == 0 {
			tr.noSync(!last || tr.stage.PP > 1)
		}
		for i := range tr.stage.Modules {
			for _, p := range tr.stage.Modules[i].Params {
				s.PreForward(p)
			}
		}
		if tr.steps > 0 && m == 0 && g.l.Options.OverlapParamSync && g.l.Options.Distributed > 1 && !g.skipped {
			g.afterUse(s)
		}
		for i := len(tr.stage.Modules) - 1; i >= 0; i-- {
			params := slices.Clone(tr.stage.Modules[i].Params)
			tr.r.Shuffle(len(params), func(i, j int) { params[i], params[j] = params[j], params[i] })
			if tr.batch {
				s.PostBackwardAll(params)
				continue
			}
			for _, p := range params {
				s.PostBackward(p)
			}
		}
	}
	if tr.stage.PP > 1 {
		tr.noSync(false)
		for c := len(tr.stage.Chunks) - 1; c >= 0; c-- {
			s.GradSyncFunc(c)
		}
	}
	s.AfterBackward()
	s.ClipGradNorm()
	s.Step()
	tr.steps++
	require.NoError(g.t, s.Err(), g.what)
	if g.skipped {
		return
	}
	g.afterStep(s)
}

func (tr *trainer) noSync(on bool) {
	tr.s.NoSync(on)
	tr.g.noSync = on
}
