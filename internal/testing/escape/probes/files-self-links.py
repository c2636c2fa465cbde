# layer: root
# open: landlock
# Under landlock these tell the path of the runtime, which sys.prefix tells too.
attempt("readlink self/exe", os.readlink, "/proc/self/exe")
attempt("open self/cwd", os.open, "/proc/self/cwd", os.O_RDONLY)
