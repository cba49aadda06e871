package apex

import (
	"fmt"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/model"
	"distopt/core/units"
)

// Layout is the state of parameters, fragments and buckets of one pipeline stage. It is the same
// on every rank of the distributed group but for the local shards, which Local derives.
//
// Placement is incremental: buckets and fragments are only ever appended, in the order in which
// parameters are initialised, and their order matters (differences §2: sync follows it).
type Layout struct {
	Options    Options
	Alignment  units.Elems
	BucketSize units.Elems // of every bucket
	ShardSize  units.Elems // BucketSize / W

	Params []model.Param      // registration order, chunks ascending; flags as the optimizer set them
	Groups [][]bucket.ParamID // the optimizer's parameter groups
	Group  []GroupRef         // where each parameter stands in Groups

	Buckets []bucket.Bucket // Buckets[i].ID == i
	// Fragments lists each parameter's fragments, dependencies included, in the order of the
	// parameter's own list (it differs from bucket order for linked buckets: 4, 3, 2, 5).
	Fragments [][]FragmentRef

	placed     []bool // has a fragment list, maybe an empty one
	unplaced   int
	lastPlaced bucket.ParamID
	fragments  int // all fragments so far
}

// FragmentRef points at Buckets[Bucket].Fragments[Index].
type FragmentRef struct {
	Bucket bucket.ID
	Index  int32
}

// GroupRef is a parameter's place in the optimizer's groups. Group -1: in none.
type GroupRef struct {
	Group int32
	Index int32
}

// NewLayout returns a layout without buckets. params are in registration order and are copied;
// groups are the optimizer's parameter groups, in which every parameter stands at most once.
// It fails on impossible options and on layouts that would be too large to build.
func NewLayout(o Options, params []model.Param, groups [][]bucket.ParamID) (*Layout, error) {
	size, shard, err := o.BucketSize()
	if err != nil {
		return nil, err
	}
	if err := checkBucketCount(o, params); err != nil {
		return nil, err
	}
	l := &Layout{
		Options:    o,
		Alignment:  o.Alignment(),
		BucketSize: size,
		ShardSize:  shard,
		Params:     append([]model.Param(nil), params...),
		Groups:     groups,
		Group:      make([]GroupRef, len(params)),
		Fragments:  make([][]FragmentRef, len(params)),
		placed:     make([]bool, len(params)),
		unplaced:   len(params),
	}
	for p := range l.Group {
		l.Group[p] = GroupRef{Group: -1, Index: -1}
	}
	for g, group := range groups {
		for i, p := range group {
			if p < 0 || int(p) >= len(params) {
				return nil, fmt.Errorf("parameter group %d: got parameter %d, want 0 to %d", g, p, len(params)-1)
			}
			if l.Group[p].Group >= 0 {
				return nil, fmt.Errorf("parameter group %d: %s is already in group %d", g, params[p].Name, l.Group[p].Group)
			}
			l.Group[p] = GroupRef{Group: int32(g), Index: int32(i)}
		}
	}
	return l, nil
}

// Placed reports whether p has been given its fragments (a parameter without elements has none).
func (l *Layout) Placed(p bucket.ParamID) bool { return l.placed[p] }

// AllPlaced reports whether every parameter has been placed.
func (l *Layout) AllPlaced() bool { return l.unplaced == 0 }

// Use returns the elements in use and the elements of all buckets.
func (l *Layout) Use() (filled, size units.Elems) {
	for i := range l.Buckets {
		filled += l.Buckets[i].Filled
		size += l.Buckets[i].Size
	}
	return filled, size
}

// WarnsOfPadding reports whether Apex warns of buckets that are used to less than 70 percent. It
// looks once, when the last parameter has been placed, and misses the case in which NeMo places an
// FP8 tensor last, whose fragments are attached only after the look.
func (l *Layout) WarnsOfPadding() bool {
	if !l.AllPlaced() || len(l.Params) == 0 || l.Options.NeMo && l.Params[l.lastPlaced].FP8 {
		return false
	}
	filled, size := l.Use()
	return float64(filled)/float64(size) < 0.7
}

