# layer: seccomp, ipc namespace
for name, nr in (("shmget", 29), ("shmat", 30), ("semget", 64), ("msgget", 68), ("mq_open", 240), ("epoll_create1", 291), ("eventfd2", 290), ("timerfd_create", 283), ("inotify_init1", 294), ("signalfd4", 289), ("memfd_secret", 447), ("pidfd_open", 434), ("landlock_create_ruleset", 444), ("splice", 275), ("tee", 276), ("vmsplice", 278), ("timer_create", 222), ("modify_ldt", 154)):
    attempt(name, syscall, nr, 0, 0, 0, 0, 0)
