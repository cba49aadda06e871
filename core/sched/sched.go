// Package sched is a discrete-event engine: tasks on in-order streams, with dependencies,
// messages between devices, communicators in issue order, a host that launches at a finite
// rate, and contention between tasks that run side by side. It knows nothing of training.
//
// Instants are int64 nanoseconds and rates are fixed-point integers, so the same program gives
// the same spans on every machine. What starts at an instant depends only on what has ended by
// then, never on the order in which simultaneous events are handled.
//
// Not modelled: several tasks at once on one stream, a bound on the launch queue, messages that
// slow each other down, a host that runs more than one thread.
package sched

// Time is an instant or a length in nanoseconds.
type Time int64

// TaskID, StreamID, CommID and MessageID index into a Program's slices; None means none.
type (
	TaskID    int32
	StreamID  int32
	CommID    int32
	MessageID int32
)

// None is the missing TaskID, StreamID, CommID or MessageID.
const None = -1

// Class is a contention class: what a running task takes from those beside it.
type Class uint8

// NumClasses bounds the classes of one program (rates are a table over sets of them).
const NumClasses = 6

// Task is one piece of work. Tasks of a device are listed in the order in which its host
// issues them; the tasks of one stream run in that order.
//
// A task on a host stream blocks its host from the moment the host reaches it: the host waits
// for the dependencies, then works for Work, then issues what follows.
//
// Something that several devices do together (an all-reduce over all of them) is one task on
// each of them, which depends on what every device contributes.
type Task struct {
	Stream StreamID // one of the first Devices streams: runs on that host and blocks it
	Class  Class
	Drain  bool   // host tasks: waits for everything that its host has issued before
	Comm   CommID // communicator whose collectives run in issue order, or None
	Work   Time   // length when it runs alone on its device
	Launch Time   // host time to issue it (host tasks: not used). A task cannot start before its
	// launch began nor end before its launch ended, both plus Program.Latency: a task may stand
	// for many kernels.
	// Deps and Messages are half-open ranges into Program.Deps and Program.Parts.
	Deps     [2]int32
	Messages [2]int32 // not empty: an exchange, which ends when all its messages have ended
}

// Message is a transfer between two exchange tasks: it starts when both have started. The
// messages of an exchange run side by side. Both exchanges list it among their Parts.
type Message struct {
	Work     Time
	From, To TaskID // None while only one side is known: the message then never waits for it
}

// Rates gives the speed of a class beside others: Rates[class][mask], in 1/65536 of full speed,
// where mask has bit c set when a task of class c runs beside it on the same device (bit class
// itself: another task of its own class). 0 stands for full speed, so a table may be sparse.
type Rates [NumClasses][1 << NumClasses]uint32

// FullSpeed is the rate of a task that nothing slows down.
const FullSpeed = 1 << 16

// Stream belongs to a device. A device has at most 64 streams, its host's included.
type Stream struct{ Device int32 }

// Program is a set of tasks to place in time.
type Program struct {
	Devices  int
	Latency  Time     // from the host's launch of a task to its earliest start on the device
	Streams  []Stream // the first Devices streams are the hosts of devices 0, 1, ...
	Comms    int
	Tasks    []Task
	Deps     []TaskID
	Parts    []MessageID
	Messages []Message
	Rates    *Rates // nil: no contention
}

// Cause says which condition released a task last.
type Cause uint8

// The causes, in the order in which a tie is decided.
const (
	ByStart  Cause = iota // nothing: it could start at once
	ByData                // a dependency ended
	ByStream              // the task before it on its stream ended
	ByComm                // the collective before it on its communicator ended
	ByHost                // the host launched it
	ByPeer                // an exchange waited for the other side
)

// Span is where a task lies in time. A host task's span begins when its host reaches it, so it
// covers the wait; its Cause says what ended that wait (ByHost: it did not wait).
type Span struct {
	Start, End Time
	// By is what released the task, None for ByStart. ByHost: the last task that had blocked the
	// host before it launched this one, None if there was none. ByPeer: the exchange on the other
	// side that started later; it bounds this task's end rather than its start.
	By    TaskID
	Cause Cause
}
