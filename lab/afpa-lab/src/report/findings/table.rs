//! The thirty findings of the five papers, and the rule that judges each.

use super::connections::{connections, latency, packet_rate, throughput};
use super::frames::longer_frames;
use super::growth::{large_files, prefork_catches_up, zero_copy};
use super::inside::{cached_files, in_the_kernel, network_first, strategies};
use super::jaws::{crossover, optimisations, pool_sizes, single_thread};
use super::ours::{best_user_mode, howl, interrupt_over_thread, prefork_is_slowest, proxy};
use super::small::{flat_below_8k, two_to_six, widest_on_the_mix};
use super::verdict::{Finding, Rule};

const CORES: &str =
    "a server of several cores, and clients beside it: `afpa-lab cores` on a larger machine";

/// In the order of the papers: USENIX 2001 and AFPA 2001, JAWS, FreeBSD.
pub(super) const FINDINGS: &[Finding] = &[
    Finding {
        paper: "Serving in the software interrupt is about three times as fast as the best \
                user-mode server on SPECweb96 (AFPA 10,269, Zeus 2,843 requests/s; 3.5 times IIS).",
        source: "USENIX 2001, 5.1",
        run: "SPECweb96's mix, kept connections and one request each",
        rule: Rule::Figures(|results, summary| best_user_mode(results, summary, "specweb96", 3.0)),
    },
    Finding {
        paper: "For 64-byte files it is more than three times as fast (IIS 3.27 times slower).",
        source: "USENIX 2001, 5.2",
        run: "WebStone, 64 B, kept connections and one request each",
        rule: Rule::Figures(|results, summary| {
            best_user_mode(results, summary, "webstone-64", 3.0)
        }),
    },
    Finding {
        paper: "For 128 KB and more, the fastest user-mode server is as good as the kernel.",
        source: "USENIX 2001, 5.2",
        run: "WebStone, 128 KB to 1 MB, kept connections",
        rule: Rule::Figures(large_files),
    },
    Finding {
        paper: "The software interrupt is 12 % faster than threads with the same code, for 64-byte files.",
        source: "USENIX 2001, 5.2",
        run: "WebStone, 64 B, AFPA's engine under two tables of states",
        rule: Rule::Figures(interrupt_over_thread),
    },
    Finding {
        paper: "AFPA is 21 % faster on Linux than on Windows 2000 for 64-byte files.",
        source: "USENIX 2001, 5.2",
        run: "nothing",
        rule: Rule::NotToday("AFPA of today is a program of Linux alone"),
    },
    Finding {
        paper: "Howl, the ceiling of user mode (accept, read, write, close), is only 32 % faster \
                than Zeus for 64-byte files.",
        source: "USENIX 2001, 5.3",
        run: "WebStone, 64 B, one request a connection",
        rule: Rule::Figures(howl),
    },
    Finding {
        paper: "The rate of connections is nearly flat for answers of less than 8 KB.",
        source: "USENIX 2001, 5.2",
        run: "WebStone, 64 B to 4 KB, one request a connection",
        rule: Rule::Figures(flat_below_8k),
    },
    Finding {
        paper: "Not copying is worth 25 % at 4 KB and 111 % at 32 KB.",
        source: "USENIX 2001, zero copy TCP send",
        run: "WebStone, 4 KB and 32 KB, AFPA with a copy and by sendfile",
        rule: Rule::Figures(zero_copy),
    },
    Finding {
        paper: "Apache lags behind for small files, and is as good as other user-mode servers for large ones.",
        source: "USENIX 2001, 5.2",
        run: "WebStone, 64 B and 1 MB, kept connections",
        rule: Rule::Figures(prefork_catches_up),
    },
    Finding {
        paper: "The kernel's advantage is wider on SPECweb96's mix (3.6) than at any single size (2.30 to 2.95).",
        source: "AFPA 2001, performance",
        run: "SPECweb96's mix beside WebStone's sizes",
        rule: Rule::Figures(widest_on_the_mix),
    },
    Finding {
        paper: "Pre-forked processes (Apache) are the slowest architecture.",
        source: "USENIX 2001, 5.1; JAWS, 2.3",
        run: "WebStone, 64 B, kept connections and one request each",
        rule: Rule::Figures(prefork_is_slowest),
    },
    Finding {
        paper: "A second processor gains 30 % on SPECweb96.",
        source: "AFPA 2001, performance",
        run: "`make bench-cores`",
        rule: Rule::Figures(|_, _| Err(CORES)),
    },
    Finding {
        paper: "One processor with AFPA is 50 % faster than four with a user-mode server.",
        source: "AFPA 2001, performance",
        run: "`make bench-cores`",
        rule: Rule::Figures(|_, _| Err(CORES)),
    },
    Finding {
        paper: "The proxy passes on 3,128 requests of 102 bytes a second on one processor, a quarter of \
                what the cache answers (12,522 of 64 bytes), each on a connection of its own.",
        source: "AFPA 2001, table 1",
        run: "102 B by the proxy beside 64 B from the cache, one request a connection",
        rule: Rule::Figures(|_, summary| proxy(summary)),
    },
    Finding {
        paper: "Frames of 9,000 bytes do not change the trends that frames of 1,500 show.",
        source: "USENIX 2001, 4.2",
        run: "WebStone, 64 B to 64 KB, kept connections, with frames of both lengths; AFPA's own are never longer than 1,500 bytes",
        rule: Rule::Figures(longer_frames),
    },
    Finding {
        paper: "For small files user-mode servers are two to six times slower than the kernel.",
        source: "USENIX 2001, abstract",
        run: "WebStone, 64 B to 4 KB, kept connections and one request each",
        rule: Rule::Figures(two_to_six),
    },
    Finding {
        paper: "Cached heads, lazy date and gather-write together gain 65 %.",
        source: "JAWS, 3.2.2",
        run: "JAWS's mix, one request a connection, thread pool",
        rule: Rule::Figures(|_, summary| optimisations(summary)),
    },
    Finding {
        paper: "The size of a thread pool hardly matters, as long as it is more than one.",
        source: "JAWS, 3.2.3",
        run: "JAWS's mix, one request a connection, pools of 6, 42 and 64",
        rule: Rule::Figures(|_, summary| pool_sizes(summary)),
    },
    Finding {
        paper: "Of 1 to 42 clients, at higher loads a thread for each request beats the thread pool.",
        source: "JAWS, 3.2.3",
        run: "JAWS's mix, one request a connection, 1 to 42 clients",
        rule: Rule::Figures(|_, summary| crossover(summary)),
    },
    Finding {
        paper: "A pool of a single thread is slow under load.",
        source: "JAWS, 3.2.3",
        run: "JAWS's mix, one request a connection, pools of 1 and 6",
        rule: Rule::Figures(|_, summary| single_thread(summary)),
    },
    Finding {
        paper: "Locking an entry of the cache and not all of it gains up to 40 %.",
        source: "JAWS, 3.2.4",
        run: "`make bench-cores`",
        rule: Rule::Figures(|_, _| {
            Err("threads of a server on several cores, and clients beside it: `afpa-lab cores`")
        }),
    },
    Finding {
        paper: "A server without a cache of files loses much to the file system.",
        source: "JAWS, 3.2.4 and 4",
        run: "WebStone, 1 KB, one event loop with its cache and without",
        rule: Rule::Figures(cached_files),
    },
    Finding {
        paper: "A good server spends most of its time in reading requests and writing files.",
        source: "JAWS, 2.4",
        run: "JAWS's mix, samples of the server's core by category of call",
        rule: Rule::Figures(network_first),
    },
    Finding {
        paper: "No single strategy is the best one for all loads.",
        source: "JAWS, abstract and 3.3",
        run: "all loads, AFPA by readiness and by completion",
        rule: Rule::Figures(|_, summary| strategies(summary)),
    },
    Finding {
        paper: "A web server spends over 80 % of its time in the operating system.",
        source: "FreeBSD, 4",
        run: "SPECweb96's mix, kept connections, by the core's accounts",
        rule: Rule::Figures(|_, summary| in_the_kernel(summary)),
    },
    Finding {
        paper: "The packet rate of a connection has a negligible effect on the cost of a packet (+18 % at most, from 100 to \
                900 Mb/s).",
        source: "FreeBSD, 5.1",
        run: "answers of 11 segments over one connection, 100 to 900 Mb/s, samples by layer",
        rule: Rule::Figures(|results, _| packet_rate(results)),
    },
    Finding {
        paper: "A packet costs TCP 157 % more over 2,048 connections than over 4, and the layer of system calls 250 %.",
        source: "FreeBSD, 5.2",
        run: "answers of one segment, 100 Mb/s over 4 to 2,048 connections, samples by layer",
        rule: Rule::Figures(|results, _| connections(results)),
    },
    Finding {
        paper: "A latency of 40 ms each way nearly doubles TCP's cost of a packet.",
        source: "FreeBSD, 5.3",
        run: "answers of one segment, 100 Mb/s over 2,048 connections, 0 to 40 ms, samples by layer",
        rule: Rule::Figures(|results, _| latency(results)),
    },
    Finding {
        paper: "Throughput first rises quickly with the number of connections, and then falls slowly.",
        source: "FreeBSD, 4",
        run: "WebStone, 1 KB, 4 to 2,048 kept connections",
        rule: Rule::Figures(|_, summary| throughput(summary)),
    },
    Finding {
        paper: "Neither twice the second-level cache nor prefetching helps much.",
        source: "FreeBSD, 6",
        run: "nothing",
        rule: Rule::NotToday(
            "it takes two processors that differ in their cache alone, and their counters, which a virtual machine \
             does not show",
        ),
    },
];
