//! The program by which the kernel picks the socket of a datagram: classic BPF of `SO_ATTACH_REUSEPORT_CBPF`, which needs
//! no rights. It reads the worker out of a connection id of ours as [`IdKey::read`](super::id::IdKey::read) does, and
//! leaves all other datagrams to the kernel's hash of addresses.
//!
//! Classic BPF has 32 bits, two registers, 16 words of memory and no loops: each number of SipHash is two words, and its six
//! rounds are written out. A test compares it with the other implementation, in the kernel.

use std::io;
use std::os::fd::AsFd;

use nix::libc::{sock_filter, sock_fprog};
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};

use super::id::{IdKey, WORKER_BITS};

/// Has the kernel give the datagrams of a group of sockets to the workers that they are for, by the socket's number in the
/// group.
///
/// # Errors
/// Of the system.
pub(super) fn attach(group: impl AsFd, key: &IdKey) -> io::Result<()> {
    let mut program = program(key);
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = sock_fprog { len, filter: program.as_mut_ptr() };
    Ok(setsockopt(&group, AttachReusePortCbpf, &program)?)
}

/// A number that no socket has: the kernel takes its hash.
const BY_HASH: u32 = u32::MAX;

/// A shorter datagram is no packet of QUIC (RFC 9000 section 10.3.3).
const SHORTEST: u32 = 21;

// Words of memory: the four numbers of SipHash, low word first, then others.
const V0: u32 = 0;
const V1: u32 = 2;
const V2: u32 = 4;
const V3: u32 = 6;
const RANDOM: u32 = 8;
const MASKED: u32 = 9;
const CARRIED: [u32; 2] = [10, 11];

// Codes of linux/bpf_common.h.
const LOAD_LENGTH: u16 = 0x80;
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const LOAD: u16 = 0x60;
const LOAD_X: u16 = 0x61;
const LOAD_NUMBER: u16 = 0x00;
const STORE: u16 = 0x02;
const STORE_X: u16 = 0x03;
const ADD: u16 = 0x04;
const ADD_X: u16 = 0x0c;
const AND: u16 = 0x54;
const OR_X: u16 = 0x4c;
const XOR: u16 = 0xa4;
const XOR_X: u16 = 0xac;
const LEFT: u16 = 0x64;
const RIGHT: u16 = 0x74;
const SKIP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_AT_LEAST_X: u16 = 0x3d;
const IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

/// The program as it grows.
#[derive(Default)]
struct Program(Vec<sock_filter>);

fn program(key: &IdKey) -> Vec<sock_filter> {
    let mut p = Program::default();
    p.add(LOAD_LENGTH, 0);
    p.unless(IF_AT_LEAST, SHORTEST);
    p.add(LOAD_BYTE, 0);
    p.jump(IF_ANY, 0x80, 5, 0);
    p.read_id(1);
    p.add(SKIP, 4 + 3);
    p.add(LOAD_BYTE, 5);
    p.unless(IF_EQUAL, 8);
    p.read_id(6);
    p.hash(key);
    // In A is the mask; below it stands the place.
    p.add(LOAD_X, MASKED);
    p.add(XOR_X, 0);
    p.add(STORE, MASKED);
    p.add(RIGHT, WORKER_BITS + 4);
    p.unless(IF_EQUAL, 0);
    p.add(LOAD, MASKED);
    p.add(AND, (1 << WORKER_BITS) - 1);
    p.add(RETURN_A, 0);
    p.0
}

impl Program {
    fn add(&mut self, code: u16, k: u32) {
        self.jump(code, k, 0, 0);
    }

