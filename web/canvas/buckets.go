package canvas

import (
	"math"
	"strings"

	"distopt/web/derive"
)

// BucketRowHeight is the height of one bucket in the list.
const BucketRowHeight = 12

// listHead is the height of the rank names above the list.
const listHead = 16

// The columns of the list: bracket, number, stripe on the left; utilisation on the right.
const (
	listLeft  = 56
	listRight = 58
)

// groupTokens gives a group of parameters its fill and edge.
func groupTokens(group string) (fill, edge Token) {
	switch group {
	case "attention":
		return Attn, AttnEdge
	case "mlp":
		return MLP, MLPEdge
	case "embedding":
		return Embed, EmbedEdge
	}
	return Small, SmallEdge
}

func dtypeToken(d string) Token {
	switch d {
	case "fp32":
		return FP32
	case "bf16":
		return BF16
	case "fp16":
		return FP16
	}
	return FP8
}

// List draws the buckets of a stage to scale. Scroll is in pixels; only rows in view are drawn.
func List(d *Display, l *derive.BucketList, selected int32, w, h, scroll float64, measure Measure) {
	if l.Len() == 0 {
		return
	}
	left, right := float64(listLeft), w-listRight
	width := right - left
	first := max(int(scroll/BucketRowHeight), 0)
	last := min(int((scroll+h)/BucketRowHeight)+1, l.Len())
	d.clip(0, listHead, w, h)
	for i := first; i < last; i++ {
		row := l.Row(i)
		y := listHead + float64(i*BucketRowHeight) - scroll
		on := row.ID == selected
		if on {
			d.rect(0, y, w, BucketRowHeight, AccentWash)
		}
		ink, font := Text3, FontLabel
		if on {
			ink, font = Text, FontTitle
		}
		d.label(left-14, y+BucketRowHeight/2, derive.Runs([]int32{row.ID}), ink, font, AlignRight)
		d.rect(left-8, y+1, 5, BucketRowHeight-2, dtypeToken(row.DType))
		scale := width / float64(l.Largest)
		for _, s := range row.Segments {
			a, b := left+float64(s.Start)*scale, left+float64(s.End)*scale
			if s.Group == "" {
				d.hatch(a, y+1, b-a, BucketRowHeight-2, Padding, none, 4)
				continue
			}
			fill, edge := groupTokens(s.Group)
			d.rect(a, y+1, max(b-a, 1), BucketRowHeight-2, fill)
			d.rect(a, y+1, max(b-a, 1), 2, edge)
		}
		color := Text3
		if row.Low {
			color = Warn
		}
		if on {
			color = Text
		}
		d.label(w-10, y+BucketRowHeight/2, row.Utilisation, color, FontLabel, AlignRight)
	}
	bottom := min(listHead+float64(l.Len()*BucketRowHeight)-scroll, listHead+h)
	if n := l.Ranks; n > 1 && n <= 64 {
		d.alpha(0.28)
		for k := 1; k < n; k++ {
			d.rect(math.Round(left+width*float64(k)/float64(n)), listHead, 1, bottom-listHead, Shard)
		}
		d.alpha(1)
	}
	for _, s := range l.Sets {
		y0 := listHead + float64(s.First*BucketRowHeight) - scroll + 2
		y1 := listHead + float64((s.Last+1)*BucketRowHeight) - scroll - 2
		if y1 < listHead || y0 > h {
			continue
		}
		d.path(Accent, 1.5, 17, y0, 12, y0, 12, y1, 17, y1)
	}
	d.unclip()
	rankNames(d, l.Ranks, left, width, listHead/2, -1, measure)
}

// rankNames writes the ranks over their shards, as many as have room; chosen is underlined.
func rankNames(d *Display, n int, left, width, y float64, chosen int, measure Measure) {
	if n < 1 {
		return
	}
	each := width / float64(n)
	every := 1
	for wide := measure("rank "+derive.Count(int64(n-1)), FontLabel) + 8; each*float64(every) < wide && every < n; {
		every *= 2
	}
	for k := 0; k < n; k += every {
		name := "rank " + derive.Count(int64(k))
		ink, font := Text3, FontLabel
		if k == chosen {
			ink, font = Text, FontTitle
		}
		if each*float64(every) > 40 || k == 0 {
			d.label(left+each*(float64(k)+0.5), y, name, ink, font, AlignCentre)
		}
	}
}

// Bar heights.
const (
	barTop    = 20
	barHeight = 56
	barStripe = 5
	// BarHeight is that of the whole picture of one bucket.
	BarHeight = barTop + barHeight + 2*barStripe + 22
)

