package share

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"distopt/core/sched"
)

// Tags of the record's fields. A tag is never used again for something else; each of these
// occurs at most once, but for tagView.
const (
	tagTextA     = 1
	tagTextB     = 2
	tagNameA     = 3
	tagNameB     = 4
	tagPresetA   = 5
	tagPresetB   = 6
	tagStepTimeA = 7 // unsigned varint, ns
	tagStepTimeB = 8
	tagModel     = 9
	tagView      = 10 // length of the key as unsigned varint, key, value
)

// appendRecord writes the fields of a link: tag, length, bytes, both numbers as unsigned varints.
func appendRecord(b []byte, l *Link) []byte {
	b = appendField(b, tagTextA, []byte(l.A.Text))
	if l.Both {
		b = appendField(b, tagTextB, []byte(l.B.Text))
	}
	text := func(tag uint64, s string) {
		if s != "" {
			b = appendField(b, tag, []byte(s))
		}
	}
	number := func(tag uint64, n sched.Time) {
		if n > 0 {
			b = appendField(b, tag, binary.AppendUvarint(nil, uint64(n)))
		}
	}
	text(tagNameA, l.A.Name)
	text(tagPresetA, l.A.Preset)
	number(tagStepTimeA, l.A.StepTime)
	if l.Both {
		text(tagNameB, l.B.Name)
		text(tagPresetB, l.B.Preset)
		number(tagStepTimeB, l.B.StepTime)
	}
	text(tagModel, l.Model)
	for _, k := range slices.Sorted(maps.Keys(l.View)) {
		entry := binary.AppendUvarint(nil, uint64(len(k)))
		b = appendField(b, tagView, append(append(entry, k...), l.View[k]...))
	}
	return b
}

func appendField(b []byte, tag uint64, value []byte) []byte {
	b = binary.AppendUvarint(b, tag)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// parseRecord reads a record. Unknown tags are skipped.
func parseRecord(b []byte) (*Link, error) {
	l := &Link{}
	seen := make(map[uint64]bool)
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag == 0 {
			return nil, invalid("a field has no tag")
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, invalid("a field is longer than the record")
		}
		value := b[n : n+int(size)]
		b = b[n+int(size):]
		if tag != tagView && tag <= tagModel {
			if seen[tag] {
				return nil, invalid("a field is given twice")
			}
			seen[tag] = true
		}
		if err := l.set(tag, value); err != nil {
			return nil, err
		}
	}
	if !seen[tagTextA] {
		return nil, invalid("there is no text in it")
	}
	l.Both = seen[tagTextB]
	if !l.Both {
		l.B = Document{}
	}
	return l, nil
}

// set stores one field.
func (l *Link) set(tag uint64, value []byte) error {
	text := func(to *string, what string, limit int) error {
		if len(value) > limit {
			return &Error{Reason: TooLong, Detail: fmt.Sprintf("%s has %d bytes, at most %d are read", what, len(value), limit)}
		}
		if !utf8.Valid(value) {
			return invalid(what + " is not UTF-8 text")
		}
		*to = string(value)
		return nil
	}
	number := func(to *sched.Time) error {
		n, size := binary.Uvarint(value)
		if size != len(value) || size <= 0 || n > 1<<62 {
			return invalid("a step time is no number")
		}
		*to = sched.Time(n)
		return nil
	}
	switch tag {
	case tagTextA:
		return text(&l.A.Text, "configuration A", MaxText)
	case tagTextB:
		return text(&l.B.Text, "configuration B", MaxText)
	case tagNameA:
		return text(&l.A.Name, "a name", MaxName)
	case tagNameB:
		return text(&l.B.Name, "a name", MaxName)
	case tagPresetA:
		return text(&l.A.Preset, "a preset's name", MaxName)
	case tagPresetB:
		return text(&l.B.Preset, "a preset's name", MaxName)
	case tagStepTimeA:
		return number(&l.A.StepTime)
	case tagStepTimeB:
		return number(&l.B.StepTime)
	case tagModel:
		return text(&l.Model, "the model's version", MaxName)
	case tagView:
		return l.setView(value)
	}
	return nil
}

func (l *Link) setView(value []byte) error {
	size, n := binary.Uvarint(value)
	if n <= 0 || size > uint64(len(value)-n) {
		return invalid("an entry of the view has no key")
	}
	key, rest := value[n:n+int(size)], value[n+int(size):]
	if len(key) > MaxSetting || len(rest) > MaxSetting || len(l.View) >= MaxView {
		return &Error{Reason: TooLong, Detail: fmt.Sprintf("its view has more than %d entries or one of more than %d bytes", MaxView, MaxSetting)}
	}
	if !utf8.Valid(key) || !utf8.Valid(rest) {
		return invalid("an entry of the view is not UTF-8 text")
	}
	if l.View == nil {
		l.View = make(map[string]string)
	}
	if _, twice := l.View[string(key)]; twice {
		return invalid("an entry of the view is given twice")
	}
	l.View[string(key)] = string(rest)
	return nil
}

func invalid(detail string) error { return &Error{Reason: NotValid, Detail: detail} }
