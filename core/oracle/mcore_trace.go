package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"distopt/core/bucket"
	"distopt/core/mcore"
	"distopt/core/optim"
)

// CheckMegatronTrace builds the optimizer of a recorded run of Megatron-Core and replays what the model
// did: modules or whole chunks starting, gradients arriving. Every other event, with all its fields,
// must be the optimizer's answer, in order; so must what the case tells of its buffers.
func CheckMegatronTrace(data []byte) error {
	var in struct {
		Case   MegatronCase        `json:"case"`
		Params [][]json.RawMessage `json:"params"`
		Events []json.RawMessage   `json:"events"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := checkMegatronCase(data); err != nil {
		return err
	}
	c := &in.Case
	c.Microbatches = max(c.Microbatches, 1)
	if c.Steps == 0 {
		c.Steps = 3
	}
	if c.Microbatches > len(in.Events) || c.Steps < 1 || c.Steps > len(in.Events) {
		return fmt.Errorf("case: got %d steps of %d microbatches, want an event for each", c.Steps, c.Microbatches)
	}
	listed := make([]int, len(in.Params))
	for i := range in.Params {
		listed[i] = len(in.Params[i])
	}
	l, stage, err := c.Layout(listed)
	if err != nil {
		return err
	}
	if err := compare(data, describeRecorded(l), append(caseKeys, "events")...); err != nil {
		return err
	}
	r := &megatronReplay{c: c, l: l, stage: l.Options.Stage, stages: l.Options.Pipeline}
	if err := r.read(in.Events); err != nil {
		return err
	}
	if r.stages == 1 {
		for _, p := range r.forwardOrder(0) {
			if owner := l.Params[p].Owner(); !slices.Contains(r.modules, owner) {
				r.modules = append(r.modules, owner)
			}
		}
		if stage.Config.Tied { // it reads the embedding's
			r.modules = append(r.modules, "output_layer")
		}
	}
	config := mcore.Config{Rank: c.Rank, MaxNorm: defaultClip, Runtime: noRuntime{}, Observer: r}
	if stage.Config.Tied && r.stages > 1 && (r.stage == 0 || r.stage == r.stages-1) {
		config.EmbeddingSize = 2
	}
	if r.opt, err = mcore.NewSharded(l, config); err != nil {
		return err
	}
	for step := range c.Steps {
		r.train(step)
		if r.err == nil {
			r.err = r.opt.Err()
		}
		if r.err != nil {
			return r.err
		}
	}
	if r.at < len(r.want) {
		return fmt.Errorf("events[%d]: got nothing, want %s", r.at, show(r.want[r.at]))
	}
	return nil
}

// defaultClip is clip_grad where nobody sets it.
const defaultClip = 1.0

// megatronReplay drives an optimizer through a recorded run and observes its answers.
type megatronReplay struct {
	c             *MegatronCase
	l             *mcore.Layout
	opt           *mcore.Sharded
	stage, stages int

	want []map[string]any
	at   int // next event of want
	err  error
	// silent: the record does not tell when gradients arrive.
	silent bool

	step  int
	phase string
	micro int // -1: none

	modules []string // that read parameters, in the order in which they run; none where whole chunks are recorded
}

func (r *megatronReplay) read(events []json.RawMessage) error {
	r.silent = r.stages > 1
	for i, raw := range events {
		event, err := decodeAny(raw)
		if err != nil {
			return fmt.Errorf("events[%d]: %w", i, err)
		}
		fields, ok := event.(map[string]any)
		if !ok {
			return fmt.Errorf("events[%d]: got %s, want an object", i, show(event))
		}
		r.silent = r.silent && fields["op"] != string(optim.OpGradReady)
		r.want = append(r.want, fields)
	}
	return nil
}

// train is one training step.
func (r *megatronReplay) train(step int) {
	r.step = step
	r.enter("zero", -1)
	r.opt.ZeroGrad()
	if r.stages > 1 {
		r.pipeline()
	} else {
		for m := range r.c.Microbatches {
			r.opt.NoSync(m < r.c.Microbatches-1)
			r.enter("fwd", m)
			r.forward()
			r.enter("bwd", m)
			r.backward()
		}
	}
	r.enter("finalize", -1)
	r.opt.AfterBackward()
	r.enter("opt", -1)
	r.opt.Step()
}

func (r *megatronReplay) enter(phase string, micro int) { r.phase, r.micro = phase, micro }

// forward starts the modules that the record names: each reads its own parameters first.
func (r *megatronReplay) forward() {
	var passed []string
	for r.err == nil {
		module, ok := "", false
		for i := r.at; i < len(r.want) && r.here(r.want[i]) && !ok; i++ {
			if r.want[i]["op"] == "fwd" {
				module, ok = text(r.want[i]["mod"]), true
			}
		}
		if !ok {
			if len(passed) < len(r.modules) {
				r.err = fmt.Errorf("events[%d]: got %s, want a forward pass through %s", r.at, r.next(), at(r.modules, len(passed)))
			}
			return
		}
		if next := len(passed); next >= len(r.modules) || r.modules[next] != module {
			r.err = fmt.Errorf("events[%d].mod: got %s after %d modules, want %s", r.at, module, next, at(r.modules, next))
			return
		}
		passed = append(passed, module)
		for p := range r.l.Params {
			if r.l.Params[p].Owner() == module {
				r.opt.PreForward(bucket.ParamID(p))
			}
		}
		r.stimulus("fwd", "mod", module)
	}
}

// at returns an entry, or says that there is none.
func at(list []string, i int) string {
	if i >= 0 && i < len(list) {
		return list[i]
	}
	return "no more"
}

// backward lets gradients arrive as the record has them, modules in reverse order.
func (r *megatronReplay) backward() {
	left := len(r.modules)
	defer func() {
		if r.err == nil && left > 0 {
			r.err = fmt.Errorf("events[%d]: got %s, want a backward pass through %s", r.at, r.next(), r.modules[left-1])
		}
	}()
	for r.err == nil && r.at < len(r.want) && r.here(r.want[r.at]) {
		switch r.want[r.at]["op"] {
		case "bwd":
			left--
			r.stimulus("bwd", "mod", at(r.modules, left))
		case string(optim.OpGradReady):
			p, ok := r.param(r.want[r.at]["p"])
			if !ok {
				r.err = fmt.Errorf("events[%d].p: got %s, want a parameter", r.at, show(r.want[r.at]["p"]))
				return
			}
			before := r.at
			r.opt.PostBackward(p)
			if r.err == nil && r.at == before {
				r.err = fmt.Errorf("events[%d]: got a gradient that is not registered, want %s", r.at, show(r.want[r.at]))
			}
		default:
			return
		}
	}
}

// stimulus steps over an event of the model, which has these fields beside where it lies.
func (r *megatronReplay) stimulus(op string, fields ...any) {
	if r.err != nil {
		return
	}
	d := map[string]any{"op": op}
	for i := 0; i+1 < len(fields); i += 2 {
		d[text(fields[i])] = fields[i+1]
	}
	r.match(d)
}

func (r *megatronReplay) next() string {
	if r.at >= len(r.want) {
		return "the end"
	}
	return show(r.want[r.at])
}

// here reports whether an event belongs to the present phase.
func (r *megatronReplay) here(event map[string]any) bool {
	m := -1
	if event["m"] != nil {
		m = number(event["m"])
	}
	return event["ph"] == r.phase && number(event["s"]) == r.step && m == r.micro
}

// param reads a parameter: its number, with several chunks in a pair behind the chunk.
func (r *megatronReplay) param(v any) (bucket.ParamID, bool) {
	chunk, index := 0, v
	if pair, ok := v.([]any); ok && len(pair) == 2 {
		chunk, index = number(pair[0]), pair[1]
	}
	if chunk < 0 || chunk >= len(r.l.Chunks) {
		return 0, false
	}
	span := r.l.Chunks[chunk].Params
	p := span[0] + bucket.ParamID(number(index))
	return p, p >= span[0] && p < span[1]
}

// Event compares one answer of the optimizer with the next recorded event.
func (r *megatronReplay) Event(e *optim.Event) {
	if r.err != nil || r.silent && e.Op == optim.OpGradReady {
		return
	}
	r.match(megatronEvent(r.l, e))
}

// match compares the next recorded event.
func (r *megatronReplay) match(d map[string]any) {
	d["s"], d["ph"] = r.step, r.phase
	if r.micro >= 0 {
		d["m"] = r.micro
	}
	got, err := asRead(d)
	if err != nil {
		r.err = err
		return
	}
	if r.at >= len(r.want) {
		r.err = fmt.Errorf("events[%d]: got %s, want the end", r.at, show(got))
		return
	}
	if err := difference(fmt.Sprintf("events[%d]", r.at), got, r.want[r.at]); err != nil {
		r.err = fmt.Errorf("%w (got %s, want %s)", err, show(got), show(r.want[r.at]))
		return
	}
	r.at++
}

// megatronEvent writes an event as the traces of Megatron-Core do, without where it happened.
func megatronEvent(l *mcore.Layout, e *optim.Event) map[string]any {
	d := map[string]any{"op": string(e.Op)}
	switch e.Op {
	case optim.OpStartGradSync, optim.OpFinishGradSync, optim.OpStartParamSync, optim.OpFinishParamSync:
		chunk := l.Groups[e.BucketGroup].Chunk
		d["g"] = [2]int{chunk, e.BucketGroup - l.Chunks[chunk].Groups[0]}
		if e.NoOp {
			d["noop"] = true
		}
		if e.Op == optim.OpFinishParamSync {
			d["pending"], d["dispatched"] = e.Pending, e.Dispatched
		}
	case optim.OpReduceScatter, optim.OpAllGather, optim.OpAllReduce, optim.OpAllToAll, optim.OpBroadcast:
		d["dt"], d["n"], d["by"] = megatronName(e.DTypes[0]), e.N, e.Bytes
		d["gr"], d["gs"], d["asyn"] = e.Group, e.GroupSize, e.Async
		if e.Reduce != "" {
			d["rop"] = e.Reduce
		}
		if len(e.Buckets) == 1 {
			k := l.Places[e.Buckets[0]]
			d["b"] = [3]int{k.Chunk, k.Buffer, k.Bucket}
		}
	case optim.OpGradReady:
		d["p"] = paramNumber(l, e.Param)
	case optim.OpAdam:
		d["opt"], d["nt"], d["n"] = e.Optimizer, e.Tensors, e.N
	case optim.OpCastFP8, optim.OpCopyToQuantized:
		d["nt"], d["n"] = e.Tensors, e.N
	case optim.OpPostAllGather:
		d["nt"] = e.Tensors
	}
	if e.Coalesced > 0 {
		d["co"] = e.Coalesced
	}
	return d
}

// paramNumber writes a parameter as megatronReplay.param reads it.
func paramNumber(l *mcore.Layout, p bucket.ParamID) any {
	chunk := l.Params[p].Chunk
	index := p - l.Chunks[chunk].Params[0]
	if len(l.Chunks) == 1 {
		return index
	}
	return [2]int{chunk, int(index)}
}

// recordedBuffers is what a case with events tells of its buffers.
type recordedBuffers struct {
	Params  [][][4]any          `json:"params"`
	Buckets [][][]recordedRange `json:"buckets"`
	Groups  [][][][3]int        `json:"bucket_groups"`
}

type recordedRange struct {
	Start  int64 `json:"start"`
	End    int64 `json:"end"`
	Params []any `json:"params"`
}

func describeRecorded(l *mcore.Layout) *recordedBuffers {
	d := &recordedBuffers{}
	for c := range l.Chunks {
		d.Params = append(d.Params, megatronParams(l, c))
		buffers := [][]recordedRange{}
		for i := range l.Chunks[c].Buffers {
			b := &l.Chunks[c].Buffers[i]
			rows := []recordedRange{}
			for k := range b.Buckets {
				row := recordedRange{Start: int64(b.Buckets[k].Range.Start), End: int64(b.Buckets[k].Range.End)}
				for _, p := range b.Params[b.Buckets[k].Params[0]:b.Buckets[k].Params[1]] {
					row.Params = append(row.Params, paramNumber(l, p.Param))
				}
				rows = append(rows, row)
			}
			buffers = append(buffers, rows)
		}
		d.Buckets = append(d.Buckets, buffers)
		groups := [][][3]int{}
		for _, g := range l.Groups[l.Chunks[c].Groups[0]:l.Chunks[c].Groups[1]] {
			list := [][3]int{}
			for _, id := range g.Buckets {
				k := l.Places[id]
				list = append(list, [3]int{k.Chunk, k.Buffer, k.Bucket})
			}
			groups = append(groups, list)
		}
		d.Groups = append(d.Groups, groups)
	}
	return d
}

// megatronName is the name of a dtype in the cases of Megatron-Core.
func megatronName(s string) string {
	if i := slices.Index([]string{"uint8", "int32"}, s); i >= 0 {
		return []string{"u8", "i32"}[i]
	}
	return s
}