// Bar draws one bucket to scale between elements e0 and e1.
func Bar(d *Display, b *derive.BucketDetail, e0, e1 float64, rank int, w float64, measure Measure) {
	if b.Index < 0 || b.Size == 0 {
		return
	}
	x := func(e int64) float64 { return (float64(e) - e0) / (e1 - e0) * w }
	d.clip(0, 0, w, BarHeight)
	for _, g := range b.Gaps {
		a, z := max(x(g.Start), -8), min(x(g.End), w+8)
		if z < 0 || a > w {
			continue
		}
		d.hatch(a, barTop, z-a, barHeight, Padding, none, 6)
	}
	for i := range b.Fragments {
		f := &b.Fragments[i]
		a, z := x(f.InBucket[0]), x(f.InBucket[1])
		if z < 0 || a > w {
			continue
		}
		fill, edge := groupTokens(f.Group)
		a, z = max(a, -2), min(z, w+2)
		d.rect(a, barTop, max(z-a, 1), barHeight, fill)
		d.rect(a, barTop, max(z-a, 1), 3, edge)
		d.rect(a, barTop, 1, barHeight, edge)
	}
	for _, g := range b.Gaps {
		a, z := max(x(g.Start), 0), min(x(g.End), w)
		text := "padding " + derive.Count(g.End-g.Start)
		if wide := measure(text, FontStrong) + 12; z-a > wide+8 {
			mid := (a + z) / 2
			d.rect(mid-wide/2, barTop+barHeight/2-9, wide, 18, Surface)
			d.label(mid, barTop+barHeight/2, text, Text2, FontStrong, AlignCentre)
		}
	}
	y := float64(barTop + barHeight)
	end := min(x(b.Size), w)
	start := max(x(0), 0)
	d.rect(start, y, end-start, barStripe, dtypeToken(b.Tags[0][1]))
	d.rect(start, y+barStripe, end-start, barStripe, dtypeToken(b.Tags[1][1]))
	if b.Shard > 0 && float64(b.Shard)/(e1-e0)*w > 3 {
		for k := int64(0); k <= b.Size/b.Shard; k++ {
			if p := x(k * b.Shard); p >= -1 && p <= w+1 {
				d.rect(min(math.Round(p), w-1), barTop-6, 1, 6, Shard)
				d.alpha(0.45)
				d.rect(min(math.Round(p), w-1), barTop, 1, barHeight, Shard)
				d.alpha(1)
				d.rect(min(math.Round(p), w-1), barTop+barHeight, 1, 2*barStripe+2, Shard)
			}
		}
	}
	for i := range b.Fragments {
		f := &b.Fragments[i]
		a, z := x(f.InBucket[0]), x(f.InBucket[1])
		if z < 0 || a > w {
			continue
		}
		left := max(a, 0)
		room := min(z, w) - left - 12
		if room < 18 {
			continue
		}
		if name := fitText(f.Short, room, FontStrong, measure); name != "" {
			d.label(left+7, barTop+20, name, Text, FontStrong, AlignLeft)
		}
		if measure(f.Elements, FontLabel) <= room {
			d.label(left+7, barTop+36, f.Elements, Text2, FontLabel, AlignLeft)
		}
	}
	left := x(0)
	rankNames(d, b.Ranks, left, x(b.Size)-left, 8, rank, measure)
	if rank >= 0 && rank < b.Ranks {
		each := (x(b.Size) - left) / float64(b.Ranks)
		d.rect(left+each*float64(rank), barTop-4, each, 2, Accent)
	}
	foot := y + 2*barStripe + 11
	d.label(2, foot, derive.Count(int64(math.Round(max(e0, 0)))), Text3, FontLabel, AlignLeft)
	d.label(w/2, foot, "elements", Text3, FontLabel, AlignCentre)
	d.label(w-2, foot, derive.Count(int64(math.Round(min(e1, float64(b.Size))))), Text3, FontLabel, AlignRight)
	d.unclip()
}

// fitText cuts text to room from the left, since names differ at their end.
func fitText(text string, room float64, f Font, measure Measure) string {
	if measure(text, f) <= room {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n >= 3; n-- {
		short := "…" + strings.TrimPrefix(string(runes[len(runes)-n:]), ".")
		if measure(short, f) <= room {
			return short
		}
	}
	return ""
}

// BufferRowHeight is the height of one contiguous buffer.
const BufferRowHeight = 18

// Buffers draws the contiguous buffers to scale of the longest.
func Buffers(d *Display, b *derive.BucketDetail, w float64, measure Measure) {
	const left = 116
	longest := int64(1)
	for i := range b.Buffers {
		longest = max(longest, b.Buffers[i].Length)
	}
	for i := range b.Buffers {
		row := &b.Buffers[i]
		y := float64(i * BufferRowHeight)
		d.label(0, y+BufferRowHeight/2, fitText(row.Label, left-8, FontLabel, measure), Text2, FontLabel, AlignLeft)
		scale := (w - left) * 0.98 / float64(longest)
		end := float64(left)
		for _, s := range row.Slots {
			a, z := left+float64(s.Start)*scale, left+float64(s.End)*scale
			end = z
			wide := max(z-a-1, 0.75)
			fill, ink := Surface3, Text2
			switch {
			case s.Bucket < 0:
				d.hatch(a, y+1, wide, BufferRowHeight-3, Padding, none, 4)
				continue
			case s.Bucket == b.ID:
				fill, ink = Accent, AccentInk
			case s.Mate:
				fill, ink = AccentWash, Accent
			}
			d.rect(a, y+1, wide, BufferRowHeight-3, fill)
			name := derive.Runs([]int32{s.Bucket})
			if !s.Run && measure(name, FontLabel)+4 <= wide && (s.Mate || s.Bucket == b.ID) {
				d.label(a+wide/2, y+BufferRowHeight/2, name, ink, FontLabel, AlignCentre)
			}
		}
		if row.Note != "" && measure(row.Note, FontLabel)+12 < w-end {
			d.label(end+8, y+BufferRowHeight/2, row.Note, Text3, FontLabel, AlignLeft)
		}
	}
}
