package hw

// Power is a placeholder replaced below.
type Power struct{}

var powers [NumArch]Power
