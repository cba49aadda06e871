package hw

// underCopy is how many times as long work takes beside a copy kernel that takes so many SMs of
// 132. Products: medians over four shapes in 16 bit and FP8, neighbours averaged where more taken
// SMs cost less (gemm_under_copy). Memory: a bf16 addition of 268M elements at 4, 16 and 32
// (add_bf16_268M_under_copy), linear between. TestTakenFollowsFromMeasurements derives both.
var underCopy = [...]struct {
	taken           int
	product, memory float64
}{
	{0, 1, 1},
	{1, 1.137, 1.005},
	{2, 1.137, 1.010},
	{4, 1.244, 1.021},
	{8, 1.244, 1.040},
	{16, 1.308, 1.078},
	{24, 1.352, 1.122},
	{32, 1.508, 1.167},
}

// CopyUnderProduct is the part of its own speed that a copy keeps beside a product (16 and 24
// taken SMs; gemm_under_copy and copy_alone).
const CopyUnderProduct = 0.9

// Taken returns how many times as long products and memory-bound kernels take on sms SMs of which
// others take so many. Between measured points it is linear; it depends on the taken share, so
// that the same communication slows a larger GPU less.
func Taken(taken, sms int) (product, memory float64) {
	at := float64(taken) * float64(Reference.SMs) / float64(sms)
	last := len(underCopy) - 1
	for i := 1; i <= last; i++ {
		low, high := &underCopy[i-1], &underCopy[i]
		if at <= float64(high.taken) {
			f := (at - float64(low.taken)) / float64(high.taken-low.taken)
			return low.product + float64(f*(high.product-low.product)), low.memory + float64(f*(high.memory-low.memory))
		}
	}
	return underCopy[last].product, underCopy[last].memory
}
