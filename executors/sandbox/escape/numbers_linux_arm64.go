package escape

// archNumbers are calls that newer architectures no longer have.
var archNumbers map[string]int