    fn jump(&mut self, code: u16, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code, jt, jf, k });
    }

    /// Leaves the datagram to the hash unless this is so.
    fn unless(&mut self, condition: u16, k: u32) {
        self.jump(condition, k, 1, 0);
        self.add(RETURN, BY_HASH);
    }

    /// Four instructions.
    fn read_id(&mut self, at: u32) {
        self.add(LOAD_WORD, at);
        self.add(STORE, RANDOM);
        self.add(LOAD_WORD, at + 4);
        self.add(STORE, MASKED);
    }

    /// SipHash-2-4 of the random number's four bytes, whose low word is left in A.
    fn hash(&mut self, key: &IdKey) {
        let half = |at: usize| {
            let bytes = key.0.get(at..at + 8).and_then(|half| half.try_into().ok());
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let (k0, k1) = (half(0), half(8));
        self.number(V0, k0 ^ 0x736f_6d65_7073_6575);
        self.number(V1, k1 ^ 0x646f_7261_6e64_6f6d);
        self.number(V2, k0 ^ 0x6c79_6765_6e65_7261);
        self.number(V3, k1 ^ 0x7465_6462_7974_6573);
        self.message(V3);
        self.round();
        self.round();
        self.message(V0);
        self.xor_word(V2, 0xff);
        for _ in 0..4 {
            self.round();
        }
        self.add(LOAD, V0);
        for other in [V1, V2, V3] {
            self.add(LOAD_X, other);
            self.add(XOR_X, 0);
        }
    }

    fn number(&mut self, to: u32, number: u64) {
        for (word, value) in [(to, number as u32), (to + 1, (number >> 32) as u32)] {
            self.add(LOAD_NUMBER, value);
            self.add(STORE, word);
        }
    }

    /// The only block: the random number, with the length in the highest byte.
    fn message(&mut self, to: u32) {
        self.add(LOAD, to);
        self.add(LOAD_X, RANDOM);
        self.add(XOR_X, 0);
        self.add(STORE, to);
        self.xor_word(to + 1, 4 << 24);
    }

    fn xor_word(&mut self, word: u32, value: u32) {
        self.add(LOAD, word);
        self.add(XOR, value);
        self.add(STORE, word);
    }

    fn round(&mut self) {
        for (sum, other, by) in [(V0, V1, 13), (V2, V3, 16)] {
            self.plus(sum, other);
            self.rotate(other, by);
            self.xor(other, sum);
        }
        self.swap(V0);
        for (sum, other, by) in [(V0, V3, 21), (V2, V1, 17)] {
            self.plus(sum, other);
            self.rotate(other, by);
            self.xor(other, sum);
        }
        self.swap(V2);
    }

    fn plus(&mut self, sum: u32, other: u32) {
        self.add(LOAD, sum);
        self.add(LOAD_X, other);
        self.add(ADD_X, 0);
        self.add(STORE, sum);
        // Without a carry, the sum is not below what was added.
        self.jump(IF_AT_LEAST_X, 0, 3, 0);
        self.add(LOAD, sum + 1);
        self.add(ADD, 1);
        self.add(STORE, sum + 1);
        self.add(LOAD, sum + 1);
        self.add(LOAD_X, other + 1);
        self.add(ADD_X, 0);
        self.add(STORE, sum + 1);
    }

    fn xor(&mut self, to: u32, other: u32) {
        for word in 0..2 {
            self.add(LOAD, to + word);
            self.add(LOAD_X, other + word);
            self.add(XOR_X, 0);
            self.add(STORE, to + word);
        }
    }

    fn rotate(&mut self, number: u32, by: u32) {
        for (word, kept) in CARRIED.into_iter().enumerate() {
            self.add(LOAD, number + word as u32);
            self.add(RIGHT, 32 - by);
            self.add(STORE, kept);
        }
        for (word, kept) in [(0, CARRIED[1]), (1, CARRIED[0])] {
            self.add(LOAD, number + word);
            self.add(LEFT, by);
            self.add(LOAD_X, kept);
            self.add(OR_X, 0);
            self.add(STORE, number + word);
        }
    }

    /// Rotation by 32 bits.
    fn swap(&mut self, number: u32) {
        self.add(LOAD, number);
        self.add(LOAD_X, number + 1);
        self.add(STORE, number + 1);
        self.add(STORE_X, number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::{IdKey, Spot};
    use super::*;
    use afpa_testkit::eventually;
    use socket2::{Domain, Protocol, Socket, Type};
    use std::net::{SocketAddr, UdpSocket};

    const WORKERS: usize = 5;

    fn group() -> (SocketAddr, Vec<UdpSocket>) {
        let mut address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let bind = |_| {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).expect("made");
            socket.set_reuse_port(true).expect("set");
            socket.bind(&address.into()).expect("bound");
            let socket = UdpSocket::from(socket);
            socket.set_nonblocking(true).expect("set");
            address = socket.local_addr().expect("bound");
            socket
        };
        let sockets: Vec<UdpSocket> = (0..WORKERS).map(bind).collect();
        (address, sockets)
    }

    /// The numbers of the sockets that have got so many datagrams.
    fn receivers(sockets: &[UdpSocket], count: usize) -> Vec<usize> {
        let mut all = Vec::new();
        eventually("they arrive", || {
            for (index, socket) in sockets.iter().enumerate() {
                while socket.recv(&mut [0; 100]).is_ok() {
                    all.push(index);
                }
            }
            all.len() >= count
        });
        all
    }

    #[test]
    fn the_kernel_finds_the_worker_that_the_id_names() {
        let (address, sockets) = group();
        let key = IdKey(*b"sixteen bytes...");
        attach(&sockets[0], &key).expect("it needs no rights");
        for at in 0..200_u32 {
            let client = UdpSocket::bind("127.0.0.1:0").expect("bound");
            let worker = at as usize % WORKERS;
            let spot = Spot { generation: (at % 16) as u8, worker: worker as u16 };
            // Among them numbers whose sums carry, and do not.
            let id = key.id(at.wrapping_mul(0x9e37_79b9) ^ at, spot);
            let short = [&[0x40][..], &id, &[0; 20]].concat();
            let long = [&[0xe0, 0, 0, 0, 1, 8][..], &id, &[0; 20]].concat();
            for datagram in [short, long] {
                client.send_to(&datagram, address).expect("sent");
                assert_eq!(receivers(&sockets, 1), [worker], "{at}");
            }
        }
    }

    #[test]
    fn other_datagrams_go_by_the_hash() {
        let (address, sockets) = group();
        let key = IdKey([9; 16]);
        attach(&sockets[0], &key).expect("it needs no rights");
        let mut seen = [0; WORKERS];
        let far = key.id(77, Spot { generation: 1, worker: 900 });
        let foreign = IdKey([1; 16]).id(5, Spot::default());
        for _ in 0..100 {
            let client = UdpSocket::bind("127.0.0.1:0").expect("bound");
            let all = [
                vec![],
                vec![0x40],
                vec![0x40; 20],
                [&[0x40][..], &far, &[0; 20]].concat(),
                [&[0x40][..], &foreign, &[0; 20]].concat(),
                [&[0xc0, 0, 0, 0, 1, 20][..], &[0; 30]].concat(),
            ];
            for datagram in &all {
                client.send_to(datagram, address).expect("sent");
            }
            let got = receivers(&sockets, all.len());
            assert!(got.iter().all(|index| *index == got[0]), "{got:?}");
            seen[got[0]] += 1;
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    }

    #[test]
    fn it_is_as_short_as_kernels_want_it() {
        // Linux 6.1 takes 20 KiB for one, in instructions of eight bytes.
        let length = program(&IdKey([0; 16])).len();
        assert!(length < 1200, "{length} instructions");
    }
}
