"""What is measured: for each case who takes part, what is asked, and on which bed."""

from dataclasses import dataclass

KERNEL, USER, ATTACHED = "afpa kernel", "afpa user", "nginx attached"
NGINX, H2O, REFLECTOR = "nginx", "h2o", "reflector"
# The same with rest_after = 0: every request of every connection is read.
KERNEL_AWAKE, ATTACHED_AWAKE = "afpa kernel, never resting", "nginx attached, never resting"
ALL = (KERNEL, USER, ATTACHED, NGINX, H2O, REFLECTOR)
# With other sizes than 512 B, without AFPA's user mode: those whom the kernel is compared with.
KERNELS = tuple(name for name in ALL if name != USER)
# On beds where the two sides' work mixes: those whose ratios are wanted.
RIVALS = (KERNEL, NGINX, H2O, REFLECTOR)

# Where packets are processed (`afpa-netlab bed --steering`).
STEERED, UNSTEERED, TOGETHER = "cores", "none", "together"
BEDS = {STEERED: "a core for each side", UNSTEERED: "packets wherever they are sent",
        TOGETHER: "both sides on one core"}

SIZES = (64, 512, 1024)
# Answers of several segments, which the send engine gives.
LARGER_SIZES = (4 << 10, 8 << 10, 14 << 10, 32 << 10, 64 << 10)
LONGEST_ANSWER = 68 << 10  # head and content
DOWNLOAD = 10 << 20


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    servers: tuple
    path: str                  # or several with their shares, "31:/a 1:/b"
    size: int                  # bytes of the object; the reflector's body
    connections: int = 64
    steering: str = STEERED
    browser: bool = False      # with a kilobyte of a browser's header fields
    visitors: int = 1          # how many different cookies there are among them
    active: int = 0            # requests outstanding; 0: one on each connection
    sources: int = 1           # client addresses
    seconds: float = 1.0       # length of a turn, times what the command line says
    rounds: float = 1.0        # likewise
    warm_up: float = 0.0       # seconds of load before each turn, if that is more than usual
    quick: bool = False        # taken by --quick
    nothing: bool = False      # programs that do nothing stand in for ours


def small(size, connections, quick=False, **more):
    place = {STEERED: "", UNSTEERED: ", unsteered", TOGETHER: ", one core for both"}
    steering, browser = more.get("steering", STEERED), more.get("browser", False)
    title = f"{size} B, {connections} connections" + (", browser headers" if browser else "")
    name = f"{size}-{connections}" + ("-browser" if browser else "")
    if "visitors" in more:
        title += f" of {more['visitors']} visitors"
        name += f"-{more['visitors']}"
    name += "" if steering == STEERED else f"-{steering}"
    servers = RIVALS if steering != STEERED else ALL if size == 512 else KERNELS
    return Case(name, title + place[steering], servers, f"/{size}.html", size, connections,
                quick=quick, **more)


SPEED = (
    *(small(size, connections, quick=size == 512)
      for connections in (64, 256) for size in SIZES),
    small(512, 64, browser=True),
    small(512, 256, browser=True, quick=True),
    small(512, 256, browser=True, visitors=256, quick=True),
    small(512, 64, steering=UNSTEERED),
    small(512, 256, steering=UNSTEERED),
    small(512, 64, steering=TOGETHER, quick=True),
    small(512, 256, steering=TOGETHER),
)

# What a request costs by the size of its object, in both contexts; and in the reflector, which sends all
# segments of a constant at once, as far as the client's queue takes those of all connections.
REFLECTED = 14 << 10
LARGER = tuple(
    Case(f"larger-{size >> 10}k", f"{size >> 10} KB, 64 connections",
         (KERNEL, USER, ATTACHED, NGINX) + ((REFLECTOR,) if size <= REFLECTED else ()),
         f"/{size}.html", size, rounds=0.6, quick=True)
    for size in LARGER_SIZES)

