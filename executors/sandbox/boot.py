"""First code in a finished box: receives one script and its input, runs it.

fd 3: u32 script length, script, u8 has input, chunks of (u32 length, bytes)
ended by a zero length; all integers big-endian. EOF before the first byte
means that the worker is no longer wanted.
fd 4: b"R" when ready; b"G" when script and input are stored, or a report that
they could not be (b"I" and text). Then the script goes on, and what comes after
is under its control: at most one report, a kind byte and text.
"""

import posix as os  # the os module proper costs a millisecond more
import sys

CHUNK_END = 0
REPORT_MAX = 8192
FRAMES_MAX = 40


def report(kind, text):
    data = (kind + text).encode("utf-8", "replace")[:REPORT_MAX]
    try:
        os.write(4, data)
    except OSError:
        pass


def exactly(feed, n):
    data = feed.read(n)
    if len(data) != n:
        os._exit(0)  # the parent gave up half way: nobody reads a result
    return data


def number(feed):
    return int.from_bytes(exactly(feed, 4), "big")


def receive():
    feed = open(3, "rb", buffering=65536)
    head = feed.read(4)
    if len(head) != 4:
        os._exit(0)
    script = exactly(feed, int.from_bytes(head, "big"))
    path = None
    if exactly(feed, 1) != b"\0":
        path = os.getcwd() + "/input"
        try:
            with open(path, "wb", buffering=0) as f:
                while True:
                    n = number(feed)
                    if n == CHUNK_END:
                        break
                    data = memoryview(exactly(feed, n))
                    while data:
                        data = data[f.write(data):]
        except OSError as e:
            report("I", e.strerror or "input")
            os._exit(1)
    feed.close()
    return script, path


def codes_of(code):
    """Identities of code and of all that it defines."""
    found, todo = set(), [code]
    while todo:
        code = todo.pop()
        found.add(id(code))
        todo += [c for c in code.co_consts if isinstance(c, type(code))]
    return found


def script_frames(tb, lines):
    tb = tb.tb_next  # past run
    if tb is None:
        return []
    # Text that a script executes bears the same file name as the script.
    own = codes_of(tb.tb_frame.f_code)
    frames = []
    while tb is not None:
        code = tb.tb_frame.f_code
        if id(code) in own:
            frames.append((tb.tb_lineno, code.co_name))
        tb = tb.tb_next
    if len(frames) > FRAMES_MAX:
        half = FRAMES_MAX // 2
        frames = frames[:half] + [None] + frames[-half:]
    out = []
    for frame in frames:
        if frame is None:
            out.append("  ...")
            continue
        line, name = frame
        out.append('  File "script.py", line %d, in %s' % (line, name))
        if 0 < line <= len(lines):
            out.append("    " + lines[line - 1].strip()[:200])
    return out


def describe(exc, script):
    lines = script.decode("utf-8", "replace").splitlines()
    out = script_frames(exc.__traceback__, lines)
    if isinstance(exc, SyntaxError) and exc.__traceback__.tb_next is None and exc.lineno:
        out.append('  File "script.py", line %d' % exc.lineno)
        if exc.lineno <= len(lines):
            out.append("    " + lines[exc.lineno - 1].strip()[:200])
    try:
        # str(SyntaxError) repeats the position already given.
        text = exc.msg if isinstance(exc, SyntaxError) else str(exc)
    except BaseException:
        text = "<no text>"
    name = type(exc).__name__
    out.append(name + ": " + text[:2000] if text else name)
    return "Traceback (most recent call last):\n" + "\n".join(out)


def kind_of(exc):
    if isinstance(exc, MemoryError):
        return "M"
    if isinstance(exc, OSError):
        # EFBIG and ENOSPC, EMFILE: the limits that a script meets as errors
        return {27: "S", 28: "S", 24: "D"}.get(exc.errno, "E")
    if isinstance(exc, RuntimeError) and "new thread" in str(exc):
        return "T"
    return "E"


def leave(code):
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()
        import atexit

        atexit._run_exitfuncs()
    except BaseException:
        pass
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    # Finalization of the interpreter takes as long as its start and frees
    # only what the end of the process frees anyway.
    os._exit(code & 0xFF)


def run(script, path):
    main = type(sys)("__main__")
    main.__dict__.update(__builtins__=__builtins__, __file__="script.py", input_file=path)
    sys.modules["__main__"] = main
    sys.argv = ["script.py"]
    # Given back before a traceback is put together, which takes memory too. Not
    # a bytearray, which would be written to.
    reserve = bytes(1 << 20)
    try:
        # Not compile, which first makes a hundred classes for syntax trees: a
        # millisecond, on a start of six.
        exec(script, main.__dict__)
    except SystemExit as e:
        if e.code is None:
            return 0
        if isinstance(e.code, int):
            if e.code & 0xFF:
                report("E", "SystemExit: %d" % e.code)
            return e.code
        report("E", "SystemExit: " + str(e.code)[:2000])
        return 1
    except BaseException as e:
        del reserve
        report(kind_of(e), describe(e, script))
        return 1
    return 0


def boot():
    for name in sys.argv[1:]:
        __import__(name)
    os.write(4, b"R")
    script, path = receive()
    os.write(4, b"G")
    leave(run(script, path))


boot()
