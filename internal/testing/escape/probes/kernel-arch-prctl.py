# layer: seccomp
# Faults of cpuid, the large registers, another vdso, shadow stacks.
for code, arg in ((0x1012, 0), (0x1011, 0), (0x1023, 18), (0x2001, 0), (0x2003, 0x10000), (0x5001, 1), (0x5003, 1)):
    attempt("arch_prctl %#x" % code, syscall, "arch_prctl", code, arg)
