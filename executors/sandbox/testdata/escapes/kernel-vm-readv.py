# layer: seccomp
# expect: policy
attempt("process_vm_readv", syscall, 310, PARENT, 0, 0, 0, 0, 0)
