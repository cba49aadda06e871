package parallel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRankOrder(t *testing.T) {
	g, err := NewGrid(64, 4, 2, 2, 1, 8)
	require.NoError(t, err)
	require.Equal(t, 4, g.DP)
	// Tensor fastest, then context, then data, then pipeline.
	require.Equal(t, 32+2*8+1*4+3, g.Rank(Coord{Tensor: 3, Context: 1, Data: 2, Stage: 1}))
	for rank := range g.World() {
		require.Equal(t, rank, g.Rank(g.Coord(rank)))
	}
}

func TestGroups(t *testing.T) {
	g, err := NewGrid(16, 2, 1, 2, 1, 8)
	require.NoError(t, err)
	g.Redundant = 2
	for _, tt := range []struct {
		kind Kind
		rank int
		want []int
	}{
		{Tensor, 5, []int{4, 5}},
		{Process, 11, []int{9, 11, 13, 15}},
		{Distributed, 13, []int{13, 15}},
		{Distributed, 9, []int{9, 11}},
		{Redundant, 9, []int{9, 13}},
		{Redundant, 15, []int{11, 15}},
		{Pipeline, 9, []int{1, 9}},
		{Embedding, 9, []int{1, 9}},
		{Stage, 9, []int{8, 9, 10, 11, 12, 13, 14, 15}},
		{Expert, 9, []int{9}},
		{ExpertTensor, 9, []int{8, 9}},
		{ExpertProcess, 9, []int{9, 11, 13, 15}},
		{ExpertDistributed, 9, []int{9, 11}},
	} {
		require.Equal(t, tt.want, g.Group(tt.kind, tt.rank).Ranks(), "%s group of %d", tt.kind, tt.rank)
	}
	// Four experts of one piece each: neighbours hold different ones.
	g, err = g.WithExperts(4, 1)
	require.NoError(t, err)
	for _, tt := range []struct {
		kind Kind
		rank int
		want []int
	}{
		{Expert, 10, []int{8, 9, 10, 11}},
		{ExpertTensor, 10, []int{10}},
		{ExpertModel, 13, []int{12, 13, 14, 15}},
		{ExpertProcess, 13, []int{9, 13}},
		{ExpertDistributed, 13, []int{13}},
		{Process, 11, []int{9, 11, 13, 15}},
	} {
		require.Equal(t, tt.want, g.Group(tt.kind, tt.rank).Ranks(), "%s group of %d", tt.kind, tt.rank)
	}
	g.EP, g.ETP = 2, 2
	require.Equal(t, []int{9, 11}, g.Group(Expert, 11).Ranks())
	require.Equal(t, []int{11, 15}, g.Group(ExpertProcess, 11).Ranks())
	_, err = g.WithExperts(3, 0)
	require.ErrorContains(t, err, "expert_model_parallel_size: got 3")
	g.PP, g.DP, g.EP, g.ETP = 4, 2, 0, 0
	require.Equal(t, []int{1, 13}, g.Group(Embedding, 13).Ranks())
	require.Zero(t, g.Group(Embedding, 5).Size)
}

// Groups of one kind cut the ranks into disjoint sets, and placements count what a list counts.
func TestGroupsPartitionRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		g := Grid{TP: 1 + r.IntN(5), CP: 1 + r.IntN(3), DP: 1 + r.IntN(6), PP: 1 + r.IntN(4), PerNode: 1 + r.IntN(9)}
		divisors := []int{}
		for d := 1; d <= g.Process(); d++ {
			if g.Process()%d == 0 {
				divisors = append(divisors, d)
			}
		}
		g.Redundant = divisors[r.IntN(len(divisors))]
		if with, err := g.WithExperts(1+r.IntN(4), 1+r.IntN(2)); err == nil {
			g = with
		}
		for kind := range NumKinds {
			for rank := range g.World() {
				group := g.Group(kind, rank)
				if group.Size == 0 {
					require.Contains(t, []Kind{Embedding, ExpertDistributed}, kind)
					continue
				}
				ranks := group.Ranks()
				require.True(t, slices.Contains(ranks, rank), "%+v %s %d", g, kind, rank)
				perNode := map[int]int{}
				most := 0
				for _, member := range ranks {
					require.Equal(t, group, g.Group(kind, member), "%+v %s %d", g, kind, member)
					perNode[g.Node(member)]++
					most = max(most, perNode[g.Node(member)])
				}
				require.Equal(t, Placement{Ranks: len(ranks), Nodes: len(perNode), PerNode: most}, g.Placement(group))
			}
		}
	}
}

func TestNewGridRefuses(t *testing.T) {
	for _, tt := range []struct{ world, tp, cp, pp int }{
		{0, 1, 1, 1}, {8, 3, 1, 1}, {8, 16, 1, 1}, {8, -1, 1, 1}, {8, MaxWorld, MaxWorld, MaxWorld}, {MaxWorld + 1, 1, 1, 1},
	} {
		_, err := NewGrid(tt.world, tt.tp, tt.cp, tt.pp, 1, 8)
		require.Error(t, err, "%+v", tt)
	}
}
