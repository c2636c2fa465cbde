# layer: parent
# expect: oversized_output
while True:
    os.write(1, b"x" * 65536)
