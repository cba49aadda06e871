package derive

// Sums tell how much time the segments of a strip cover up to an instant, without a look at all of
// them: a view over thousands of segments a pixel costs as much as one over a few.
type Sums struct {
	Classes []Class // those of the strip

	strip *Strip
	slot  [NumClasses]int8 // of a class in Classes
	share []int64          // of a work: what its parts take of it, in 1/65536; nil: all
	// before holds, for the first of every sumsEvery segments and for each of Classes, the time that
	// the segments before it cover.
	before []int64
}

// sumsEvery is how many segments are looked at to tell the sum at an instant.
const sumsEvery = 16

// Sums returns the sums of s, made when they are first asked for; nil if segments overlap.
func (s *Strip) Sums() *Sums {
	if s.sums == nil {
		s.sums = newSums(s)
	}
	if s.sums.Classes == nil {
		return nil
	}
	return s.sums
}

func newSums(s *Strip) *Sums {
	m := &Sums{strip: s}
	var used [NumClasses]bool
	for i := range s.Start {
		if i > 0 && s.Start[i] < s.End[i-1] {
			return m
		}
		used[s.Class[i]] = true
	}
	for c, u := range used {
		if u {
			m.slot[c] = int8(len(m.Classes))
			m.Classes = append(m.Classes, Class(c))
		}
	}
	if s.Parts != nil {
		m.share = make([]int64, len(s.Parts))
		for w, parts := range s.Parts {
			for _, p := range parts {
				m.share[w] += int64(p.End - p.Start)
			}
		}
	}
	k := len(m.Classes)
	m.before = make([]int64, 0, (s.Len()/sumsEvery+1)*k)
	var sum [NumClasses]int64
	for i := range s.Start {
		if i%sumsEvery == 0 {
			m.before = append(m.before, sum[:k]...)
		}
		sum[m.slot[s.Class[i]]] += m.covered(i, s.End[i])
	}
	return m
}

// covered returns what segment i covers up to t, which is after its start. A segment without a length
// counts 1, so that it can be told from nothing.
func (m *Sums) covered(i int, t int64) int64 {
	d := max(min(m.strip.End[i], t)-m.strip.Start[i], 1)
	if m.share != nil {
		d = max(d*m.share[m.strip.Work[i]]>>16, 1)
	}
	return d
}

// At writes how much each of Classes covers up to t. first is the answer of an earlier call for an
// instant that is not later, or 0; the answer is the first segment that starts at t or later.
func (m *Sums) At(t int64, first int, sum *[NumClasses]int64) int {
	start := m.strip.Start
	// Instants that are asked for one after the other lie close to each other.
	step, low := 1, first
	for first < len(start) && start[first] < t {
		low = first + 1
		first += step
		step *= 2
	}
	for high := min(first, len(start)); low < high; {
		if mid := (low + high) / 2; start[mid] < t {
			low = mid + 1
		} else {
			high = mid
		}
	}
	first = low
	if first == 0 {
		*sum = [NumClasses]int64{}
		return 0
	}
	block := (first - 1) / sumsEvery
	k := len(m.Classes)
	copy(sum[:k], m.before[block*k:])
	for i := block * sumsEvery; i < first; i++ {
		sum[m.slot[m.strip.Class[i]]] += m.covered(i, t)
	}
	return first
}
