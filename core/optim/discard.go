package optim

// Discard is a Runtime that lets every effect go: for whoever is interested in events or decisions alone.
type Discard struct{}

var _ Runtime = Discard{}

func (Discard) Wait(_, _ Stream)              {}
func (Discard) WaitCall(_, _ Stream, _ int)   {}
func (Discard) ZeroGrad(*Zero)                {}
func (Discard) AccumulateGrad(*Accumulation)  {}
func (Discard) ReduceScatter(*Collective)     {}
func (Discard) AllReduceShards(*Collective)   {}
func (Discard) KeepShards(*Kept)              {}
func (Discard) AllReduceGrads(*GradReduction) {}
func (Discard) ScaleGrads(*GradScaling)       {}
func (Discard) LocalNorm(*Norm)               {}
func (Discard) AllReduceNorm(*Reduction)      {}
func (Discard) Clip(float64)                  {}
func (Discard) CheckFinite() bool             { return true }
func (Discard) Adam(*Update)                  {}
func (Discard) Cast(*Cast)                    {}
func (Discard) UpdateScaleInv(*Reduction)     {}
func (Discard) AllReduceAmax(*Reduction)      {}
func (Discard) AllGather(*Collective)         {}
func (Discard) UseParams(*ParamUse)           {}
