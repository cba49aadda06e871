package parallel

// Kind names a kind of process group.
type Kind uint8

// The groups to which every rank belongs, one of each kind (Embedding: first and last stage only).
const (
	Tensor      Kind = iota
	Context          // one sequence, cut in pieces
	Process          // the optimizer's: data times context parallel, of one stage
	Distributed      // shards the optimizer state: neighbours within the process group
	Redundant        // equal shards in the copies of the distributed group
	Pipeline         // one rank of every stage
	Embedding        // first and last stage of a pipeline group
	Stage            // all ranks of a stage: FP8 amaxes of modules
	World

	Expert            // holds all experts once, but for ExpertTensor
	ExpertTensor      // one expert, cut in pieces
	ExpertModel       // both: all experts
	ExpertProcess     // the same experts: over which their gradients are reduced
	ExpertDistributed // shards the experts' optimizer state: neighbours within ExpertProcess
	NumKinds
)

var kindNames = [NumKinds]string{
	"tensor", "context", "data", "distributed", "redundant", "pipeline", "embedding", "stage", "world",
	"expert", "expert tensor", "expert model", "expert data", "expert distributed",
}

// String returns the name in lower case.
func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown group"
}

// Group is a process group. The members of each kind are evenly spaced.
type Group struct {
	First  int // lowest rank
	Stride int
	Size   int // 0: rank is in no such group
}

// Group returns the group of a kind to which rank belongs.
func (g Grid) Group(kind Kind, rank int) Group {
	c := g.Coord(rank)
	switch kind {
	case Tensor:
		c.Tensor = 0
		return Group{g.Rank(c), 1, g.TP}
	case Context:
		c.Context = 0
		return Group{g.Rank(c), g.TP, g.CP}
	case Process:
		c.Context, c.Data = 0, 0
		return Group{g.Rank(c), g.TP, g.Process()}
	case Distributed, Redundant:
		w := g.Distributed()
		if w == 0 {
			return Group{}
		}
		position := c.Data*g.CP + c.Context
		c.Context, c.Data = 0, 0
		if kind == Distributed {
			return Group{g.Rank(c) + position/w*w*g.TP, g.TP, w}
		}
		return Group{g.Rank(c) + position%w*g.TP, w * g.TP, g.Redundant}
	case Pipeline:
		c.Stage = 0
		return Group{g.Rank(c), g.PerStage(), g.PP}
	case Embedding:
		if c.Stage != 0 && c.Stage != g.PP-1 {
			return Group{}
		}
		c.Stage = 0
		if g.PP == 1 {
			return Group{g.Rank(c), g.PerStage(), 1}
		}
		return Group{g.Rank(c), g.PerStage() * (g.PP - 1), 2}
	case Stage:
		return Group{c.Stage * g.PerStage(), 1, g.PerStage()}
	case World:
		return Group{0, 1, g.World()}
	case Expert, ExpertTensor, ExpertModel, ExpertProcess, ExpertDistributed:
		return g.expertGroup(kind, rank)
	}
	return Group{}
}

func (g Grid) expertGroup(kind Kind, rank int) Group {
	ep, etp := g.experts()
	model, data := ep*etp, g.ExpertProcess()
	at := rank % g.PerStage()
	first := rank - at
	switch kind {
	case Expert:
		return Group{first + at/model*model + at%etp, etp, ep}
	case ExpertTensor:
		return Group{first + at/etp*etp, 1, etp}
	case ExpertModel:
		return Group{first + at/model*model, 1, model}
	case ExpertDistributed:
		if g.Redundant < 1 || data%g.Redundant != 0 {
			return Group{}
		}
		data /= g.Redundant
		first += at / model / data * data * model
	}
	return Group{first + at%model, model, data}
}

// Ranks lists the members in ascending order.
func (r Group) Ranks() []int {
	ranks := make([]int, r.Size)
	for i := range ranks {
		ranks[i] = r.First + i*r.Stride
	}
	return ranks
}

// Placement says how a group lies on nodes.
type Placement struct {
	Ranks   int
	Nodes   int // nodes with at least one member
	PerNode int // most members on one node
}

// Placement returns how a group lies on nodes. Groups that begin inside a node may hold fewer
// ranks on their first and last one.
func (g Grid) Placement(r Group) Placement {
	p := Placement{Ranks: r.Size}
	if r.Stride >= g.PerNode { // never two on a node
		p.Nodes = r.Size
		p.PerNode = min(r.Size, 1)
		return p
	}
	for i := 0; i < r.Size; {
		rank := r.First + i*r.Stride
		end := (g.Node(rank) + 1) * g.PerNode
		n := min((end-rank+r.Stride-1)/r.Stride, r.Size-i)
		p.PerNode = max(p.PerNode, n)
		p.Nodes++
		i += n
	}
	return p
}

// SameNode reports whether two ranks run on one node.
func (g Grid) SameNode(a, b int) bool { return g.Node(a) == g.Node(b) }
