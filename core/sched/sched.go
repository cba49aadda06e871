// Package sched is a discrete-event engine: tasks on in-order streams, with dependencies,
// messages between devices, communicators in issue order, a host that launches at a finite
// rate, and contention between tasks that run side by side. It knows nothing of training.
//
// Instants are int64 nanoseconds. Simultaneous events run in task order, so the same program
// gives the same spans on every machine. Rates are fixed-point integers for the same reason.
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
type Task struct {
	Stream StreamID // Host(device): runs on the host itself and blocks it
	Class  Class
	Comm   CommID // communicator whose collectives run in issue order, or None
	Work   Time   // length when it runs alone on its stream
	Launch Time   // host time to issue it; it cannot end before its launch has ended
	// Deps and Messages are half-open ranges into Program.Deps and Program.Parts.
	Deps     [2]int32
	Messages [2]int32 // not empty: an exchange, which ends when all its messages have ended
}

// Message is a transfer between two exchange tasks: it starts when both have started.
type Message struct {
	Work     Time
	From, To TaskID // None while only one side is known: the message then never waits for it
}

// Rates gives the speed of a class beside others: Rates[class][mask], in 1/65536 of full speed,
// where mask has bit c set when a task of class c runs beside it on the same device.
type Rates [NumClasses][1 << NumClasses]uint32

// Stream belongs to a device.
type Stream struct{ Device int32 }

// Program is a set of tasks to place in time.
type Program struct {
	Devices  int
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

// Span is where a task lies in time.
type Span struct {
	Start, End Time
	By         TaskID // what released it (None for ByStart and ByHost)
	Cause      Cause
}
