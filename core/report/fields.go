package report

// The fields of a head, in the order and with the names of result.go: see head.

func (r *Result) fields(h *head) {
	h.mark('{')
	h.string("model_version", &r.ModelVersion)
	h.string("name", &r.Name)
	h.key("figures")
	r.Figures.fields(h)
	h.key("grid")
	r.Grid.fields(h)
	list(h, "stages", &r.Stages, (*Stage).fields)
	list(h, "works", &r.Works, (*Work).fields)
	list(h, "collectives", &r.Collectives, (*Collective).fields)
	list(h, "notes", &r.Notes, (*Note).fields)
	list(h, "findings", &r.Findings, (*Finding).fields)
}

func (f *Figures) fields(h *head) {
	h.mark('{')
	integer(h, "step_time_ns", &f.StepTime)
	h.float("tokens_per_second_per_gpu", &f.TokensPerGPU)
	h.float("tokens_per_second", &f.TokensPerSecond)
	h.float("mfu", &f.MFU)
	h.float("model_flops_per_step_per_gpu", &f.ModelFLOPs)
	h.float("peak_flops", &f.PeakFLOPs)
	h.string("peak_name", &f.PeakName)
	integer(h, "worst_stage", &f.WorstStage)
	integer(h, "exposed_ns", &f.Exposed)
	integer(h, "exposed_in_bubble_ns", &f.ExposedInBubble)
	list(h, "exposed_by", &f.ExposedBy, (*ExposedBy).fields)
	integer(h, "bubble_ns", &f.Bubble)
	h.float("overlap_efficiency", &f.Overlap)
	integer(h, "hidden_ns", &f.Hidden)
	integer(h, "sync_total_ns", &f.SyncTotal)
	h.float("bucket_utilisation", &f.Utilisation)
	integer(h, "buckets", &f.Buckets)
	integer(h, "bucket_size", &f.BucketSize)
	integer(h, "smallest_bucket_size", &f.SmallestBucket)
	integer(h, "wasted_bytes", &f.WastedBytes)
	integer(h, "amax_reductions", &f.AmaxReductions)
	integer(h, "parameters", &f.Parameters)
	integer(h, "tasks", &f.Tasks)
	integer(h, "spans", &f.Spans)
	h.mark('}')
}

func (e *ExposedBy) fields(h *head) {
	h.string("kind", &e.Kind)
	integer(h, "ns", &e.Time)
}

func (s *Share) fields(h *head) {
	h.string("name", &s.Name)
	integer(h, "ns", &s.Time)
}

func (g *Grid) fields(h *head) {
	h.mark('{')
	integer(h, "world", &g.World)
	integer(h, "tp", &g.TP)
	integer(h, "cp", &g.CP)
	integer(h, "pp", &g.PP)
	integer(h, "vp", &g.VP)
	integer(h, "dp", &g.DP)
	integer(h, "distributed", &g.Distributed)
	integer(h, "redundant", &g.Redundant)
	integer(h, "microbatches", &g.Micro)
	h.mark('}')
}

func (s *Stage) fields(h *head) {
	list(h, "params", &s.Params, (*Param).fields)
	list(h, "buckets", &s.Buckets, (*Bucket).fields)
	list(h, "grad_buffers", &s.GradBuffers, (*Buffer).fields)
	list(h, "param_buffers", &s.ParamBuffers, (*Buffer).fields)
	list(h, "bucketing", &s.Bucketing, (*Rule).fields)
	list(h, "shares", &s.Shares, (*Share).fields)
	integer(h, "exposed_ns", &s.Exposed)
	list(h, "exposed_by", &s.ExposedBy, (*ExposedBy).fields)
	integer(h, "exposed_in_bubble_ns", &s.ExposedInBubble)
	integer(h, "bubble_ns", &s.Bubble)
	integer(h, "hidden_ns", &s.Hidden)
	integer(h, "sync_total_ns", &s.SyncTotal)
	integer(h, "wasted_bytes", &s.WastedBytes)
	integer(h, "amax_reductions", &s.AmaxReductions)
}

func (p *Param) fields(h *head) {
	h.string("name", &p.Name)
	integers(h, "shape", &p.Shape)
	integer(h, "numel", &p.Numel)
	h.string("dtype", &p.DType)
	integer(h, "chunk", &p.Chunk)
	integer(h, "layer", &p.Layer)
	h.string("group", &p.Group)
}

func (b *Bucket) fields(h *head) {
	integer(h, "id", &b.ID)
	integer(h, "size", &b.Size)
	integer(h, "shard", &b.Shard)
	integer(h, "filled", &b.Filled)
	h.string("state_dtype", &b.State)
	h.string("grad_sync_dtype", &b.Grad)
	h.string("param_sync_dtype", &b.Sync)
	integer(h, "offset", &b.Offset)
	integer(h, "set", &b.Set)
	list(h, "fragments", &b.Fragments, (*Fragment).fields)
}

func (f *Fragment) fields(h *head) {
	integer(h, "p", &f.Param)
	h.pair("in_param", &f.InParam)
	h.pair("in_bucket", &f.InBucket)
}

func (b *Buffer) fields(h *head) {
	h.string("key", &b.Key)
	integer(h, "length", &b.Length)
}

func (w *Work) fields(h *head) {
	h.string("name", &w.Name)
	if h.has("parts", len(w.Parts) > 0) {
		list(h, "parts", &w.Parts, (*Part).fields)
	}
}

func (p *Part) fields(h *head) {
	h.string("n", &p.Name)
	integer(h, "l", &p.Lane)
	integer(h, "s", &p.Start)
	integer(h, "e", &p.End)
}

func (c *Collective) fields(h *head) {
	integer(h, "span", &c.Span)
	integer(h, "stage", &c.Stage)
	h.string("kind", &c.Kind)
	if h.has("buckets", len(c.Buckets) > 0) {
		integers(h, "buckets", &c.Buckets)
	}
	integer(h, "bytes", &c.Bytes)
	h.string("group", &c.Group)
	integer(h, "ranks", &c.Ranks)
	integer(h, "start_ns", &c.Start)
	integer(h, "length_ns", &c.Length)
	integer(h, "exposed_ns", &c.Exposed)
	integer(h, "in_bubble_ns", &c.InBubble)
	integer(h, "hidden_ns", &c.Hidden)
	h.float("algbw", &c.AlgBW)
	h.float("busbw", &c.BusBW)
	if h.has("cause", c.Cause != "") {
		h.string("cause", &c.Cause)
	}
	if h.has("reason", c.Reason != "") {
		h.string("reason", &c.Reason)
	}
}

func (r *Rule) fields(h *head) { h.string("text", &r.Text) }

func (f *Finding) fields(h *head) {
	h.string("rule", &f.Rule)
	integer(h, "stage", &f.Stage)
	h.string("text", &f.Text)
	integer(h, "cost_ns", &f.Cost)
	integer(h, "bytes", &f.Bytes)
	h.string("path", &f.Path)
	list(h, "changes", &f.Changes, (*Change).fields)
}

func (c *Change) fields(h *head) {
	h.string("path", &c.Path)
	h.string("value", &c.Value)
}

func (n *Note) fields(h *head) {
	if h.has("path", n.Path != "") {
		h.string("path", &n.Path)
	}
	h.string("text", &n.Text)
}
