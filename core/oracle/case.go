package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"distopt/core/apex"
	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
)

// Case says what was run. Fields that a kind of case does not have stay zero.
type Case struct {
	Name      string                     `json:"name"`
	Kind      string                     `json:"kind"` // "apex", "nemo"
	NeMo      string                     `json:"nemo"` // "before", "after"
	Apex      string                     `json:"apex"` // "old", "new"
	World     int                        `json:"world"`
	Rank      int                        `json:"rank"`
	Redundant int                        `json:"redundant"`
	Optim     map[string]json.RawMessage `json:"optim"`
	Model     *Model                     `json:"model"`
	Init      json.RawMessage            `json:"init"`
	Groups    string                     `json:"groups"`

	Microbatches    int      `json:"microbatches"`
	Clip            *float64 `json:"clip"`
	Schedule        string   `json:"schedule"`
	GlobalWorld     int      `json:"global_world"`
	GlobalRank      int      `json:"global_rank"`
	LaterVPPBuckets bool     `json:"later_vpp_buckets"`
	P2P             *struct {
		Overlap bool `json:"overlap_p2p_comm"`
		Batch   bool `json:"batch_p2p_comm"`
	} `json:"p2p"`
}

// Model is the shape of a GPT as the cases write it. Sizes are those of the whole model.
type Model struct {
	Layers     int64  `json:"layers"`
	Hidden     int64  `json:"hidden"`
	FFN        int64  `json:"ffn"`
	Heads      int64  `json:"heads"`
	Groups     int64  `json:"groups"`
	KVChannels int64  `json:"kv_channels"`
	Vocab      int64  `json:"vocab"` // padded
	Seq        int64  `json:"seq"`
	Pos        string `json:"pos"`
	Norm       string `json:"norm"`
	Bias       bool   `json:"bias"`
	GLU        bool   `json:"glu"`
	Share      bool   `json:"share"`
	TP         int    `json:"tp"`
	SP         bool   `json:"sp"`
	PP         int    `json:"pp"`
	PPRank     int    `json:"pp_rank"`
	VP         *int   `json:"vp"`
	FP8        bool   `json:"fp8"`
	DType      string `json:"dtype"`
}

// Stage builds the parameters of the stage that the case ran.
func (m *Model) Stage() (*model.Stage, error) {
	d, ok := dtype.Parse(m.DType)
	if !ok {
		return nil, fmt.Errorf("case.model.dtype: got %q, want fp32, fp16 or bf16", m.DType)
	}
	vp := 1
	if m.VP != nil {
		vp = *m.VP
	}
	return model.BuildStage(model.Config{
		Layers: m.Layers, Hidden: m.Hidden, FFN: m.FFN, Heads: m.Heads, Groups: m.Groups,
		KVChannels: m.KVChannels, Vocab: m.Vocab, Seq: m.Seq,
		LearnedPositions: m.Pos == "learned_absolute", RMSNorm: m.Norm == "RMSNorm",
		Bias: m.Bias, Gated: m.GLU, Tied: m.Share,
		FP8: m.FP8, FP8Params: m.FP8, DType: d,
	}, model.Split{TP: m.TP, SP: m.SP, PP: m.PP, Index: m.PPRank, VP: vp})
}

// ParamRow is the beginning of a row of a case's params: name, shape, dtype.
type ParamRow struct {
	Name  string
	Shape []int64
	DType string
}

// UnmarshalJSON reads the first three entries of a row.
func (r *ParamRow) UnmarshalJSON(data []byte) error {
	var row []json.RawMessage
	if err := json.Unmarshal(data, &row); err != nil {
		return err
	}
	if len(row) < 3 {
		return fmt.Errorf("params: got a row of %d entries, want name, shape, dtype", len(row))
	}
	for i, to := range []any{&r.Name, &r.Shape, &r.DType} {
		if err := json.Unmarshal(row[i], to); err != nil {
			return err
		}
	}
	return nil
}

