# layer: seccomp
# chmod and its kin answer success and must have done nothing: the test looks at
# mode, owner and times of the victim afterwards.
import shutil
for fn in (lambda: os.chmod(VICTIM, 0o777), lambda: os.utime(VICTIM, (0, 0)), lambda: os.chown(VICTIM, 65534, 65534)):
    try:
        fn()
    except OSError:
        pass
attempt("setxattr", os.setxattr, VICTIM, "user.escaped", b"1")
