package optim

// GradStatus is where the gradients of a bucket stand.
//
// GradReady → GradPartial when any of its parameters is copied in → GradFilled when all have been
// generated since the last launch → GradSyncing at the launch → GradReady when it has finished.
type GradStatus uint8

// The states of a bucket's gradients.
const (
	GradReady   GradStatus = iota // the shard holds every gradient reduced so far
	GradPartial                   // some fragments hold unreduced gradients
	GradFilled                    // every fragment does; sync may start
	GradSyncing                   // reduce-scatter in flight
)

var gradStatusNames = [...]string{"READY", "PARTIALLY_FILLED", "FULLY_FILLED", "SYNCING"}

// String returns the name that the real code uses.
func (g GradStatus) String() string { return gradStatusNames[g] }

// ParamStatus is where the updated parameters of a bucket stand, from a step until the last of
// its parameters has been copied out.
type ParamStatus uint8

// The states of a bucket's parameters.
const (
	ParamConsumed ParamStatus = iota // no such bucket: the parameters hold its values
	ParamSharded                     // each rank holds its updated shard
	ParamSyncing                     // all-gather in flight
	ParamReady                       // gathered, not yet copied into every parameter
)

var paramStatusNames = [...]string{"CONSUMED", "SHARDED", "SYNCING", "READY"}

// String returns the name that the real code uses; ParamConsumed is a deleted bucket there.
func (p ParamStatus) String() string { return paramStatusNames[p] }
