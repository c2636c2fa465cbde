# layer: root
# How the interpreter was built tells paths of the host.
import sysconfig
for name in (sysconfig._get_sysconfigdata_name(),):
    told = __import__(name).build_time_vars
    print("ESCAPED" if told else "blocked", name, list(told)[:5])
assert sysconfig.get_path("stdlib")
