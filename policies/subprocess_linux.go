package policies

import (
	"runtime"
	"runtime/debug"
	"syscall"
)

// limitApart limits this process permanently, before it reads anything.
func limitApart(seconds uint64) error {
	runtime.GOMAXPROCS(1)
	debug.SetMaxStack(apartMemory / 4)
	debug.SetMemoryLimit(apartMemory * 3 / 4)
	for resource, limit := range map[int]uint64{
		syscall.RLIMIT_DATA: apartMemory, syscall.RLIMIT_CPU: seconds, syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 0,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) // the deciding process has priority
}
