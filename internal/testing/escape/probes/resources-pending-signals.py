# layer: seccomp, rlimits
# Each that waits with something to tell is memory of the kernel.
import signal, struct
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
info = struct.pack("iiiiii", signal.SIGRTMIN, 0, -1, 0, os.getpid(), os.getuid()) + b"\0" * 104
most = 10_000
sent = 0
try:
    for sent in range(most):
        syscall("rt_sigqueueinfo", os.getpid(), int(signal.SIGRTMIN), info)
except OSError as e:
    print("blocked after", sent, e.errno)
else:
    print("ESCAPED", sent)
