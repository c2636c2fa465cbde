# layer: environment
for k, v in os.environ.items():
    if "TOPSECRET" in k or "TOPSECRET" in v:
        print("ESCAPED", k)
for p in ("/proc/self/environ", "/proc/1/environ", "/proc/%d/environ" % PARENT, "/proc/self/cmdline", "/proc/self/maps", "/proc/self/mem"):
    attempt(p, open, p)
