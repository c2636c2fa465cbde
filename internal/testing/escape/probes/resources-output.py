# layer: parent
# expect: oversized_output
for _ in range(160):
    os.write(1, b"x" * 65536)
print("\nESCAPED")
