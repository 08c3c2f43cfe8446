//! Segments come in lists: all those of one poll of a device pass the programs before the first of them reaches TCP, which
//! makes the socket that the others are for.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::support::socketless::{Bench, post, read, respond, tcp_counters};
use crate::support::{SERVER_V4, SERVER_V6, index, inside};
use afpa_bpf::Reason;
use afpa_netlab::Bed;
use libbpf_rs::libbpf_sys;

/// A veth delivers lists while a program of XDP's kind is attached, which lets everything pass.
struct Lists {
    _program: OwnedFd,
    _link: OwnedFd,
}

impl Lists {
    fn new(bench: &Bench) -> Option<Self> {
        let sides = [(bench.world.bed.client(), "tso"), (bench.world.server(), "gro")];
        for (side, feature) in sides {
            let command = ["-K", Bed::DEVICE, feature, "off"];
            let output = side.command("ethtool").args(command).output().expect("ethtool");
            assert!(output.status.success(), "{output:?}");
        }
        inside(bench.world.server(), Self::attach)
    }

    fn attach() -> Option<Self> {
        let pass = libbpf_sys::bpf_insn { code: 0xb7, imm: 2, ..Default::default() }; // r0 = XDP_PASS
        let exit = libbpf_sys::bpf_insn { code: 0x95, ..Default::default() };
        let code = [pass, exit];
        // JUSTIFICATION: libbpf-rs loads programs from object files only.
        // SAFETY: plain system call wrappers; a result that is not negative is a fresh descriptor.
        unsafe {
            let program = libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_XDP,
                c"pass".as_ptr(),
                c"GPL".as_ptr(),
                code.as_ptr(),
                code.len() as libbpf_sys::size_t,
                std::ptr::null_mut(),
            );
            assert!(program >= 0, "loaded");
            let program = OwnedFd::from_raw_fd(program);
            let link = libbpf_sys::bpf_link_create(
                program.as_raw_fd(),
                index(Bed::DEVICE) as i32,
                libbpf_sys::BPF_XDP,
                std::ptr::null(),
            );
            if link < 0 {
                println!("SKIP: no XDP here: {}", std::io::Error::last_os_error());
                return None;
            }
            Some(Self { _program: program, _link: OwnedFd::from_raw_fd(link) })
        }
    }
}

/// A POST of 300 kB arrives whole, and is answered. The time it took.
#[track_caller]
fn upload(bench: &Bench, client: &mut afpa_testkit::Client) -> Duration {
    let content: Vec<u8> = (0..300_000u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    let request = post(&content);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = bench.accept();
            assert!(read(&mut stream, request.len()) == request, "not as it was sent");
            respond(&mut stream, "ok");
        });
        client.send(&request);
        assert_eq!(client.receive().body, b"ok");
    });
    begin.elapsed()
}

#[test]
fn a_request_of_several_segments_in_one_list_arrives_whole() {
    let Some(bench) = Bench::listening(16, |_| ()) else { return };
    let Some(_lists) = Lists::new(&bench) else { return };
    for address in [SERVER_V4, SERVER_V6] {
        for behind_a_hit in [true, false] {
            let mut client = bench.open_real(address);
            if behind_a_hit {
                assert!(client.get("/kernel.html").is_from_kernel());
            }
            upload(&bench, &mut client);
        }
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), 4, "{:?}", bench.counts());
}

/// Does one of many take longer than it should? `AFPA_UPLOADS` of each kind, assigned and the kernel's from the start.
#[test]
fn uploads_in_lists_are_as_fast_as_the_kernels() {
    let uploads = std::env::var("AFPA_UPLOADS").map_or(8, |text| text.parse().expect("a number"));
    let Some(bench) = Bench::listening(16, |_| ()) else { return };
    let Some(_lists) = Lists::new(&bench) else { return };
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..uploads {
        for (kind, times) in times.iter_mut().enumerate() {
            let mut client = match kind {
                0 => bench.open_real(SERVER_V4),
                _ => {
                    bench.fast_path.socketless.drain();
                    let client = bench.world.connect(SERVER_V4);
                    inside(bench.world.server(), || bench.fast_path.socketless.look_at_tcp())
                        .expect("on");
                    client
                }
            };
            let before = counters(&bench);
            let time = upload(&bench, &mut client);
            if time > Duration::from_millis(50) {
                println!("slow: {} {time:?}", ["assigned", "native"][kind]);
                let after = counters(&bench);
                let moved = before.iter().zip(&after).filter(|(one, other)| one != other);
                moved.for_each(|(one, other)| {
                    println!("    {} {}", one.0, other.1 as i64 - one.1 as i64)
                });
            }
            times.push(time);
        }
    }
    let [assigned, native] = times.map(|mut times| {
        times.sort_unstable();
        times
    });
    for (kind, times) in [("assigned", &assigned), ("native", &native)] {
        let slow = times.iter().filter(|time| **time > Duration::from_millis(50)).count();
        let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{kind}: {} uploads, median {median:?}, longest {last:?}, {slow} slow",
            times.len()
        );
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), uploads as u64, "{:?}", bench.counts());
    let (longest, bound) = (assigned[assigned.len() - 1], Duration::from_secs(3));
    assert!(longest < bound || native[native.len() - 1] > bound, "{longest:?}");
}

/// Of TCP on both sides, and of the programs.
fn counters(bench: &Bench) -> Vec<(String, u64)> {
    let dull = ["TcpInSegs", "TcpOutSegs", "Octets", "IpExtIn", "IpExtOut", "IpIn", "IpOut", "Ect"];
    let mut all = Vec::new();
    for (side, name) in [(bench.world.server(), "server"), (bench.world.bed.client(), "client")] {
        let some = tcp_counters(side)
            .into_iter()
            .filter(|(counter, _)| !dull.iter().any(|dull| counter.contains(dull)));
        all.extend(some.map(|(counter, value)| (format!("{name} {counter}"), value)));
    }
    let counted = bench.fast_path.stats.counters().expect("counters");
    all.extend(counted.iter().map(|(why, count)| (why.text().to_owned(), count)));
    all
}
