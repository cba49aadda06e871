package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"distopt/core/bucket"
	"distopt/core/dtype"
	"distopt/core/optim/arrays"
	"distopt/core/scenario"
)

// histogram counts the watched numbers of this variant.
func (r *run) histogram(w Watch) (Histogram, error) {
	q := &r.stage.Params[w.Tensor]
	switch w.Part {
	case Param:
		t := r.after.ranks.Param(0, w.Tensor)
		var h Histogram
		if q.FP8 {
			h = codes(t.Bytes, r.storedScale(w.Tensor))
		} else {
			h = values(t.DType, 1, load(t))
		}
		h.Saturated = r.clippedIn(w.Tensor)
		return h, nil
	case Main:
		t := r.is.Params[w.Tensor].Param
		return values(t.DType, 1, load(t)), nil
	case Grad:
		var all []float32
		for rank := range r.grads {
			for _, g := range r.grads[rank][w.Tensor] {
				all = append(all, q.DType.Round(g))
			}
		}
		return values(q.DType, r.last.LossScale, all), nil
	case ExpAvg:
		return r.stored(w.Tensor, func(s *arrays.Shard) arrays.Tensor { return s.ExpAvg }), nil
	case ExpAvgSq:
		return r.stored(w.Tensor, func(s *arrays.Shard) arrays.Tensor { return s.ExpAvgSq }), nil
	}
	return Histogram{}, &scenario.FieldError{Path: "watch.part", Got: strconv.Quote(string(w.Part)), Want: fmt.Sprintf("one of %q", Parts), Fix: "set it to param"}
}

// storedScale is the scale of the bytes that an FP8 parameter holds.
func (r *run) storedScale(p bucket.ParamID) Value {
	meta := r.after.ranks.FP8Meta(0, p)
	if float32(1/meta.Scale) == meta.ScaleInv {
		return Value(meta.Scale)
	}
	return Value(1 / meta.ScaleInv) // a step was skipped after the scale had changed
}

// stored counts a state as its shards hold it. Scaled ones have a scale for each fragment.
func (r *run) stored(p bucket.ParamID, pick func(*arrays.Shard) arrays.Tensor) Histogram {
	x := make([]float32, r.stage.Params[p].Numel)
	d := r.formats.state
	r.after.parts(p, func(o owned) {
		t := pick(r.after.ranks.Shard(o.owner, o.bucket))
		d = t.DType
		t.Slice(o.start, o.end).Load(x[o.inParam:][:o.end-o.start])
	})
	scale := Value(1)
	if r.variant.Scaled {
		scale = 0
	}
	return values(d, scale, x)
}

func load(t arrays.Tensor) []float32 {
	x := make([]float32, t.Len())
	t.Load(x)
	return x
}

// codes counts E4M3 codes, from the most negative to the largest.
func codes(bytes []uint8, scale Value) Histogram {
	h := Histogram{Format: dtype.E4M3.String(), Scale: scale, Total: len(bytes)}
	var counts [256]int
	for _, code := range bytes {
		counts[code]++
	}
	h.Zero = counts[0x00] + counts[0x80]
	h.NaN = counts[0x7f] + counts[0xff]
	bin := func(code uint8) {
		v := Value(dtype.E4M3.Decode(code))
		h.Bins = append(h.Bins, Bin{Low: v, High: v, Count: counts[code]})
	}
	for code := 0xfe; code > 0x80; code-- {
		bin(uint8(code))
	}
	for code := 1; code < 0x7f; code++ {
		bin(uint8(code))
	}
	h.Bins = trim(h.Bins)
	return h
}

// values counts numbers by sign and power of two.
func values(d dtype.DType, scale Value, list []float32) Histogram {
	h := Histogram{Format: d.String(), Scale: scale, Total: len(list)}
	format := formatOf(d.String())
	var counts [2][255]int // by sign and exponent field
	for _, x := range list {
		b := math.Float32bits(x)
		field := b >> 23 & 0xff
		switch {
		case b<<1 == 0:
			h.Zero++
			continue
		case x != x:
			h.NaN++
			continue
		case field == 255:
			h.Infinite++
			continue
		}
		counts[b>>31][field]++
	}
	bins := make([]Bin, 255)
	for sign := range counts {
		for field, n := range counts[sign] {
			low := Value(math.Ldexp(1, max(field, 1)-127))
			high := 2*low - Value(math.Ldexp(1, max(field, 1)-127-format.Mantissa))
			if field == 0 {
				low, high = Value(math.Ldexp(1, -149)), low-Value(math.Ldexp(1, -149))
			}
			bins[field] = Bin{Low: low, High: high, Count: n}
		}
		part := trim(slices.Clone(bins))
		if sign == 0 {
			h.Bins = append(h.Bins, part...)
			continue
		}
		for i := range part {
			part[i].Low, part[i].High = -part[i].High, -part[i].Low
		}
		slices.Reverse(part)
		h.Bins = append(part, h.Bins...)
	}
	return h
}

// trim leaves out empty bins at both ends.
func trim(bins []Bin) []Bin {
	occupied := func(b Bin) bool { return b.Count > 0 }
	first := slices.IndexFunc(bins, occupied)
	if first < 0 {
		return nil
	}
	for bins[len(bins)-1].Count == 0 {
		bins = bins[:len(bins)-1]
	}
	return bins[first:]
}

// formatOf finds a format by its name.
func formatOf(name string) dtype.Format {
	for _, f := range dtype.Formats {
		if f.Name == name {
			return f
		}
	}
	return dtype.Formats[0]
}
