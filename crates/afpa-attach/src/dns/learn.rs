//! One question learnt: asked until it is sure which clients get this answer. The asking itself is the caller's.

use afpa_bpf::dns::abi::{dns_bit, dns_rule};

use super::answer::{Exchange, Parts, Tail, Unfit};
use super::key::{self, Case, Key};

/// A question to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// Its buffer, if it has EDNS.
    pub buffer: u16,
    /// The case of its name.
    pub case: Case,
    /// By this machine, and not as a stranger.
    pub here: bool,
}

/// The answer to it, with the query that was sent.
pub type Told = Option<Exchange>;

/// An answer that may be given to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// The part that is pinned.
    pub tail: Tail,
    /// Its rule: `dns_rule`.
    pub rule: u8,
    /// Its parts.
    pub parts: Parts,
}

/// How often an answer with sets of several records is asked for at once, each time with a buffer of its own, so that no cache
/// of whole packets within the server hides a changing order.
const SHUFFLES: u16 = 16;
/// The plain way to ask.
pub const PLAIN: Asking = Asking { buffer: 1232, case: Case::Lower, here: false };

/// Asks all that has to be known. `letters` decides which letters of a question are capitals; `settled` knows whether the server keeps the
/// order of an answer's records.
///
/// # Errors
/// Why the answer stays the server's.
pub async fn learn(
    key: &Key,
    letters: u64,
    settled: impl Fn(&Parts) -> bool,
    ask: &mut impl AsyncFnMut(&Key, Asking) -> Told,
) -> Result<Learnt, Unfit> {
    let mut tail = async |key: &Key, asking: Asking| {
        let exchange = ask(key, asking).await.ok_or(Unfit::Silence)?;
        Tail::of(key, &exchange).map(|tail| (tail, exchange.answer))
    };
    let edns = key.bits & dns_bit::EDNS != 0;
    let most = if edns { 4096 } else { PLAIN.buffer };
    let (first, answer) = tail(key, Asking { buffer: most, ..PLAIN }).await?;
    let parts = Parts::of(&answer).ok_or(Unfit::Strange)?;
    let mut rule = dns_rule::FROM_512;
    if edns {
        rule = dns_rule::FROM_4096;
        for (buffer, from) in [(1232, dns_rule::FROM_1232), (512, dns_rule::FROM_512)] {
            match tail(key, Asking { buffer, ..PLAIN }).await {
                Ok((same, _)) if same == first => rule = from,
                Ok(_) | Err(Unfit::Truncated) => break,
                Err(why) => return Err(why),
            }
        }
    }
    let plain = Asking { buffer: most, ..PLAIN };
    for case in [Case::Upper, Case::Mixed(letters)] {
        match tail(key, Asking { case, ..plain }).await {
            Ok((same, _)) if same == first => {}
            Ok(_) => rule |= dns_rule::LOWER_ONLY,
            Err(why) => return Err(why),
        }
    }
    if parts.sets.are_several() && !settled(&parts) {
        keeps_order(key, letters, &mut tail).await?;
    }
    match tail(key, Asking { here: true, ..plain }).await {
        Ok((same, _)) if same == first => {}
        Ok(_) => return Err(Unfit::Client),
        Err(why) => return Err(why),
    }
    match tail(key, plain).await? {
        (same, _) if same == first => Ok(Learnt { tail: first, rule, parts }),
        _ => Err(Unfit::Unstable),
    }
}

/// Whether the server always gives sets of several records in one order. The questions have EDNS, because each size of the
/// buffer makes another packet.
async fn keeps_order(
    key: &Key,
    letters: u64,
    tail: &mut impl AsyncFnMut(&Key, Asking) -> Result<(Tail, Vec<u8>), Unfit>,
) -> Result<(), Unfit> {
    let shuffled = Key { bits: key.bits | dns_bit::EDNS, ..key.clone() };
    let mut first = None;
    for turn in 0..SHUFFLES {
        let buffer = 1233 + (letters as u16 & 0x3ff) + turn * 64;
        let (found, _) = tail(&shuffled, Asking { buffer, ..PLAIN }).await?;
        if *first.get_or_insert_with(|| found.clone()) != found {
            return Err(Unfit::Unstable);
        }
    }
    Ok(())
}

