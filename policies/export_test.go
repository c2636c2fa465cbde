package policies

// ApartCPU bounds the processor time of trees in processes of their own, for a test.
func ApartCPU(seconds int) { apartCPU = seconds }
