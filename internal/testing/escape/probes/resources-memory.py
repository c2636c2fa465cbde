# layer: rlimits
# expect: memory
hold = []
while True:
    hold.append(bytearray(8 << 20))
    if len(hold) > 100:
        print("ESCAPED", len(hold), flush=True)
        break
