package importer

import (
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

// parse returns the document's root, nil for an empty one. Where the text is no YAML, ok is
// false and d says where and why.
func parse(src *source) (root *yaml.Node, d Diagnostic, ok bool) {
	dec := yaml.NewDecoder(shallow(strings.NewReader(src.text)))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case err == io.EOF:
		return nil, d, true
	case err != nil:
		return nil, syntaxError(src, err), false
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		line := max(more.Line, 1)
		col, end := src.whole(line)
		return nil, Diagnostic{Line: line, Col: col, EndCol: end, Message: "A second document begins here; only one is read.",
			Fix: "remove one of them"}, false
	case err != io.EOF:
		return nil, syntaxError(src, err), false
	}
	if len(doc.Content) == 0 {
		return nil, d, true
	}
	return doc.Content[0], d, true
}

// maxFrames is how many calls the parser may stand in, some three for each level of nesting. It
// reads ahead by no more than 2,000 levels.
const maxFrames = 2000

var errDeep = errors.New("exceeded max depth")

// shallowReader is a text that ends with errDeep where the parser, which calls itself for each
// level, has gone too deep: WebAssembly's stack ends with the program, and no recover helps.
type shallowReader struct {
	text   io.Reader
	frames int // of the parser's caller
}

// shallow gives the parser text as long as it stays within maxFrames of the caller.
func shallow(text io.Reader) io.Reader {
	var pcs [512]uintptr
	return &shallowReader{text, runtime.Callers(0, pcs[:])}
}

func (r *shallowReader) Read(p []byte) (int, error) {
	var pc [1]uintptr
	if runtime.Callers(r.frames+maxFrames, pc[:]) > 0 {
		return 0, errDeep
	}
	return r.text.Read(p[:min(len(p), 512)])
}

// lineFeed gives the parser one line at a time and so knows how far it has read when it fails.
type lineFeed struct {
	src  *source
	next int // lines given
	rest string
}

func (f *lineFeed) Read(p []byte) (int, error) {
	if f.rest == "" {
		if f.next == len(f.src.lines) {
			return 0, io.EOF
		}
		end := len(f.src.text)
		if f.next+1 < len(f.src.lines) {
			end = f.src.lines[f.next+1]
		}
		f.rest = f.src.text[f.src.lines[f.next]:end]
		f.next++
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// syntaxError turns the parser's error into a place. The parser names the line in which the
// surrounding structure began, counted from 0 or 1 by the kind of error; what it has read when
// it fails is one line too far at most, or some blank ones. So the line is the last one without
// which the error goes away. An error about what is not closed before the text ends stays where
// the structure began.
func syntaxError(src *source, err error) Diagnostic {
	message, named := splitError(err)
	feed := &lineFeed{src: src}
	dec := yaml.NewDecoder(shallow(feed))
	for again := error(nil); again == nil; {
		var doc yaml.Node
		again = dec.Decode(&doc)
	}
	line := feed.next
	atEnd := line == len(src.lines)
	for tries := 0; tries < 8 && line > 1; tries++ {
		if before, _ := splitError(decodeLines(src, line-1)); before != message {
			break
		}
		line--
		atEnd = false
	}
	if atEnd && named > 0 && unclosed(message) {
		line = named
	}
	for line > 1 && strings.TrimSpace(src.line(line)) == "" {
		line--
	}
	col, end := src.whole(line)
	return Diagnostic{Line: line, Col: col, EndCol: end, Message: explain(message)}
}

// decodeLines parses the first n lines.
func decodeLines(src *source, n int) error {
	end := len(src.text)
	if n < len(src.lines) {
		end = src.lines[n]
	}
	var doc yaml.Node
	err := yaml.NewDecoder(shallow(strings.NewReader(src.text[:end]))).Decode(&doc)
	if err == io.EOF { // no document
		return nil
	}
	return err
}

// splitError returns the parser's words without prefix and line, and the line as it counts it.
func splitError(err error) (message string, line int) {
	if err == nil {
		return "", 0
	}
	message = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "input error: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if n, text, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(n); err == nil {
				return text, line
			}
		}
	}
	return message, 0
}

// unclosed reports whether a message is about a structure that does not end.
func unclosed(message string) bool {
	return strings.Contains(message, "unexpected end of stream") || strings.Contains(message, "did not find expected ',' or") ||
		strings.Contains(message, "did not find expected node content")
}

// explanations says what the parser's commonest messages mean to one who writes a document.
var explanations = map[string]string{
	"mapping values are not allowed in this context":         "A colon stands where no key can be: quote the text before it, or mend the indentation.",
	"did not find expected key":                              "No key stands where one is expected: mend the indentation of this line.",
	"could not find expected ':'":                            "A key without a colon: write key: value.",
	"found character that cannot start any token":            "A value cannot begin with this character (a tab, @ or `): quote it, and indent with spaces.",
	"did not find expected '-' indicator":                    "An item of a list must begin with a dash at the list's indentation.",
	"found unexpected end of stream":                         "A quote that is opened here is not closed.",
	"did not find expected ',' or ']'":                       "A list that is opened with [ is not closed, or an item lacks its comma.",
	"did not find expected ',' or '}'":                       "A map that is opened with { is not closed, or an entry lacks its comma.",
	"did not find expected <document start>":                 "The document has ended before this line: mend the indentation.",
	"did not find expected node content":                     "A value is missing here.",
	"block sequence entries are not allowed in this context": "A dash stands where no list item can be: begin the list on a line of its own.",
	"found a tab character that violates indentation":        "Indent with spaces: tabs are not allowed.",
}

func explain(message string) string {
	if text, ok := explanations[message]; ok {
		return text
	}
	if strings.HasPrefix(message, "exceeded max depth") {
		return "The document is nested too deeply; at most " + strconv.Itoa(MaxDepth) + " levels are read."
	}
	return "Not YAML: " + scenario.Quote(message) + "."
}
