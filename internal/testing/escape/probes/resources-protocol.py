# layer: parent
# Whatever a script tells its parent is a label of its run, and no more: not that
# its input did not arrive, nor that it never began.
print("blocked", flush=True)
os.write(4, b"Ix")
os._exit(0)
