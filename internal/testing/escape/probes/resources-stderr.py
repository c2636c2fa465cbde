# layer: parent
# expect: oversized_output
while True:
    os.write(2, b"x" * 65536)
