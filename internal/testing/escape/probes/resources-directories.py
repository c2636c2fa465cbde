# layer: scratch, landlock
most = 5000
made = 0
try:
    for made in range(most):
        os.mkdir("d")
        os.chdir("d")
except OSError as e:
    print("blocked after", made, e.errno)
else:
    print("ESCAPED", made)