// Options returns the optimizer's arguments, after NeMo's overrides for a NeMo case.
func (c *Case) Options() (apex.Options, error) {
	o := apex.DefaultOptions(c.World)
	o.NewApex = c.Apex != "old"
	o.NewNeMo = c.NeMo == "after"
	o.Later.StageBuckets = c.LaterVPPBuckets
	o.ContiguousGradBuffer = c.Kind == "nemo"
	if c.World < 1 {
		return o, fmt.Errorf("case.world: got %d, want at least 1", c.World)
	}
	if c.Redundant > 1 {
		if c.World%c.Redundant != 0 {
			return o, fmt.Errorf("case.redundant: got %d, want a divisor of %d", c.Redundant, c.World)
		}
		o.Distributed, o.Redundant = c.World/c.Redundant, c.Redundant
	}
	dtypes := map[string]*dtype.DType{"dtype": &o.State, "grad_sync_dtype": &o.GradSync, "param_sync_dtype": &o.ParamSync}
	if err := c.readDType("dtype", &o.State); err != nil {
		return o, err
	}
	o.GradSync, o.ParamSync = o.State, o.State
	separate := false
	flags := map[string]*bool{
		"average_grad_sync":              &o.AverageGradSync,
		"overlap_grad_sync":              &o.OverlapGradSync,
		"overlap_param_sync":             &o.OverlapParamSync,
		"contiguous_grad_buffer":         &o.ContiguousGradBuffer,
		"contiguous_param_buffer":        &o.ContiguousParamBuffer,
		"store_params":                   &o.StoreParams,
		"store_param_remainders":         &o.StoreParamRemainders,
		"with_scaled_states":             &o.WithScaledStates,
		"disable_distributed_parameters": &separate,
	}
	for _, key := range sortedKeys(c.Optim) {
		var err error
		switch {
		case dtypes[key] != nil:
			err = c.readDType(key, dtypes[key])
		case flags[key] != nil:
			err = json.Unmarshal(c.Optim[key], flags[key])
		case key == "bucket_cap_mb":
			err = json.Unmarshal(c.Optim[key], &o.BucketCapMB)
		case !slices.Contains(noLayout, key):
			err = fmt.Errorf("not an argument of the optimizer")
		}
		if err != nil {
			return o, fmt.Errorf("case.optim.%s: %w", key, err)
		}
	}
	if separate {
		o.Distributed, o.Redundant = 1, c.World
	}
	if c.Kind == "nemo" {
		params, fp8 := dtype.FP32, false
		if c.Model != nil {
			params, _ = dtype.Parse(c.Model.DType)
			fp8 = c.Model.FP8
		}
		o.SetNeMo(params, fp8)
		o.O2 = true
	}
	return o, o.Check()
}

// noLayout are arguments that decide neither layout nor control flow.
var noLayout = []string{
	"name", "cls", "sched", "lr", "betas", "eps", "weight_decay", "bias_correction", "adam_w_mode", "amsgrad", "pipeline_size", "device",
}

func (c *Case) readDType(key string, d *dtype.DType) error {
	raw, ok := c.Optim[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return err
	}
	parsed, ok := dtype.Parse(word)
	if !ok {
		return fmt.Errorf("got %q, want fp32, fp16, bf16 or uint8", word)
	}
	*d = parsed
	return nil
}

// NewLayout returns the case's layout as its constructor leaves it: complete for NeMo, without
// buckets for plain Apex, whose parameters come from the model or else from rows. stage is nil for
// parameters without a model.
func (c *Case) NewLayout(rows []ParamRow) (l *apex.Layout, stage *model.Stage, err error) {
	o, err := c.Options()
	if err != nil {
		return nil, nil, err
	}
	if c.Model != nil {
		if stage, err = c.Model.Stage(); err != nil {
			return nil, nil, err
		}
	}
	if c.Kind == "nemo" {
		if stage == nil {
			return nil, nil, fmt.Errorf("case.model: missing, want the model that NeMo trained")
		}
		l, err = apex.BuildNeMo(o, stage)
		return l, stage, err
	}
	params, err := paramsOf(rows)
	if err != nil {
		return nil, nil, err
	}
	if stage != nil {
		params = stage.Params
	}
	groups, err := c.groups(len(params))
	if err != nil {
		return nil, nil, err
	}
	l, err = apex.NewLayout(o, params, groups)
	return l, stage, err
}

// groups returns the parameter groups of a plain Apex case: one, or odd ones before even ones.
func (c *Case) groups(n int) ([][]bucket.ParamID, error) {
	switch c.Groups {
	case "":
		return [][]bucket.ParamID{every(n, 0, 1)}, nil
	case "alternate":
		return [][]bucket.ParamID{every(n, 1, 2), every(n, 0, 2)}, nil
	}
	return nil, fmt.Errorf("case.groups: got %q, want alternate", c.Groups)
}

// every returns the parameters first, first+step, ... below n.
func every(n, first, step int) []bucket.ParamID {
	ids := []bucket.ParamID{}
	for p := first; p < n; p += step {
		ids = append(ids, bucket.ParamID(p))
	}
	return ids
}

func paramsOf(rows []ParamRow) ([]model.Param, error) {
	params := make([]model.Param, len(rows))
	for i, row := range rows {
		d, ok := dtype.Parse(row.DType)
		if !ok {
			return nil, fmt.Errorf("params[%d]: got dtype %q, want fp32, fp16 or bf16", i, row.DType)
		}
		n, err := model.Numel(row.Shape)
		if err != nil {
			return nil, fmt.Errorf("params[%d]: %w", i, err)
		}
		params[i] = model.Param{Name: row.Name, Shape: row.Shape, Numel: n, DType: d, Layer: -1, Module: -1}
	}
	return params, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
