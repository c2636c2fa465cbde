# layer: seccomp
# More rules could only restrict, but the code behind them is not for scripts.
attempt("landlock_create_ruleset", syscall, "landlock_create_ruleset", 0, 0, 1)
attempt("landlock_restrict_self", syscall, "landlock_restrict_self", 3, 0)
