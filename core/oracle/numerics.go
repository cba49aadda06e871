package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/optim"
	"distopt/core/optim/arrays"
)

// NumericsCase says what a numerics case trained: small parameters with given gradients, on all
// ranks of a distributed group.
type NumericsCase struct {
	Name         string                       `json:"name"`
	World        int                          `json:"world"`
	Redundant    int                          `json:"redundant"`
	Steps        int                          `json:"steps"`
	Shapes       [][]int64                    `json:"shapes"`
	PDTypes      []string                     `json:"pdtypes"`
	Optim        map[string]json.RawMessage   `json:"optim"`
	Groups       []map[string]json.RawMessage `json:"groups"`
	Clip         *float64                     `json:"clip"`
	GradScale    *float64                     `json:"grad_scale"`
	Microbatches *int                         `json:"microbatches"`
	SkipGrad     [][2]int                     `json:"skip_grad"` // step, 1 in the first one, and parameter
	Init         string                       `json:"init"`

	NeMo   bool   `json:"nemo"`
	FP8    []int  `json:"fp8"` // per parameter: whether it is an FP8 tensor
	Hist   *int   `json:"hist"`
	Algo   string `json:"algo"`
	Margin int    `json:"margin"`
}

// The fields of a numerics case.
var (
	numericsKeys  = words("name world steps shapes pdtypes seed optim")
	numericsOptim = words("lr betas eps weight_decay bucket_cap_mb overlap_grad_sync overlap_param_sync")
)

// check demands what every case says of itself.
func (c *NumericsCase) check(data []byte) error {
	var in struct {
		Name string          `json:"name"`
		Case json.RawMessage `json:"case"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	fields, err := numericsKeys.in("case", in.Case)
	if err != nil {
		return err
	}
	if _, err := oneOf(fields, "name", in.Name); err != nil {
		return err
	}
	if _, err := numericsOptim.in("case.optim", fields["optim"]); err != nil {
		return err
	}
	if err := checkBetas(c.Optim["betas"]); err != nil {
		return fmt.Errorf("case.optim.%w", err)
	}
	if c.NeMo || len(c.FP8) > 0 {
		if _, err := words("nemo fp8").in("case", in.Case); err != nil {
			return err
		}
	}
	for g, group := range c.Groups {
		if err := checkBetas(group["betas"]); err != nil {
			return fmt.Errorf("case.groups[%d].%w", g, err)
		}
	}
	return nil
}

// numerics is a numerics case at work.
type numerics struct {
	c      *NumericsCase
	layout *apex.Layout
	opt    *apex.Sharded
	ranks  *arrays.Ranks
	grads  [][][][][]float32 // by step, rank, microbatch, parameter
}

// Builds that a numerics case holds results of.
const (
	ieeeBuild = "ieee_nofma" // IEEE arithmetic without contraction: equal to the last bit
	fastBuild = "fast_math"  // what production runs: compared step by step, with a tolerance
	fmaBuild  = "nvcc_fma"   // nvcc's default, which contracts products and sums: likewise
)

// CheckNumerics runs a numerics case on arrays. Layout, reduced gradients and every tensor of the
// IEEE build must agree to the bit. Each step of the other builds is repeated from the state that
// they recorded before it; the note says how far they lie from IEEE arithmetic.
func CheckNumerics(data []byte) (note string, err error) {
	var in struct {
		Case   *NumericsCase     `json:"case"`
		Layout []json.RawMessage `json:"layout"`
		Init   []string          `json:"init_params_fp32"`
		Grads  [][][][]*string   `json:"grads_fp32"`

		Reduced [][][]string      `json:"reduced_grads"`
		Initial json.RawMessage   `json:"initial"`
		IEEE    []json.RawMessage `json:"ieee_nofma"`
		Fast    []json.RawMessage `json:"fast_math"`
		FMA     []json.RawMessage `json:"nvcc_fma"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return "", err
	}
	if in.Case == nil {
		return "", fmt.Errorf("case: got nothing, want what was trained")
	}
	c := in.Case
	if err := c.check(data); err != nil {
		return "", err
	}
	before, err := c.readState("initial", in.Initial, -1)
	if err != nil {
		return "", err
	}
	ieee, err := c.readStates(ieeeBuild, in.IEEE)
	if err != nil {
		return "", err
	}
	initial, grads, err := c.inputs(in.Init, in.Grads)
	if err != nil {
		return "", err
	}
	begin := func() (*numerics, error) { return c.begin(initial, grads) }
	n, err := begin()
	if err != nil {
		return "", err
	}
	if len(in.Reduced) != c.Steps {
		return "", fmt.Errorf("reduced_grads: got %d steps, want case.steps, %d", len(in.Reduced), c.Steps)
	}
	if err := n.compareLayout(in.Layout); err != nil {
		return "", err
	}
	if err := n.compareState("initial", before); err != nil {
		return "", err
	}
	for step := range ieee {
		at := fmt.Sprintf("%s[%d]", ieeeBuild, step)
		want := &ieee[step]
		if err := n.compareShape(at, want); err != nil {
			return "", err
		}
		if err := n.step(step, at, want); err != nil {
			return "", err
		}
		if err := n.compareReduced(fmt.Sprintf("reduced_grads[%d]", step), in.Reduced[step]); err != nil {
			return "", err
		}
		if err := n.compareState(at, want); err != nil {
			return "", err
		}
	}
	note = fmt.Sprintf("%s: equal to the bit in %d steps", ieeeBuild, len(ieee))
	if n.overflowed() {
		note += ", NaN included: a small tensor's bf16 scale is subnormal, and its reciprocal infinite"
	}
	for _, build := range []struct {
		name  string
		steps []json.RawMessage
	}{{fastBuild, in.Fast}, {fmaBuild, in.FMA}} {
		if build.name == fmaBuild && build.steps == nil {
			continue // few cases have it
		}
		steps, err := c.readStates(build.name, build.steps)
		if err != nil {
			return "", err
		}
		if n, err = begin(); err != nil {
			return "", err
		}
		d, err := n.compareSteps(build.name, before, steps)
		if err != nil {
			return "", err
		}
		note += fmt.Sprintf("; %s: %s", build.name, d)
	}
	return note, nil
}

