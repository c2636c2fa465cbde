# layer: seccomp
# expect: policy
attempt("process_vm_readv", syscall, "process_vm_readv", PARENT, 0, 0, 0, 0, 0)
