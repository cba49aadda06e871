package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFieldTable(t *testing.T) {
	seen := make(map[string]bool)
	group := GroupModel
	for i := range Fields {
		f := &Fields[i]
		require.False(t, seen[f.Path], f.Path)
		seen[f.Path] = true
		require.NotEmpty(t, f.Label, f.Path)
		require.True(t, strings.HasSuffix(f.Help, "."), f.Path)
		require.NotEmpty(t, f.Source, f.Path)
		require.Equal(t, f.Optional, f.Null != "", f.Path)
		require.GreaterOrEqual(t, f.Group, group, "%s: groups in reading order", f.Path)
		group = f.Group
		require.Contains(t, []int{0, len(f.Choices)}, len(f.Names), f.Path)
		got, ok := ByPath(f.Path)
		require.True(t, ok)
		require.Same(t, f, got)

		s := Default(NeMoAdam)
		text := f.Get(&s)
		if f.Kind != Float {
			require.Equal(t, f.Default, text, f.Path)
		}
		before := s
		require.Nil(t, f.Set(&s, text))
		require.Equal(t, before, s, f.Path)
		require.NotNil(t, f.Set(&s, "certainly wrong"), f.Path)
		require.Equal(t, before, s, "%s: a wrong value changes nothing", f.Path)
		if f.Optional {
			require.Nil(t, f.Set(&s, Null), f.Path)
			require.Equal(t, Null, f.Get(&s), f.Path)
		}
		if f.Kind == Choice {
			for a, c := range f.Aliases {
				require.Contains(t, f.Choices, c, f.Path)
				require.Equal(t, strings.ToLower(a), a, f.Path)
			}
			for _, c := range f.Choices {
				require.Nil(t, f.Set(&s, strings.ToUpper(c)), f.Path)
				require.Equal(t, c, f.Get(&s), f.Path)
			}
		}
	}
	require.Equal(t, NumGroups-1, group)
	_, ok := ByPath("model.nothing")
	require.False(t, ok)
}

// Each field is its own: setting one leaves the others.
func TestFieldsAreApart(t *testing.T) {
	for i := range Fields {
		f := &Fields[i]
		s := Default(NeMoAdam)
		switch v := f.at(&s).(type) {
		case *int:
			*v = 7777
		case *float64:
			*v = 0.75
		case *bool:
			*v = !*v
		case *string:
			*v = "x"
		}
		d := Default(NeMoAdam)
		for j := range Fields {
			if g := &Fields[j]; j != i {
				require.Equal(t, g.Get(&d), g.Get(&s), "%s changes %s", f.Path, g.Path)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
		ok   bool
	}{
		{"12", 12, true}, {"1_000", 1000, true}, {"0x1F", 31, true}, {"0o17", 15, true}, {"0b101", 5, true}, {"1e3", 1000, true},
		{"12.0", 12, true}, {"-4", -4, true}, {"+4", 4, true}, {"12.5", 0, false}, {"", 0, false}, {"twelve", 0, false},
		{"nan", 0, false}, {"inf", 0, false}, {"1e300", 0, false}, {"99999999999999999999", 0, false}, {"1:30", 0, false},
	} {
		n, ok := parseInt(c.text)
		require.Equal(t, c.ok, ok, c.text)
		if ok {
			require.Equal(t, c.want, n, c.text)
		}
	}
}

func TestText(t *testing.T) {
	require.Equal(t, `"a\u202eb"`, Quote("a\u202eb"))
	require.Equal(t, "a-b_c.d", Quote("a-b_c.d"))
	require.Equal(t, `""`, Quote(""))
	require.Len(t, []rune(Visible(strings.Repeat("ä", 1000))), maxVisible+1)
	require.Equal(t, "a\\u200bb", Visible("a\u200bb"))

	words := []string{"overlap_param_sync", "overlap_grad_sync", "dtype", "name"}
	for text, want := range map[string]string{
		"overlap_parm_sync": "overlap_param_sync", "OVERLAP_GRAD_SYNC": "overlap_grad_sync", "dytpe": "dtype", "nmae": "name", "bucket": "", "na": "",
	} {
		near, _ := Nearest(text, words)
		if want == "" {
			_, ok := Nearest(text, words)
			require.False(t, ok, text)
			continue
		}
		require.Equal(t, want, near, text)
	}
}

func TestPresetTexts(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range Presets() {
		require.False(t, seen[p.ID])
		seen[p.ID] = true
		require.Contains(t, p.Text, "\nname: "+p.Name+"\n")
		require.True(t, strings.HasPrefix(p.Text, "# "), "%s: says what it is", p.ID)
	}
	require.Equal(t, "gpt3-5b-fp8", Presets()[0].ID)
}
