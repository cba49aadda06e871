package canvas

import "distopt/web/derive"

// Raster turns segments into pixels, one row per call. It keeps its scratch memory between
// calls, so that a frame allocates nothing.
type Raster struct {
	cover []uint32 // pixel-major: coverage of each class, in 1/pixel of a pixel
}

// A pixel is divided into 2^fine parts, so that thousands of spans in one add up to their share.
const (
	fine  = 20
	pixel = 1 << fine
)

// floor is the least coverage shown where a pixel holds any of a class: a span
// thinner than a pixel stays visible, and many of them still read as a density.
const floor = pixel * 72 / 256

// Row draws segments between instants t0 and t1 into dst, one entry per device pixel.
// A pixel is the mix of what it covers, by share of its time, over the ground colour.
func (r *Raster) Row(dst []uint32, strips []*derive.Strip, t0, t1 float64, colours *[derive.NumClasses]uint32, ground uint32) {
	w := len(dst)
	n := w * int(derive.NumClasses)
	if cap(r.cover) < n {
		r.cover = make([]uint32, n)
	}
	cover := r.cover[:n]
	clear(cover)
	scale := float64(w) * pixel / (t1 - t0)
	limit := w * pixel
	var used [derive.NumClasses]bool
	for _, s := range strips {
		first := s.FirstVisible(int64(t0))
		if s.FirstFrom(int64(t1))-first > crowd*w {
			if sums := s.Sums(); sums != nil {
				addSums(cover, sums, w, t0, t1)
				for _, c := range sums.Classes {
					used[c] = true
				}
				continue
			}
		}
		for i := first; i < len(s.Start); i++ {
			a := int((float64(s.Start[i]) - t0) * scale)
			if a >= limit {
				break
			}
			b := int((float64(s.End[i]) - t0) * scale)
			class := s.Class[i]
			used[class] = true
			if s.Parts == nil {
				addCover(cover, int(class), a, b, limit)
				continue
			}
			parts := s.Parts[s.Work[i]]
			if b-a < 2*pixel { // under two pixels: spread the parts evenly
				share := 0
				for _, p := range parts {
					share += int(p.End - p.Start)
				}
				addCover(cover, int(class), a, a+int(float64(b-a)*float64(share)/65536), limit)
				continue
			}
			length := float64(b - a)
			for _, p := range parts {
				addCover(cover, int(class), a+int(length*float64(p.Start)/65536), a+int(length*float64(p.End)/65536), limit)
			}
		}
	}
	var classes [derive.NumClasses]int
	count := 0
	for c, u := range used {
		if u {
			classes[count] = c
			count++
		}
	}
	for x := range dst {
		dst[x] = blend(cover[x*int(derive.NumClasses):], classes[:count], colours, ground)
	}
}

// crowd is how many segments a pixel must hold for sums to be cheaper than segments one by one.
const crowd = 4

// addSums adds what the segments of a strip cover, pixel by pixel.
func addSums(cover []uint32, sums *derive.Sums, w int, t0, t1 float64) {
	var before, after [derive.NumClasses]int64
	each := (t1 - t0) / float64(w)
	scale := pixel / each
	at := sums.At(int64(t0), 0, &before)
	for x := range w {
		at = sums.At(int64(t0+float64(x+1)*each), at, &after)
		for i, c := range sums.Classes {
			if n := after[i] - before[i]; n > 0 {
				cover[x*int(derive.NumClasses)+int(c)] += max(uint32(float64(n)*scale), 1)
			}
		}
		before = after
	}
}

// addCover adds the run [a, b), in parts of a pixel.
func addCover(cover []uint32, class, a, b, limit int) {
	a, b = max(a, 0), min(b, limit)
	if b < a {
		return
	}
	const classes = int(derive.NumClasses)
	first, last := a>>fine, b>>fine
	if first == last {
		if first<<fine < limit {
			cover[first*classes+class] += max(uint32(b-a), 1)
		}
		return
	}
	if rest := uint32(pixel - a&(pixel-1)); rest > 0 {
		cover[first*classes+class] += rest
	}
	for x := first + 1; x < last; x++ {
		cover[x*classes+class] += pixel
	}
	if rest := uint32(b & (pixel - 1)); rest > 0 {
		cover[last*classes+class] += rest
	}
}

// blend mixes the classes of one pixel over the ground.
func blend(cover []uint32, classes []int, colours *[derive.NumClasses]uint32, ground uint32) uint32 {
	var sum, red, green, blue uint32
	for _, c := range classes {
		if cover[c] == 0 {
			continue
		}
		k := min(max(cover[c], floor)>>(fine-8), 256)
		sum += k
		col := colours[c]
		red += col & 255 * k
		green += col >> 8 & 255 * k
		blue += col >> 16 & 255 * k
	}
	if sum == 0 {
		return 0 // transparent: washes and grid lines below show through
	}
	if sum < 256 {
		rest := 256 - sum
		red += ground & 255 * rest
		green += ground >> 8 & 255 * rest
		blue += ground >> 16 & 255 * rest
		sum = 256
	}
	return red/sum | green/sum<<8 | blue/sum<<16 | 255<<24
}
