# layer: scratch, landlock
def bomb():
    for i in range(1500):
        os.close(os.open("f%d" % i, os.O_CREAT | os.O_WRONLY))
attempt("files", bomb)
