# layer: rlimits
# expect: timeout
# cpu: 1s
while True:
    pass