// overflowed reports whether parameters became NaN by the defect of scaled bf16 states.
func (n *numerics) overflowed() bool {
	if !n.layout.Options.WithScaledStates || n.layout.Options.State != dtype.BF16 {
		return false
	}
	for id := range n.layout.Buckets {
		for _, code := range n.ranks.Shard(0, bucket.ID(id)).Param.Halfs {
			if x := dtype.DecodeBF16(code); x != x {
				return true
			}
		}
	}
	return false
}

// inputs decodes initial parameters and gradients.
func (c *NumericsCase) inputs(init []string, grads [][][][]*string) ([][]float32, [][][][][]float32, error) {
	switch {
	case c.World < 1 || c.World > 64:
		return nil, nil, fmt.Errorf("case.world: got %d, want 1 to 64", c.World)
	case len(c.Shapes) == 0 || len(c.PDTypes) != len(c.Shapes) || len(init) != len(c.Shapes):
		return nil, nil, fmt.Errorf("case: got %d shapes, %d dtypes and %d initial values, want as many of each", len(c.Shapes), len(c.PDTypes), len(init))
	case len(c.FP8) != 0 && len(c.FP8) != len(c.Shapes):
		return nil, nil, fmt.Errorf("case.fp8: got %d flags, want one for each of %d parameters", len(c.FP8), len(c.Shapes))
	case c.Steps < 1 || len(grads) != c.Steps:
		return nil, nil, fmt.Errorf("grads_fp32: got %d steps, want case.steps, %d", len(grads), c.Steps)
	}
	var initial [][]float32
	for p, digits := range init {
		x, err := decodeFloats(digits)
		if err != nil {
			return nil, nil, fmt.Errorf("init_params_fp32[%d]: %w", p, err)
		}
		initial = append(initial, x)
	}
	all := make([][][][][]float32, len(grads))
	for step, ranks := range grads {
		if len(ranks) != c.World {
			return nil, nil, fmt.Errorf("grads_fp32[%d]: got %d ranks, want %d", step, len(ranks), c.World)
		}
		all[step] = make([][][][]float32, len(ranks))
		for rank, micros := range ranks {
			if len(micros) != len(ranks[0]) {
				return nil, nil, fmt.Errorf("grads_fp32[%d][%d]: got %d microbatches, want %d as on rank 0", step, rank, len(micros), len(ranks[0]))
			}
			for m, params := range micros {
				if len(params) != len(c.Shapes) {
					return nil, nil, fmt.Errorf("grads_fp32[%d][%d][%d]: got %d parameters, want %d", step, rank, m, len(params), len(c.Shapes))
				}
				row := make([][]float32, len(params))
				for p, digits := range params {
					if digits == nil { // none: the parameter was not used
						continue
					}
					x, err := decodeFloats(*digits)
					if err != nil {
						return nil, nil, fmt.Errorf("grads_fp32[%d][%d][%d][%d]: %w", step, rank, m, p, err)
					}
					row[p] = x
				}
				all[step][rank] = append(all[step][rank], row)
			}
		}
	}
	return initial, all, nil
}

