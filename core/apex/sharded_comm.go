package apex

import "distopt/core/optim"

// nextComm returns the communication stream of the next launch: the only one, or with Apex #1895
// each in turn.
func (s *Sharded) nextComm() optim.Stream {
	n := s.l.Options.Later.CommStreams
	if n <= 1 {
		return optim.Comm
	}
	stream := optim.Comm + optim.Stream(s.comm)
	s.comm = (s.comm + 1) % n
	return stream
}

// waitComm makes Main wait for everything on the communication streams.
func (s *Sharded) waitComm() {
	for i := range max(s.l.Options.Later.CommStreams, 1) {
		s.rt.Wait(optim.Main, optim.Comm+optim.Stream(i))
	}
}

// collective begins a coalesced group.
func (s *Sharded) collective(stream optim.Stream, group optim.Group, size int, op optim.ReduceOp) *optim.Collective {
	s.coalesced++
	c := &s.w.collective
	*c = optim.Collective{Stream: stream, Group: group, Size: size, Op: op, Members: c.Members[:0]}
	return c
}
