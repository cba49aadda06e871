package importer

import (
	"slices"
	"strconv"
	"strings"

	"distopt/core/scenario"

	"go.yaml.in/yaml/v3"
)

// scalar writes a value as YAML: plain where that reads back as it is, else in double quotes. A
// quoted value stays quoted; in JSON every word is.
func scalar(value string, flow bool, was yaml.Style, json bool) string {
	if value == "" {
		value = scenario.Null
	}
	literal := isLiteral(value)
	switch {
	case json && !literal, !plain(value, flow):
		return strconv.Quote(value)
	case literal || json:
		return value
	case was&yaml.SingleQuotedStyle != 0:
		return "'" + value + "'"
	case was&yaml.DoubleQuotedStyle != 0:
		return `"` + value + `"`
	}
	return value
}

// isLiteral reports whether a value is a number, boolean or null, which quotes would turn into text.
func isLiteral(value string) bool {
	switch value {
	case "true", "false", "null", "True", "False":
		return true
	}
	return scalarValue(value).kind != aText
}

// plain reports whether a value can stand unquoted.
func plain(value string, flow bool) bool {
	for i := range len(value) {
		c := value[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_.+/-", c) >= 0:
		case !flow && strings.IndexByte("${},:*() ", c) >= 0:
		default:
			return false
		}
	}
	first := value[0]
	if strings.HasPrefix(value, "${") && !flow {
		return !strings.Contains(value, ": ") && !strings.Contains(value, " #") && !strings.HasSuffix(value, ":") && !strings.HasSuffix(value, " ")
	}
	if strings.ContainsAny(value, "${},:*() ") {
		return false
	}
	return first != '-' && first != '.' || len(value) > 1 && strings.Trim(value, "-.") != ""
}

// verify reads the changed text again: the field must have the value, or be gone, and everything
// else must be as it was, in the same order. Only the sections that hold the field may differ,
// in that they were missing or empty or are now.
func (e *editor) verify(out, value string, gone bool) error {
	after, _, ok := parse(newSource(out))
	if !ok {
		return e.refuse("the text would no longer be YAML")
	}
	path := strings.Join(e.keys, keySeparator)
	_, was := split(flatten(e.root), path)
	field, is := split(flatten(after), path)
	switch {
	case !slices.Equal(was, is):
		return e.refuse("other keys would change")
	case gone && len(field) > 0, !gone && (len(field) != 1 || !sameScalar(field[0].value, value)):
		return e.refuse("the text around it would change its value")
	}
	return nil
}

// split separates what lies at path or below from what does not concern it. Sections above it
// are in neither.
func split(all []flat, path string) (field, rest []flat) {
	for _, x := range all {
		switch {
		case x.path == path || strings.HasPrefix(x.path, path+keySeparator):
			field = append(field, x)
		case x.path == "" || strings.HasPrefix(path, x.path+keySeparator):
		default:
			rest = append(rest, x)
		}
	}
	return field, rest
}

// keySeparator joins keys in flat paths; no key of a checked text holds it.
const keySeparator = "\x00"

// flat is a value of a document, or the begin of a section or list, with its path.
type flat struct{ path, value string }

// flatten lists what a document holds in order, aliases as they stand.
func flatten(root *yaml.Node) []flat {
	var all []flat
	var walk func(y *yaml.Node, path string)
	walk = func(y *yaml.Node, path string) {
		switch y.Kind {
		case yaml.MappingNode:
			all = append(all, flat{path, "{"})
			for i := 0; i+1 < len(y.Content); i += 2 {
				key := y.Content[i].Value
				if path != "" {
					key = path + keySeparator + key
				}
				walk(y.Content[i+1], key)
			}
		case yaml.SequenceNode:
			all = append(all, flat{path, "["})
			for i, c := range y.Content {
				walk(c, path+keySeparator+strconv.Itoa(i))
			}
		case yaml.AliasNode:
			all = append(all, flat{path, "*" + y.Value})
		default:
			all = append(all, flat{path, y.Tag + " " + y.Value})
		}
	}
	if root != nil {
		walk(root, "")
	}
	return all
}

// sameScalar reports whether a flat value is what was to be set.
func sameScalar(flatValue, value string) bool {
	_, text, _ := strings.Cut(flatValue, " ")
	return text == value || value == "" && text == scenario.Null
}