// DTypes returns the triple with which p is placed when nothing else is asked for: the default
// one, in NeMo with raw bytes in the all-gather for an FP8 tensor.
func (l *Layout) DTypes(p bucket.ParamID) bucket.DTypes {
	d := bucket.DTypes{State: l.Options.State, GradSync: l.Options.GradSync, ParamSync: l.Options.ParamSync}
	if l.Options.NeMo && l.Params[p].FP8 {
		d.ParamSync = dtype.U8
	}
	return d
}

// Place gives p its fragments, with the dtypes of DTypes. It does nothing if p has them already.
func (l *Layout) Place(p bucket.ParamID) { l.PlaceAs(p, l.DTypes(p)) }

// PlaceAs gives p its fragments in buckets of the triple d.
//
// The search for the last bucket of a triple ends at bucket 0 without comparing it: as long as
// bucket 0 can be filled, a parameter of any triple may begin there, with bucket 0's dtypes. The
// first parameter of all makes bucket 0 even if it has no elements, hence no fragments.
func (l *Layout) PlaceAs(p bucket.ParamID, d bucket.DTypes) {
	if l.placed[p] {
		return
	}
	l.placed[p] = true
	l.unplaced--
	l.lastPlaced = p
	numel := l.Params[p].Numel
	last := l.lastBucket(d)
	if last < 0 {
		last = l.newBucket(d, 0)
	}
	for pos := units.Elems(0); pos < numel; {
		b := &l.Buckets[last]
		start := roundUp(b.Filled, l.Alignment)
		n := min(numel-pos, b.Size-start)
		if n <= 0 || !b.Open {
			last = l.newBucket(d, b.Offset+b.Size)
			continue
		}
		l.append(last, bucket.Fragment{
			Param:    p,
			InParam:  bucket.Range{Start: pos, End: pos + n},
			InBucket: bucket.Range{Start: start, End: start + n},
		})
		b.Filled = start + n
		pos += n
	}
}

// lastBucket walks down from the newest bucket to one of the triple d; -1: there are no buckets.
func (l *Layout) lastBucket(d bucket.DTypes) bucket.ID {
	id := bucket.ID(len(l.Buckets)) - 1
	for id > 0 && l.Buckets[id].DTypes != d {
		id--
	}
	return id
}

// newBucket appends an open bucket. Main parameters are stored if asked for or if the gathered
// dtype is not the default one, remainders only for the default one.
func (l *Layout) newBucket(d bucket.DTypes, offset units.Elems) bucket.ID {
	id := bucket.ID(len(l.Buckets))
	plain := d.ParamSync == l.Options.ParamSync
	l.Buckets = append(l.Buckets, bucket.Bucket{
		ID:               id,
		Size:             l.BucketSize,
		Shard:            l.ShardSize,
		Open:             true,
		DTypes:           d,
		Offset:           offset,
		StoresParams:     l.Options.StoreParams || !plain,
		StoresRemainders: l.Options.StoreParamRemainders && plain,
	})
	return id
}

// append adds f to bucket id and to its parameter's list.
func (l *Layout) append(id bucket.ID, f bucket.Fragment) {
	b := &l.Buckets[id]
	l.Fragments[f.Param] = append(l.Fragments[f.Param], FragmentRef{Bucket: id, Index: int32(len(b.Fragments))})
	b.Fragments = append(b.Fragments, f)
	l.fragments++
}

// depend makes bucket id wait for p without holding any of it.
func (l *Layout) depend(id bucket.ID, p bucket.ParamID) {
	n, size := l.Params[p].Numel, l.Buckets[id].Size
	l.append(id, bucket.Fragment{
		Param:    p,
		InParam:  bucket.Range{Start: n, End: n},
		InBucket: bucket.Range{Start: size, End: size},
	})
}

func roundUp(n, k units.Elems) units.Elems { return (n + k - 1) / k * k }
