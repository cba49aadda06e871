package step

import (
	"fmt"

	"distopt/core/sched"
)

// joint is a kind of collective in which several stages take part.
type joint int

const (
	jointWorld     joint = iota // all stages
	jointEmbedding              // first and last
	numJoints
)

// contribution is one stage's part of a joint collective: what it waits for, which the others
// wait for too, and the slots for the others' parts among the task's dependencies.
type contribution struct {
	task  sched.TaskID
	after []sched.TaskID
	slots int32
}

// joint emits the stage's next joint collective of kind j on main. Its dependencies on other
// stages are filled in by join.
func (r *recorder) joint(j joint, w Work, comm sched.CommID) {
	r.flush()
	main := &r.streams[mainStream]
	var c contribution
	for o := range r.streams {
		if d := main.knows[o]; d != sched.None && (o == mainStream || d > main.deps[o] && d > r.synced) {
			c.after = append(c.after, d)
		}
	}
	c.task = r.emit(mainStream, w.Kind, r.works.intern(w), comm)
	p := &r.rec.Program
	c.slots = int32(len(p.Deps))
	members := 2
	if j == jointWorld {
		members = r.stages
	}
	for range (members - 1) * len(r.streams) {
		p.Deps = append(p.Deps, c.task)
	}
	n := r.made[j]
	r.made[j]++
	if n == len(r.joints[j]) {
		r.joints[j] = append(r.joints[j], nil)
	}
	r.joints[j][n] = append(r.joints[j][n], c)
}

// join connects the joint collectives of all stages.
func (s *shared) join() error {
	p := &s.rec.Program
	for j, all := range s.joints {
		members := 2
		if joint(j) == jointWorld {
			members = s.stages
		}
		for n, cs := range all {
			if len(cs) != members {
				return fmt.Errorf("collective %d between stages: %d stages take part, want %d", n, len(cs), members)
			}
			for i, c := range cs {
				at := c.slots
				for k, other := range cs {
					if k != i {
						at += int32(copy(p.Deps[at:], other.after))
					}
				}
				p.Tasks[c.task].Deps[1] = at
			}
		}
	}
	return nil
}
