package derive

import (
	"distopt/core/report"
	"distopt/web/ids"
	"distopt/web/state"
)

func (c *Cache) detailsOf(s *state.State, a, b *report.Result) *Details {
	slot := s.Shown
	if s.Compare && s.Select.Bucket >= 0 {
		slot = s.Select.Slot
	} else if s.Compare {
		slot = state.A
	}
	r := s.Slots[slot].Result
	k := detailsKey{tab: s.DetailTab, table: s.Table, compare: s.Compare, scroll: s.Scroll}
	if r != nil {
		stage := s.Stage
		if s.Select.Bucket >= 0 && s.Select.Slot == slot {
			stage = s.Select.Stage
		}
		if stage >= len(r.Stages) {
			stage = 0
		}
		k.collectives = len(r.Collectives)
		lk := listKey{r, slot, stage}
		k.list = c.list.get(lk, func() *BucketList { return bucketList(r, slot, stage) })
		tk := tableKey{lk, s.DetailTab, s.Sort, s.Select}
		switch s.DetailTab {
		case state.Buckets:
			if s.Table {
				k.rows = c.table.get(tk, func() *Table { return bucketTable(r, stage, s.Sort, s.Select, slot) })
				break
			}
			id := int32(0)
			if s.Select.Bucket >= 0 && s.Select.Slot == slot && s.Select.Stage == stage {
				id = s.Select.Bucket
			}
			bk := bucketKey{lk, id}
			k.bucket = c.bucket.get(bk, func() *BucketDetail { return bucketDetail(r, slot, stage, id) })
			fk := fragmentsKey{k.bucket, s.FragmentSort}
			k.fragments = c.fragments.get(fk, func() *Table { return fragmentTable(k.bucket, s.FragmentSort) })
		case state.Collectives:
			k.rows = c.table.get(tk, func() *Table { return collectives(r, s.Sort, s.Select, slot) })
		}
	}
	if s.Compare && a != nil && b != nil {
		dk := [2]*report.Result{a, b}
		k.diff = c.diff.get(dk, func() *Differences { return differences(a, b) })
	}
	vk := versionsKey{len(s.Versions.Rows), s.Versions.Of, s.Versions.Request, s.Versions.Failure, s.Versions.Of != s.Current().Doc.Text}
	k.versions = c.versions.get(vk, func() *FourVersions { return fourVersions(&s.Versions, vk.stale) })
	if r != nil {
		fk := findingsKey{r, s.Slots[slot].Read.Scenario.Family()}
		k.findings = c.findings.get(fk, func() *Findings { return findings(r, fk.family) })
	}
	k.numerics, k.progress = c.numericsOf(s), labProgress(&s.Lab)
	return c.details.get(k, func() *Details { return details(k, r) })
}

func details(k detailsKey, r *report.Result) *Details {
	d := &Details{Tab: k.tab, AsTable: k.table, List: k.list, Bucket: k.bucket, Table: k.rows, Fragments: k.fragments, Differences: k.diff, Versions: k.versions, Numerics: k.numerics, Findings: k.findings, Scroll: k.scroll, Empty: r == nil}
	d.Picks = k.tab == state.Buckets || k.numerics != nil && len(k.numerics.Rows) > 0
	if k.compare {
		d.Tabs = append(d.Tabs, DetailTab{Tab: state.Differences, ID: ids.TabDiff, Name: "Differences"})
	}
	count := ""
	if k.list != nil {
		count = Count(int64(k.list.Len()))
		for i := range k.list.Stages {
			n := itoa(i)
			d.Stages = append(d.Stages, Option{n, "Stage " + n, i == k.list.Stage})
		}
	}
	found := ""
	if k.findings != nil && len(k.findings.Rows) > 0 {
		found = Count(int64(len(k.findings.Rows)))
	}
	d.Tabs = append(d.Tabs,
		DetailTab{Tab: state.SelectionTab, ID: "tab-selection", Name: "Selection", Narrow: true},
		DetailTab{Tab: state.Buckets, ID: ids.TabBuckets, Name: "Buckets", Count: count},
		DetailTab{Tab: state.Collectives, ID: ids.TabColls, Name: "Collectives", Count: Count(int64(k.collectives))},
		DetailTab{Tab: state.Findings, ID: ids.TabFindings, Name: "Findings", Count: found},
		DetailTab{Tab: state.FourVersions, ID: ids.TabFour, Name: "Four versions"},
		DetailTab{Tab: state.Numerics, ID: ids.TabNumerics, Name: "Numerics", Count: k.progress},
	)
	return d
}

func status(k statusKey) *Status {
	st := &Status{}
	if k.errors > 0 {
		st.Error = plural(k.errors, "error")
	}
	if k.errors > 0 && k.stale && k.a != nil {
		st.Left = append(st.Left, "Showing the last valid configuration")
	}
	if k.a != nil {
		f := k.a.Figures
		of := ""
		if k.b != nil {
			f.Tasks += k.b.Figures.Tasks
			f.Spans += k.b.Figures.Spans
			of = " of A and B"
		}
		parameters := Large(f.Parameters)
		if k.b != nil && k.b.Figures.Parameters != f.Parameters {
			parameters += " and " + Large(k.b.Figures.Parameters)
		}
		st.Left = append(st.Left, Count(int64(f.Tasks))+" tasks"+of+" simulated", Count(int64(f.Spans))+" operations drawn", "model "+k.a.ModelVersion, parameters+" parameters")
	}
	return st
}

func dialog(k dialogKey) *Dialog {
	d := &Dialog{Kind: k.kind, Link: k.shared.Link, Copy: k.shared.Copy, Length: Count(int64(len(k.shared.Link))), Import: k.read, Failed: k.refused, Model: k.model}
	if k.read != nil && !k.read.OK() {
		first := problems(k.read).Items[0]
		d.Failed = "Imported, but not simulated: "
		if first.Path != "" {
			d.Failed += first.Path + ": "
		}
		d.Failed += first.Text
	}
	return d
}
