# layer: root, user, landlock
here = os.getcwd()
for up in (os.path.dirname(here), os.path.dirname(os.path.dirname(here))):
    if up == "/":
        up = "/task/.."
    for name in ("session-1", "box-1", "box-2"):
        if os.path.join(up, name) != here:
            attempt(up + "/" + name, open, os.path.join(up, name, "input"))
attempt("make beside", os.mkdir, os.path.join(os.path.dirname(here), "escaped"))