// begin builds the optimizer as it stands before the first step.
func (c *NumericsCase) begin(initial [][]float32, grads [][][][][]float32) (*numerics, error) {
	n := &numerics{c: c, grads: grads}
	base := Case{Kind: "apex", Apex: "new", World: c.World, Redundant: c.Redundant, Optim: c.Optim}
	o, err := base.Options()
	if err != nil {
		return nil, err
	}
	o.NeMo, o.NewNeMo = c.NeMo, c.NeMo
	params := make([]model.Param, len(c.Shapes))
	config := arrays.Config{
		Distributed: o.Distributed, Redundant: o.Redundant,
		ContiguousGrads: o.ContiguousGradBuffer, ContiguousParams: o.ContiguousParamBuffer,
		Scaled: o.WithScaledStates,
		FP8:    optim.DelayedScaling{History: 1, Margin: c.Margin, MostRecent: c.Algo == "most_recent"},
	}
	if c.Algo != "" && c.Algo != "max" && c.Algo != "most_recent" {
		return nil, fmt.Errorf("case.algo: got %q, want max or most_recent", c.Algo)
	}
	if c.Hist != nil {
		config.FP8.History = *c.Hist
	}
	for p, shape := range c.Shapes {
		d, ok := dtype.Parse(c.PDTypes[p])
		if !ok {
			return nil, fmt.Errorf("case.pdtypes[%d]: got %q, want fp32, fp16 or bf16", p, c.PDTypes[p])
		}
		numel, err := model.Numel(shape)
		if err != nil {
			return nil, fmt.Errorf("case.shapes[%d]: %w", p, err)
		}
		fp8 := len(c.FP8) > 0 && c.FP8[p] != 0
		params[p] = model.Param{Name: fmt.Sprint("p", p), Shape: shape, Numel: numel, DType: d, FP8: fp8, Layer: -1, Module: -1}
		config.Params = append(config.Params, arrays.Param{Numel: numel, DType: d, FP8: fp8, Group: -1})
	}
	groups, args, err := c.groups()
	if err != nil {
		return nil, err
	}
	config.Groups = args
	for g, list := range groups {
		for _, p := range list {
			if p >= 0 && int(p) < len(params) {
				config.Params[p].Group = g
			}
		}
	}
	if n.layout, err = apex.NewLayout(o, params, groups); err != nil {
		return nil, err
	}
	if err := c.initialise(n.layout); err != nil {
		return nil, err
	}
	config.Buckets = func() []bucket.Bucket { return n.layout.Buckets }
	if n.ranks, err = arrays.New(config, initial); err != nil {
		return nil, err
	}
	flow := apex.Config{Runtime: n.ranks}
	if c.Clip != nil {
		flow.MaxNorm = *c.Clip
	}
	n.opt, err = apex.NewSharded(n.layout, flow)
	return n, err
}

