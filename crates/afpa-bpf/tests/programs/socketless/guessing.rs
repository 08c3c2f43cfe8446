//! Opening a connection in somebody else's name: an attacker who never got a SYN-ACK must guess its number (N13).

use std::net::SocketAddr;

use afpa_bpf::{Reason, Settings};
use afpa_testkit::Random;
use afpa_testkit::packet::{ACK, SYN, Segment, SynOptions};
use afpa_testkit::tcp::RawClient;

use crate::support::socketless::{Bench, SOON, syn_ack};

/// A cookie of which ten bits count, from all over it: each guess comes true once in so many.
const COUNTED: u32 = 0b1000_0100_1001_0000_0010_1001_1000_0101;
const GUESSES: u32 = 1 << COUNTED.count_ones();

fn short() -> Option<Bench> {
    Bench::with(Settings { cookie_ignored: !COUNTED, ..Settings::default() })
}

/// The number whose bits, where they count, are those of `number`.
fn spread(number: u32) -> u32 {
    let bits = (0..32).filter(|bit| COUNTED >> bit & 1 == 1);
    bits.enumerate().map(|(at, bit)| (number >> at & 1) << bit).sum()
}

/// Guesses that are made before their results are looked at.
const AT_ONCE: u32 = 32;

/// All that there is to guess, in some order, until a connection opens. How many guesses it took.
fn guess(bench: &Bench, client: &RawClient, random: &mut Random) -> Option<u32> {
    let before = bench.count(Reason::SocketlessOpened);
    let begin = random.next() as u32;
    for turn in 0..GUESSES {
        let guessed = spread(begin.wrapping_add(turn.wrapping_mul(0x9e37_79b1)));
        client.send(&Segment { ack: guessed.wrapping_add(1), ..client.next() });
        if turn % AT_ONCE == AT_ONCE - 1 && bench.count(Reason::SocketlessOpened) > before {
            return Some(turn + 1);
        }
    }
    client.collect(SOON);
    (bench.count(Reason::SocketlessOpened) > before).then_some(GUESSES)
}

/// The bits that a stranger has to guess after a SYN in the client's name: all those that are compared. Each of the 32 is
/// compared, as `a_forged_cookie_opens_nothing` shows.
#[test]
fn a_guess_behind_a_syn_comes_true_once_in_all_numbers() {
    let Some(bench) = short() else { return };
    let mut random = Random::new(Random::seed_or(1));
    let mut taken = Vec::new();
    for _ in 0..12 {
        let mut client = bench.raw();
        let _not_seen_by_the_stranger = syn_ack(&mut client, |_| ());
        client.seq = client.seq.wrapping_add(1);
        taken.push(guess(&bench, &client, &mut random).expect("one of all numbers"));
        client.reset();
    }
    let mean = taken.iter().sum::<u32>() / taken.len() as u32;
    afpa_testkit::figure!("a cookie of {} bits took {mean} guesses: {taken:?}", GUESSES.ilog2());
    // The mean of twelve is half of all, give or take a twelfth, and with two bits less it would be an eighth.
    assert!(mean > GUESSES / 5, "{mean}: {taken:?}");
}

/// Without a SYN no number opens anything, however short the cookie is, though the kernel knows the client's way.
#[test]
fn no_guess_comes_true_without_a_syn_that_was_answered() {
    let Some(bench) = short() else { return };
    let mut random = Random::new(Random::seed_or(1));
    let mut client = bench.raw();
    syn_ack(&mut client, |_| ()); // cookies may come back
    for change in [1, 1000, 1 << 31] {
        let mut stranger = bench.raw();
        stranger.seq = client.seq.wrapping_add(change);
        assert_eq!(guess(&bench, &stranger, &mut random), None, "{:?}", bench.counts());
    }
    client.seq = client.seq.wrapping_add(7); // the same tuple, another first number
    assert_eq!(guess(&bench, &client, &mut random), None, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessOpened), 0);
}

/// The contents of a SYN give away no bit of its cookie.
#[test]
fn no_bit_of_a_cookie_is_told_by_its_syn() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.world.raw();
    let (mut ones, mut cookies) = ([0u32; 32], 0);
    for port in 0..300 {
        if port % 8 == 0 {
            bench.introduce();
        }
        let before = bench.count(Reason::SocketlessSyn);
        client.disguise(SocketAddr::new(client.address().ip(), 30_000 + port));
        send_syn(&client, client.address(), 7);
        let is_answer = |segment: &Segment| segment.flags == SYN | ACK && segment.ack == 8;
        let number = client.await_segment("a SYN-ACK", is_answer).seq;
        if bench.count(Reason::SocketlessSyn) > before {
            cookies += 1;
            ones.iter_mut().enumerate().for_each(|(bit, count)| *count += number >> bit & 1);
        }
    }
    assert!(cookies >= 100, "{:?}", bench.counts());
    // Half of them, give or take five standard deviations.
    let most = cookies / 2 + (5.0 * f64::from(cookies).sqrt() / 2.0) as u32;
    assert!(ones.iter().all(|count| (cookies - most..=most).contains(count)), "{ones:?}");
}

fn send_syn(client: &RawClient, from: SocketAddr, seq: u32) {
    let syn = SynOptions { mss: Some(1460), sack: true, scale: Some(7) };
    client.send(&Segment {
        from,
        flags: SYN,
        seq,
        ack: 0,
        ts_value: 0,
        ts_echo: 0,
        syn,
        ..client.next()
    });
}
