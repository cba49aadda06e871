package step

import (
	"distopt/core/sched"
	"distopt/core/units"
)

// shared is what the recorders of all stages have in common.
type shared struct {
	rec       *Recording
	stages    int
	perDevice int // streams, without the host's
	works     interner
	syncWork  WorkID

	// Messages of whole steps are laid out densely, by edge between virtual stages, step, direction
	// and microbatch: a stage meets those of an edge one after the other. Those of the tail come as
	// they are met.
	steps               int
	edges, perEdge      int
	firstMicros, micros int
	late                map[int64]sched.MessageID
	messageWork         WorkID
	callWork            [5][3]WorkID // of a call, by messages and by those of the busier direction
	losses              []sched.MessageID

	joints [numJoints][][]contribution
}

// numComms is the number of communicators of a device, one per optim.Group.
const numComms = len(groups)

// newShared makes rec ready to be recorded into, for about so many tasks.
func newShared(rec *Recording, stages, chunks int, cfg *Config, firstMicros, steps, tasks int) *shared {
	s := &shared{
		rec: rec, stages: stages, steps: steps, edges: stages*chunks - 1,
		firstMicros: firstMicros, micros: cfg.Microbatches,
		perDevice: firstComm + max(cfg.CommStreams, 1),
	}
	s.perEdge = 2 * s.before(steps)
	messages := s.edges * s.perEdge
	p := &rec.Program
	*rec = Recording{
		Program: sched.Program{
			Devices: stages, Comms: stages * numComms,
			Streams:  empty(p.Streams, stages*(1+s.perDevice)),
			Tasks:    empty(p.Tasks, tasks),
			Deps:     empty(p.Deps, tasks/2),
			Parts:    empty(p.Parts, 2*messages+16*stages),
			Messages: empty(p.Messages, messages+8*stages),
		},
		Labels:      empty(rec.Labels, tasks),
		Works:       empty(rec.Works, 0),
		BucketIDs:   empty(rec.BucketIDs, 0),
		MessageWork: empty(rec.MessageWork, messages+8*stages),
		StepStart:   make([][]sched.TaskID, stages),
	}
	for d := range stages {
		p.Streams = append(p.Streams, sched.Stream{Device: int32(d)})
	}
	for i := range stages * s.perDevice {
		p.Streams = append(p.Streams, sched.Stream{Device: int32(i / s.perDevice)})
	}
	s.works.init(rec, cfg.RecomputeLayers)
	s.syncWork = s.works.intern(Work{Kind: HostSync})
	s.messageWork = s.exchangeWork(1, 1, cfg)
	s.late = map[int64]sched.MessageID{}
	p.Messages, rec.MessageWork = p.Messages[:messages], rec.MessageWork[:messages]
	for i := range messages {
		p.Messages[i] = sched.Message{From: sched.None, To: sched.None}
		rec.MessageWork[i] = s.messageWork
	}
	return s
}

// before returns the microbatches of all steps before step k.
func (s *shared) before(k int) int {
	if k == 0 {
		return 0
	}
	return s.firstMicros + (k-1)*s.micros
}

// exchangeWork is the work of a call of n messages, of which most go in the busier direction.
func (s *shared) exchangeWork(n, most int, cfg *Config) WorkID {
	if id := s.callWork[n][most]; id != 0 {
		return id
	}
	id := s.works.intern(Work{
		Kind: Exchange, Op: OpSend, Bytes: units.Bytes(most) * cfg.messageBytes(), Count: n, Group: Pipeline, DType: cfg.DType,
	})
	s.callWork[n][most] = id // never 0, which is the host's wait
	return id
}

// empty returns a slice without elements that has room for n, in old's memory if that suffices.
func empty[T any](old []T, n int) []T {
	if cap(old) >= n {
		return old[:0]
	}
	return make([]T, 0, n)
}