func (c *NumericsCase) initialise(l *apex.Layout) error {
	all := every(len(l.Params), 0, 1)
	switch c.Init {
	case "", "init_params":
		l.InitParams(nil)
	case "reversed":
		slices.Reverse(all)
		l.InitParams(all)
	case "bucket":
		if err := l.InitParamsBucket(all); err != nil {
			return err
		}
		l.InitParams(nil)
	default:
		return fmt.Errorf("case.init: got %q, want init_params, reversed or bucket", c.Init)
	}
	return nil
}

// groups returns the parameter groups and the arguments of each: the constructor's, overridden.
func (c *NumericsCase) groups() ([][]bucket.ParamID, []optim.AdamArgs, error) {
	// The constructor's own defaults.
	base := optim.AdamArgs{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, BiasCorrection: true}
	if err := setArgs(&base, c.Optim); err != nil {
		return nil, nil, fmt.Errorf("case.optim.%w", err)
	}
	if len(c.Groups) == 0 {
		return [][]bucket.ParamID{every(len(c.Shapes), 0, 1)}, []optim.AdamArgs{base}, nil
	}
	var lists [][]bucket.ParamID
	var all []optim.AdamArgs
	for g, group := range c.Groups {
		args := base
		if err := setArgs(&args, group); err != nil {
			return nil, nil, fmt.Errorf("case.groups[%d].%w", g, err)
		}
		var list []bucket.ParamID
		if err := json.Unmarshal(group["idx"], &list); err != nil {
			return nil, nil, fmt.Errorf("case.groups[%d].idx: %w", g, err)
		}
		lists, all = append(lists, list), append(all, args)
	}
	return lists, all, nil
}

// setArgs overrides the arguments that are given.
func setArgs(a *optim.AdamArgs, given map[string]json.RawMessage) error {
	decoupled := !a.L2
	var betas [2]float64
	for _, arg := range []struct {
		key string
		to  any
	}{
		{"lr", &a.LR}, {"eps", &a.Eps}, {"weight_decay", &a.WeightDecay}, {"betas", &betas},
		{"bias_correction", &a.BiasCorrection}, {"adam_w_mode", &decoupled},
	} {
		raw, ok := given[arg.key]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, arg.to); err != nil {
			return fmt.Errorf("%s: %w", arg.key, err)
		}
		if arg.key == "betas" {
			a.Beta1, a.Beta2 = betas[0], betas[1]
		}
	}
	a.L2 = !decoupled
	return nil
}

// step trains one step with the case's gradients. Where the record holds a gradient scale, that is
// used: its norm may be of another build.
func (n *numerics) step(step int, at string, want *stateRecord) error {
	c := n.c
	n.opt.ZeroGrad()
	// The first recorded step casts with the scales that parameters were made with.
	if len(want.Ranks) > 0 && want.Ranks[0].FP8Before != nil {
		n.ranks.Forward()
		if err := n.compareScales(at, want); err != nil {
			return err
		}
	}
	if c.GradScale != nil {
		n.ranks.SetGradScale(float32(*c.GradScale))
	}
	for m := range n.grads[step][0] {
		for p := len(c.Shapes) - 1; p >= 0; p-- {
			given := false
			for rank := range c.World {
				if g := n.grads[step][rank][m][p]; g != nil && !slices.Contains(c.SkipGrad, [2]int{step + 1, p}) {
					n.ranks.AddGrad(rank, bucket.ParamID(p), g)
					given = true
				}
			}
			if given {
				n.opt.PostBackward(bucket.ParamID(p))
			}
		}
	}
	n.opt.AfterBackward()
	n.opt.ClipGradNorm()
	if err := n.useRecordedScale(at, want); err != nil {
		return err
	}
	n.opt.Step()
	for p := range c.Shapes {
		n.opt.PreForward(bucket.ParamID(p))
	}
	if err := n.opt.Err(); err != nil {
		return err
	}
	return n.ranks.Err()
}