/// Asks again later, whether the answer is still this one.
///
/// # Errors
/// When it is another one.
pub async fn confirm(
    key: &Key,
    pinned: &Tail,
    buffer: u16,
    ask: &mut impl AsyncFnMut(&Key, Asking) -> Told,
) -> Result<(), Unfit> {
    let exchange = ask(key, Asking { buffer, ..PLAIN }).await.ok_or(Unfit::Silence)?;
    match Tail::of(key, &exchange)? == *pinned {
        true => Ok(()),
        false => Err(Unfit::Unstable),
    }
}

/// The query for an asking; each has an id and a cookie of its own.
pub fn query(key: &Key, id: u16, cookie: u64, asking: Asking) -> Vec<u8> {
    key::query(key, id, asking.buffer, asking.case, cookie)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::super::answer::ServerCookie;
    use super::*;

    fn key(bits: u8) -> Key {
        key::key(&key::read("www.example.org").unwrap(), 1, bits, 0).unwrap()
    }

    /// The server here answers at once.
    fn learn(
        key: &Key,
        letters: u64,
        settled: bool,
        ask: &mut impl FnMut(&Key, Asking) -> Told,
    ) -> Result<Learnt, Unfit> {
        let mut ask = async |key: &Key, asking: Asking| ask(key, asking);
        let learning = pin!(super::learn(key, letters, |_| settled, &mut ask));
        match learning.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(learnt) => learnt,
            Poll::Pending => panic!("nothing is waited for"),
        }
    }

    /// A server with these records, whose last byte `last` says for each question.
    fn server(
        mut last: impl FnMut(&[u8], Asking) -> Option<Vec<u8>>,
    ) -> impl FnMut(&Key, Asking) -> Told {
        move |key, asking| {
            let query = query(key, 1, 2, asking);
            let end = key::question_end(key);
            let all = last(&query, asking)?;
            let mut answer = query[..end].to_vec();
            answer[2] |= 0x84;
            answer[7] = all.len() as u8;
            answer[11] = 0;
            for one in all {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 192, 0, 2, one]);
            }
            Some(Exchange { query, answer, cookie: ServerCookie::None })
        }
    }

    #[test]
    fn a_steady_answer_is_for_everybody() {
        let learnt =
            learn(&key(dns_bit::EDNS), 5, false, &mut server(|_, _| Some(vec![1, 2]))).unwrap();
        assert_eq!(learnt.rule, dns_rule::FROM_512);
    }

    #[test]
    fn what_the_answer_depends_on_is_found() {
        let edns = key(dns_bit::EDNS);
        let by_case = |query: &[u8], _| Some(vec![u8::from(query.contains(&b'W'))]);
        let learnt = learn(&edns, 5, false, &mut server(by_case)).unwrap();
        assert_eq!(learnt.rule, dns_rule::FROM_512 | dns_rule::LOWER_ONLY);
        let by_buffer = |_: &[u8], asking: Asking| Some(vec![u8::from(asking.buffer < 1000)]);
        let learnt = learn(&edns, 5, false, &mut server(by_buffer)).unwrap();
        assert_eq!(learnt.rule, dns_rule::FROM_1232);
        let by_client = |_: &[u8], asking: Asking| Some(vec![u8::from(asking.here)]);
        assert_eq!(learn(&edns, 5, false, &mut server(by_client)), Err(Unfit::Client));
    }

    #[test]
    fn a_server_that_shuffles_keeps_its_answers() {
        let shuffled = |_: &[u8], asking: Asking| {
            // A cache of packets: only a question that was not asked before shuffles.
            Some(if asking.buffer % 3 == 1 { vec![1, 2] } else { vec![2, 1] })
        };
        assert_eq!(learn(&key(0), 5, false, &mut server(shuffled)), Err(Unfit::Unstable));
        assert_eq!(learn(&key(0), 5, false, &mut server(|_, _| None)), Err(Unfit::Silence));
    }
}
