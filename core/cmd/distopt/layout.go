package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"distopt/core/bucket"
	"distopt/core/ddp"
	"distopt/core/eval"
	"distopt/core/importer"
	"distopt/core/oracle"
	"distopt/core/scenario"
	"distopt/core/units"
)

// layoutCase is a layout as a reference case: what was run, then what came out. No case tells in
// which order a step's own hooks place parameters, so a layout that is made lazily has none; nor
// has one that isCase excludes, or that shows another rank than cases do.
type layoutCase struct {
	Name string       `json:"name"`
	Note string       `json:"note,omitempty"` // says that it is no case
	Case *caseOfStage `json:"case,omitempty"`
	*oracle.LayoutDocument
}

// caseOfStage says what was run, in the words of the reference cases.
type caseOfStage struct {
	Name      string         `json:"name"`
	Kind      string         `json:"kind"`
	NeMo      string         `json:"nemo,omitempty"`
	Apex      string         `json:"apex"`
	World     int            `json:"world"`
	Redundant int            `json:"redundant,omitempty"`
	Model     oracle.Model   `json:"model"`
	Optim     map[string]any `json:"optim"`
	Init      string         `json:"init,omitempty"`
	Later     bool           `json:"later_vpp_buckets,omitempty"`
}

// manyRanks is the size of the data-parallel group up to which all its shards are listed, as the
// reference cases do.
const manyRanks = 4

// runLayout prints the buckets of a stage.
func runLayout(e *env) error {
	d, err := e.read(e.args.operands[0])
	if err != nil {
		return err
	}
	r, err := e.scenario(d)
	if err != nil {
		return err
	}
	s, stage := &r.Scenario, e.args.numbers["stage"]
	if stage >= s.Parallel.PP {
		return usageError{fmt.Sprintf("layout: -stage %d, want 0 to %d", stage, s.Parallel.PP-1)}
	}
	ranks, err := e.ranks(s.Process())
	if err != nil {
		return err
	}
	l, err := eval.LayOut(s, stage)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name(), err)
	}
	if l.MCore != nil {
		return e.json(oracle.DescribeMegatron(l.MCore, ranks))
	}
	if l.DDP != nil {
		return e.json(ddpLayout(s.Name, l.DDP))
	}
	doc := oracle.DescribeLayout(l.Apex, ranks)
	out := layoutCase{Name: s.Name, LayoutDocument: doc}
	c := stageCase(d, r, stage)
	if !s.Plain() {
		doc.OptimizerArgs = constructorArgs(s, c.Optim)
	}
	if isCase(s) && !e.args.set["rank"] { // cases show some ranks, not one
		out.Case = &c
	} else {
		out.Note = oracle.NotCase
	}
	return e.json(out)
}

// ddpBuckets are PyTorch DDP's, in the order of their all-reduces, in the words of its reference lists.
type ddpBuckets struct {
	Name   string             `json:"name"`
	Note   string             `json:"note"`
	Params [][3]any           `json:"params"` // name, shape, dtype
	Later  [][]bucket.ParamID `json:"buckets"`
	Bytes  []units.Bytes      `json:"bytes"`
}

func ddpLayout(name string, l *ddp.Layout) ddpBuckets {
	d := ddpBuckets{Name: name, Note: oracle.NotCase}
	for i := range l.Params {
		p := &l.Params[i]
		d.Params = append(d.Params, [3]any{p.Name, p.Shape, p.DType.String()})
	}
	for i := range l.Buckets {
		b := &l.Buckets[i]
		var members []bucket.ParamID
		for _, f := range b.Fragments {
			members = append(members, f.Param)
		}
		d.Later = append(d.Later, members)
		d.Bytes = append(d.Bytes, units.Bytes(b.Size)*b.DTypes.GradSync.Size())
	}
	return d
}

// isCase reports whether the words of the reference cases tell all that the layout depends on:
// not norms of queries and keys, one parameter group, what fp8_params does without fp8, or fp32 embedding gradients with
// model chunks.
func isCase(s *scenario.Scenario) bool {
	return !s.MCore() && !s.DDP() && !s.Model.QKNorm && !s.Optim.OneParamGroup && (s.Precision.FP8 || !s.Precision.FP8Params) &&
		!s.Framework.Later.FP32EmbeddingGrads && (!s.Plain() || s.Optim.Plain.Init != scenario.InitLazy)
}

