# layer: rlimits
def bomb():
    for _ in range(200):
        os.pipe()
attempt("pipes", bomb)
