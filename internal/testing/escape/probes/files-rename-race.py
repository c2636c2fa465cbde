# layer: root, landlock
# A directory moves up while its parent is walked from it.
import threading
dirs = "a/b/c"
try:
    os.makedirs(dirs)
except OSError as e:
    print("blocked mkdir", e.errno)
else:
    stop = False
    def move():
        while not stop:
            for there, back in (("a/b/c", "c"), ("c", "a/b/c")):
                try:
                    os.rename(there, back)
                except OSError:
                    pass
    mover = threading.Thread(target=move)
    got = None
    try:
        mover.start()
    except RuntimeError:
        print("blocked thread", flush=True)
        os._exit(0)
    for _ in range(3000):
        for depth in range(3, 9):
            try:
                got = open("a/b/c/" + "../" * depth + SECRET.lstrip("/")).read()
            except OSError:
                continue
    stop = True
    mover.join()
    print("ESCAPED" if got else "blocked", got)