// ranks lists the ranks of the data-parallel group whose shards are asked for: without -rank all
// of a small group, else first, second, middle and last.
func (e *env) ranks(size int) ([]int, error) {
	if e.args.set["rank"] {
		rank := e.args.numbers["rank"]
		if rank >= size {
			return nil, usageError{fmt.Sprintf("layout: -rank %d, want 0 to %d", rank, size-1)}
		}
		return []int{rank}, nil
	}
	if size <= manyRanks {
		ranks := make([]int, size)
		for i := range ranks {
			ranks[i] = i
		}
		return ranks, nil
	}
	return []int{0, 1, size / 2, size - 1}, nil
}

// stageCase describes a stage.
func stageCase(d document, r *importer.Reading, stage int) caseOfStage {
	s := &r.Scenario
	c := caseOfStage{
		Name: s.Name, Kind: "nemo", NeMo: "before", Apex: "old", World: s.Process(), Optim: optimSection(d, r),
		Later: s.Framework.Later.StageBuckets,
		Model: oracle.Model{
			Layers: int64(s.Model.Layers), Hidden: int64(s.Model.Hidden), FFN: int64(s.FFN()), Heads: int64(s.Model.Heads),
			Groups: int64(s.QueryGroups()), KVChannels: int64(s.KVChannels()), Vocab: int64(s.PaddedVocab()),
			Seq: int64(s.Model.SeqLength), Pos: s.Model.Position, Norm: "LayerNorm", Bias: s.Model.Bias, GLU: s.Gated(),
			Share: s.Model.Tied, TP: s.Parallel.TP, SP: s.SequenceParallel(), PP: s.Parallel.PP, PPRank: stage,
			FP8: s.FP8Weights(), DType: s.ModelDType().String(),
		},
	}
	if s.NewNeMo() {
		c.NeMo = "after"
	}
	if s.NewApex() {
		c.Apex = "new"
	}
	if s.RMSNorm() {
		c.Model.Norm = "RMSNorm"
	}
	if s.Parallel.VP > 1 {
		c.Model.VP = &s.Parallel.VP
	}
	if s.Plain() {
		c.Kind, c.NeMo, c.Init = "apex", "", inits[s.Optim.Plain.Init]
	}
	if n := s.Redundant(); n > 1 && s.Plain() { // NeMo's follows from disable_distributed_parameters
		c.Redundant = n
	}
	return c
}

// inits are the reference cases' words for the ways in which plain Apex places parameters before
// the first step.
var inits = map[string]string{scenario.InitExplicit: "init_params", scenario.InitReversed: "init_params_reversed"}

// optimSection returns what the document gives in model.optim, as the scenario has it where it
// has, and the dtype of gradients, which decides the size of a bucket.
func optimSection(d document, r *importer.Reading) map[string]any {
	const section = "model.optim."
	optim := importer.Section(d.text, strings.TrimSuffix(section, "."))
	if optim == nil {
		optim = make(map[string]any)
	}
	maps.DeleteFunc(optim, func(k string, v any) bool {
		_, isSection := v.(map[string]any) // sched
		return isSection || v == nil || k == "cls" || k == "_target_"
	})
	optim["bucket_cap_mb"], optim["grad_sync_dtype"] = r.Scenario.Optim.BucketCapMB, r.Scenario.Optimizer().GradSync.String()
	for _, k := range r.Keys {
		if name, ok := strings.CutPrefix(k.Path, section); ok {
			f, isField := scenario.ByPath(k.Path)
			if k.Status == importer.Unknown || isField && !f.Applies(&r.Scenario) {
				delete(optim, name)
			}
		}
		if k.Status != importer.Used || len(k.Path) <= len(section) || k.Path[:len(section)] != section {
			continue
		}
		f, ok := scenario.ByPath(k.Path)
		if !ok || k.Value == scenario.Null {
			continue
		}
		switch f.Kind {
		case scenario.Choice:
			optim[k.Path[len(section):]] = k.Value
		default:
			optim[k.Path[len(section):]] = json.RawMessage(k.Value)
		}
	}
	if r.Scenario.Plain() {
		delete(optim, "name")
	}
	return optim
}

// overridden are the arguments that NeMo computes whatever a document says.
var overridden = []string{"param_sync_dtype", "store_params", "store_param_remainders"}

// constructorArgs returns what NeMo passes to the constructor: the section, and its overrides.
func constructorArgs(s *scenario.Scenario, optim map[string]any) map[string]any {
	a := s.Optimizer()
	args := map[string]any{"contiguous_grad_buffer": s.Optim.ContiguousGradBuffer}
	for k, v := range optim {
		if k != "name" && !slices.Contains(overridden, k) {
			args[k] = v
		}
	}
	args["dtype"], args["param_sync_dtype"], args["store_params"] = a.State.String(), a.ParamSync.String(), a.StoreParams
	if a.StoreParamRemainders {
		args["store_param_remainders"] = true
	}
	return args
}
