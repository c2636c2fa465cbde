# layer: seccomp
for fn, args in ((os.setxattr, (VICTIM, "user.escaped", b"1")), (os.removexattr, (VICTIM, "user.x")), (os.getxattr, (VICTIM, "user.x")), (os.listxattr, (VICTIM,))):
    attempt(fn.__name__, fn, *args)
