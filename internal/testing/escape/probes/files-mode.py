# layer: user, capabilities
# A file that nobody may read, which only a capability opens.
name = "input" if not os.access(".", os.W_OK) else "closed"
try:
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0))
except OSError:
    print("blocked create")
else:
    attempt("read mode 0", open, name)
