# layer: root, user, landlock
import sys
for p in [os.__file__, sys.executable, sys.prefix + "/lib/escaped.py", os.path.join(sys.prefix, "..", "boot.py"), os.path.join(sys.prefix, "..", "image.json")]:
    attempt("write " + p, open, p, "r+b" if os.path.exists(p) else "wb")
    attempt("unlink " + p, os.unlink, p)
    attempt("rename " + p, os.rename, p, p + ".old")
