package share

import (
	"bufio"
	"bytes"
	"compress/flate"
	_ "embed" // the frozen dictionary
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

// dict1 is the dictionary of version 1: NeMo's keys, and the presets as they were when the format
// was made. dict2 stands before it in version 2: the presets of Megatron-Core as they were when it
// was made. Neither must ever change; presets may.
var (
	//go:embed dict1.txt
	dict1 string
	//go:embed dict2.txt
	dict2 string
)

// dictionary returns that of a version, nothing if there is no such version.
func dictionary(version int) []byte {
	switch version {
	case 1:
		return []byte(dict1)
	case Version:
		return []byte(dict2 + dict1)
	}
	return nil
}

const (
	prefix   = "c="
	checkLen = 3 // bytes of the checksum before the compressed record: the low 24 bits of its CRC-32
)

// Encode returns the fragment of a link, without "#": "c=VERSION." and base64url characters. It is
// of version 1 unless the later one makes it much shorter.
func Encode(l *Link) (string, error) {
	record := appendRecord(nil, l)
	if _, err := parseRecord(record); err != nil { // the same limits as on the way in
		return "", err
	}
	if len(record) > MaxInflated {
		return "", tooLong("record", len(record), MaxInflated)
	}
	first, err := encode(record, 1)
	if err != nil {
		return "", err
	}
	fragment, err := encode(record, Version)
	if err != nil {
		return "", err
	}
	if len(fragment) > len(first)-len(first)/8 { // earlier programs read version 1, too
		fragment = first
	}
	if len(fragment) > MaxFragment {
		return "", tooLong("fragment", len(fragment), MaxFragment)
	}
	return fragment, nil
}

// encode writes a record in a version of the format.
func encode(record []byte, version int) (string, error) {
	var b bytes.Buffer
	b.Write(checksum(record))
	w, err := flate.NewWriterDict(&b, flate.BestCompression, dictionary(version))
	if err != nil {
		return "", err
	}
	if _, err := w.Write(record); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return prefix + strconv.Itoa(version) + "." + base64.RawURLEncoding.EncodeToString(b.Bytes()), nil
}

func tooLong(what string, got, limit int) error {
	return &Error{Reason: TooLong, Detail: fmt.Sprintf("the %s has %d bytes, at most %d are possible", what, got, limit)}
}

// checksum returns what tells a whole record from a changed one.
func checksum(record []byte) []byte {
	sum := crc32.ChecksumIEEE(record)
	return []byte{byte(sum >> 16), byte(sum >> 8), byte(sum)}
}

// Decode opens a fragment, with or without "#", or a whole address that ends in one. Other parts
// of the fragment, behind "&", are not looked at. Every error is an *Error.
func Decode(fragment string) (*Link, error) {
	if len(fragment) > MaxFragment+1000 { // an address may stand before it
		return nil, tooLong("link", len(fragment), MaxFragment)
	}
	version, code, err := cut(fragment)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(version) // cut has checked it
	dict := dictionary(n)
	if dict == nil {
		return nil, &Error{Reason: Newer, Version: version}
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil {
		return nil, notBase64(code)
	}
	if len(data) < checkLen {
		return nil, &Error{Reason: CutOff}
	}
	record, err := inflate(data[checkLen:], dict)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(checksum(record), data[:checkLen]) {
		return nil, &Error{Reason: Damaged}
	}
	return parseRecord(record)
}

// cut finds version and code in a fragment.
func cut(fragment string) (version, code string, err error) {
	if i := strings.IndexByte(fragment, '#'); i >= 0 {
		fragment = fragment[i+1:]
	}
	for part := range strings.SplitSeq(fragment, "&") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(part), prefix)
		if !ok {
			continue
		}
		version, code, ok = strings.Cut(rest, ".")
		if n, err := strconv.Atoi(version); !ok || err != nil || n < 1 || strconv.Itoa(n) != version || len(version) > 6 {
			continue
		}
		// Mail and chat add signs that end a sentence or a bracket.
		return version, strings.TrimRight(code, "=.,;:!?)>]}'\"*` \t\r\n"), nil
	}
	return "", "", &Error{Reason: NoLink}
}

// notBase64 names the first character that cannot stand in a link.
func notBase64(code string) error {
	for i, r := range code {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return &Error{Reason: NotText, Detail: fmt.Sprintf("character %d of its code is %q, and only letters, digits, - and _ are possible", i+1, r)}
		}
	}
	return &Error{Reason: CutOff} // a length, or last bits, that whole bytes do not give
}

// inflate decompresses a record of at most MaxInflated bytes.
func inflate(data, dict []byte) ([]byte, error) {
	src := bufio.NewReaderSize(bytes.NewReader(data), 512) // an io.ByteReader: flate reads no further than it needs
	r := flate.NewReaderDict(src, dict)
	record, err := io.ReadAll(io.LimitReader(r, MaxInflated+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &Error{Reason: CutOff}
	case err != nil:
		return nil, &Error{Reason: Damaged}
	case len(record) > MaxInflated:
		return nil, tooLong("record", len(record), MaxInflated)
	}
	if _, err := src.ReadByte(); err != io.EOF {
		return nil, &Error{Reason: Damaged}
	}
	return record, nil
}
