package derive

import (
	"cmp"
	"slices"
	"strings"

	"distopt/core/report"
)

// slotLimit is how many buckets of a buffer are drawn one by one: more are narrower than a pixel.
const slotLimit = 2000

// buffers lists the contiguous buffers of a stage with the slots that buckets use.
func buffers(st *report.Stage, selected *report.Bucket) (rows []BufferRow) {
	all := st.GradBuffers
	if len(all) == 0 {
		all = st.ParamBuffers
	}
	for _, buf := range all {
		row := BufferRow{Label: bufferLabel(buf.Key), Length: buf.Length}
		at := int64(0)
		var hole int64
		order := bucketsOf(st, buf.Key)
		byOffset := func(a, b *report.Bucket) int { return cmp.Compare(a.Offset, b.Offset) }
		if !slices.IsSortedFunc(order, byOffset) {
			slices.SortStableFunc(order, byOffset)
		}
		for _, b := range order {
			if b.Offset > at {
				row.Slots = append(row.Slots, BufferSlot{Start: at, End: b.Offset, Bucket: -1})
				hole += b.Offset - at
			}
			slot := BufferSlot{Start: b.Offset, End: b.Offset + b.Size, Bucket: b.ID, Mate: b.Set == selected.Set}
			at = slot.End
			if n := len(row.Slots); n > 0 && len(order) > slotLimit && b.ID != selected.ID {
				if last := &row.Slots[n-1]; last.End == slot.Start && last.Bucket >= 0 && last.Bucket != selected.ID && last.Mate == slot.Mate {
					last.End, last.Run = slot.End, true
					continue
				}
			}
			row.Slots = append(row.Slots, slot)
		}
		if at < buf.Length {
			row.Slots = append(row.Slots, BufferSlot{Start: at, End: buf.Length, Bucket: -1})
			hole += buf.Length - at
		}
		if hole > 0 && len(order) > 0 {
			row.Note = "never used: "
			if len(st.GradBuffers) > 0 {
				row.Note += Size(hole*dtypeSize(order[0].Grad)) + " of gradients"
			}
			if len(st.ParamBuffers) > 0 {
				if len(st.GradBuffers) > 0 {
					row.Note += ", "
				}
				row.Note += Size(hole*dtypeSize(order[0].Sync)) + " of parameters"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// bufferLabel names a buffer by what it sends: the dtypes of grad and param sync.
func bufferLabel(key string) string {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return key
	}
	return DTypeName(parts[1]) + ", " + DTypeName(parts[2])
}

// bucketsOf lists the buckets whose dtype triple a buffer's key names.
func bucketsOf(st *report.Stage, key string) (out []*report.Bucket) {
	for i := range st.Buckets {
		b := &st.Buckets[i]
		state, rest, _ := strings.Cut(key, "/")
		grad, sync, _ := strings.Cut(rest, "/")
		if state == b.State && grad == b.Grad && sync == b.Sync {
			out = append(out, b)
		}
	}
	return out
}
