// Package units gives sizes, counts and rates a type each, and one way to print them.
//
// Memory prints in KiB, MiB, GiB; rates and FLOP/s in powers of 1000 (style of the field).
package units

// Bytes counts bytes.
type Bytes int64

// Elems counts elements of a tensor, whatever their dtype.
type Elems int64

// FLOPs counts floating point operations.
type FLOPs float64

// Seconds is a predicted length; simulated instants are sched.Time.
type Seconds float64

// BytesPerSecond is a rate, 1 GB/s = 1e9.
type BytesPerSecond float64

// FLOPsPerSecond is a compute rate.
type FLOPsPerSecond float64

// Sizes of memory.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// Nanoseconds rounds s to whole nanoseconds, once, when a task is made.
func (s Seconds) Nanoseconds() int64 {
	if s <= 0 {
		return 0
	}
	return int64(float64(float64(s)*1e9) + 0.5)
}
