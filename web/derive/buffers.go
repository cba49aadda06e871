package derive

import (
	"slices"
	"strings"

	"distopt/core/report"
)

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
		slices.SortStableFunc(order, func(a, b *report.Bucket) int { return int(min(max(a.Offset-b.Offset, -1), 1)) })
		for _, b := range order {
			if b.Offset > at {
				row.Slots = append(row.Slots, BufferSlot{at, b.Offset, -1, false})
				hole += b.Offset - at
			}
			row.Slots = append(row.Slots, BufferSlot{b.Offset, b.Offset + b.Size, b.ID, b.Set == selected.Set})
			at = b.Offset + b.Size
		}
		if at < buf.Length {
			row.Slots = append(row.Slots, BufferSlot{at, buf.Length, -1, false})
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
		if key == BufferKey(b) {
			out = append(out, b)
		}
	}
	return out
}

// BufferKey is the key of the buffer that holds a bucket.
func BufferKey(b *report.Bucket) string { return b.State + "/" + b.Grad + "/" + b.Sync }
