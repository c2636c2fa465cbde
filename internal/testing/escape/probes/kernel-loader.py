# layer: landlock, scratch
# What comes with the environment of a program that is executed, and programs
# that are none.
def run(program):
    os.execve(program, [program], {"LD_PRELOAD": input_file, "LD_LIBRARY_PATH": os.environ["HOME"], "LD_AUDIT": input_file, "GLIBC_TUNABLES": "glibc.malloc.check=3"})
with open(input_file, "wb") as f:
    f.write(b"#!/bin/sh\n")
for program in ("/bin/sh", "/usr/bin/env", "/usr/bin/sudo", "/usr/bin/su", SECRET, input_file):
    attempt("execute " + program, run, program)