# Requests that user mode answers, with the programs there and not: the same request to the same
# server, pairs of which the second is the baseline. A query is never pinned; nor is /plain. Connections
# on which nothing else is asked come to rest before the turn begins; a connection that has a hit now
# and then does not, and each of its passes costs what the "-awake" cases measure.
RESTS = 1.4  # a connection comes to rest after a second of passes
PASSES = (
    Case("pass-afpa", "a small object from user mode, AFPA, resting connections", (KERNEL, USER),
         "/512.html?query", 512, seconds=3, warm_up=RESTS, quick=True),
    Case("pass-nginx", "a small object from user mode, nginx, resting connections", (ATTACHED, NGINX),
         "/plain/512.html", 512, seconds=3, warm_up=RESTS, quick=True),
    Case("pass-afpa-awake", "a small object from user mode, AFPA, every request read",
         (KERNEL_AWAKE, USER), "/512.html?query", 512, seconds=3, quick=True),
    Case("pass-nginx-awake", "a small object from user mode, nginx, every request read",
         (ATTACHED_AWAKE, NGINX), "/plain/512.html", 512, seconds=3, quick=True),
    # With the hit's own gain in it: it costs a fraction of what user mode takes.
    Case("pass-afpa-mixed", "a small object from user mode, AFPA, every 32nd request a hit", (KERNEL, USER),
         "31:/512.html?query 1:/512.html", 512, seconds=3),
    Case("pass-nginx-mixed", "a small object from user mode, nginx, every 32nd request a hit", (ATTACHED, NGINX),
         "31:/plain/512.html 1:/512.html", 512, seconds=3),
    Case("download-afpa", "a download of 10 MB, AFPA", (KERNEL, USER),
         "/download.bin", DOWNLOAD, connections=8, seconds=3, quick=True),
    Case("download-nginx", "a download of 10 MB, nginx", (ATTACHED, NGINX),
         "/download.bin", DOWNLOAD, connections=8, seconds=3, quick=True),
)

# What the programs add by themselves: they are taken away and put back while nginx is busy. On connections that
# go by: who was not there for a while leaves a connection to user mode.
ALTERNATING = tuple(
    Case(f"alternating-{name}" + ("-nothing" if nothing else ""), f"{title}, {whose}", (ATTACHED,), path, size,
         connections, seconds=60, warm_up=RESTS, quick=not nothing, nothing=nothing)
    for name, title, path, size, connections in (
        ("download", "a download of 10 MB, nginx", "/download.bin", DOWNLOAD, 8),
        ("pass", "a small object from user mode, nginx", "/plain/512.html", 512, 64))
    for whose, nothing in (("AFPA's programs", False), ("programs that do nothing", True)))

# The time of the programs themselves, by the kernel's own statistics of them.
PROGRAM_ROUNDS = 0.6  # times what the command line says
PROGRAMS = (
    Case("program-hit", "a hit", (KERNEL,), "/512.html", 512, seconds=4, quick=True),
    Case("program-browser", "a hit with browser headers", (KERNEL,), "/512.html", 512,
         browser=True, seconds=4, quick=True),
    Case("program-pass", "a request read and passed on, and its response", (KERNEL_AWAKE,),
         "/512.html?query", 512, seconds=4, quick=True),
    Case("program-pass-browser", "the same with browser headers", (KERNEL_AWAKE,),
         "/512.html?query", 512, browser=True, seconds=4, quick=True),
)

FEW_FLOWS = 64


def crowd(flows):
    """The same 64 requests outstanding: on 64 connections, each of which asks again at once, and on
    very many, which take turns. Acknowledgements ride on requests in both, so that the packets
    are the same."""
    def of(connections, title):
        return Case(f"flows-{connections}", title, (KERNEL,), "/512.html", 512, connections,
                    active=FEW_FLOWS, sources=-(-connections // 50_000), rounds=0.6, quick=True)
    return (of(FEW_FLOWS, f"{FEW_FLOWS} established connections"),
            of(flows, f"{flows:,} established connections"))


def write_files(root):
    """Writes the document root; the bytes are the same at every run and do not compress."""
    import random
    (root / "plain").mkdir(parents=True)
    for size in SIZES + LARGER_SIZES:
        (root / f"{size}.html").write_bytes(random.Random(size).randbytes(size))
    (root / "plain" / "512.html").write_bytes(random.Random(512).randbytes(512))
    (root / "download.bin").write_bytes(random.Random(0).randbytes(DOWNLOAD))
    (root / "changing.html").write_bytes(b"0" * 512)
