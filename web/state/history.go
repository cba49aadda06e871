package state

// snapshot is what undo brings back: both documents, so that one list runs over form, editor,
// presets and imports.
type snapshot struct {
	docs  [2]Document
	shown int
	by    string // what kind of edit made it; equal kinds in a row are one step
}

// history is the list of snapshots before and after the present.
type history struct {
	past, future []snapshot
	lastBy       string
	edits        int // counts edits, to tell a pause from the next one
}

// pause ends a run of edits, ms.
const pause = 900

// rest asks to be told when no edit follows for a while.
func (s *State) rest() Effect {
	s.history.edits++
	return Later{pause, EditRested{s.history.edits}}
}

const historyLimit = 200

func (s *State) snapshot(by string) snapshot {
	return snapshot{docs: [2]Document{s.Slots[A].Doc, s.Slots[B].Doc}, shown: s.Shown, by: by}
}

// remember keeps the present before an edit. A run of edits of the same kind (by) is one step.
func (s *State) remember(by string) {
	s.history.future = nil
	if by != "" && by == s.history.lastBy {
		return
	}
	past := s.history.past
	if len(past) >= historyLimit {
		past = past[1:]
	}
	s.history.past = append(past[:len(past):len(past)], s.snapshot(by))
	s.history.lastBy = by
}

// CanUndo and CanRedo say which way the history goes on.
func (s *State) CanUndo() bool { return len(s.history.past) > 0 }
func (s *State) CanRedo() bool { return len(s.history.future) > 0 }

func (s *State) undo() bool {
	past := s.history.past
	if len(past) == 0 {
		return false
	}
	last := past[len(past)-1]
	s.history.future = append(s.history.future[:len(s.history.future):len(s.history.future)], s.snapshot(last.by))
	s.history.past = past[:len(past)-1]
	s.restore(last)
	return true
}

func (s *State) redo() bool {
	future := s.history.future
	if len(future) == 0 {
		return false
	}
	last := future[len(future)-1]
	s.history.past = append(s.history.past[:len(s.history.past):len(s.history.past)], s.snapshot(last.by))
	s.history.future = future[:len(future)-1]
	s.restore(last)
	return true
}

func (s *State) restore(to snapshot) {
	s.history.lastBy = ""
	s.Shown = to.shown
	for i := range s.Slots {
		s.setDoc(i, to.docs[i])
	}
}
