//! The bytes of either side arrive, however much the transport below takes and gives at a time.

use std::collections::VecDeque;
use std::io::Write as _;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use afpa_testkit::Random;
use afpa_tls::certificate::read_chain;
use afpa_tls::machine::ServerName;
use afpa_tls::{
    Certificate, Certificates, ClientMachine, ClientSettings, ClientTls, ServerSettings,
    TicketKeys, Verify,
};

use afpa_tls::ServerTls;

use super::*;

/// A transport that takes and gives as much as chance has it.
struct Fickle {
    random: Random,
    /// Whether gathered bytes are lent, as by completion.
    lends: bool,
    lent: Option<Vec<u8>>,
    coming: VecDeque<u8>,
    gone: Vec<u8>,
    /// The client has ended its direction.
    ended: bool,
    shut: bool,
}

impl Fickle {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            lends: false,
            lent: None,
            coming: VecDeque::new(),
            gone: Vec::new(),
            ended: false,
            shut: false,
        }
    }

    fn chance(&mut self, of: usize) -> usize {
        match self.random.below(3) {
            0 => 0,
            1 => self.random.below(of + 1),
            _ => of,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> usize {
        assert!(!self.shut, "behind the end");
        let n = self.chance(bytes.len());
        self.gone.extend_from_slice(&bytes[..n]);
        n
    }
}

impl Transport for Fickle {
    fn poll_receive(&mut self, _: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        assert!(self.lent.is_none(), "a receive may leave the ring");
        if self.coming.is_empty() && self.ended {
            return Poll::Ready(Ok(0));
        }
        let most = self.coming.len().min(room.len());
        let n = self.chance(most);
        for (to, from) in room.iter_mut().zip(self.coming.drain(..n)) {
            *to = from;
        }
        if n == 0 { Poll::Pending } else { Poll::Ready(Ok(n)) }
    }

    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], _: bool) -> Poll<io::Result<usize>> {
        assert!(self.lent.is_none(), "what was lent comes first");
        self.lends = false;
        match self.take(bytes) {
            0 => Poll::Pending,
            n => Poll::Ready(Ok(n)),
        }
    }

    fn poll_send_gathered(
        &mut self,
        _: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        if !self.lends {
            return Poll::Ready(Ok(self.take(bytes)));
        }
        match self.lent.take() {
            None => {
                assert!(!bytes.is_empty());
                self.lent = Some(std::mem::take(bytes));
                Poll::Pending
            }
            Some(lent) if self.random.below(3) == 0 => {
                self.lent = Some(lent);
                Poll::Pending
            }
            Some(lent) => {
                assert!(bytes.is_empty(), "called with another vector");
                *bytes = lent;
                Poll::Ready(Ok(self.take(bytes)))
            }
        }
    }

    fn lends(&self) -> bool {
        self.lends
    }

    fn poll_leave_ring(&mut self, _: &mut Context<'_>, _: Leaving) -> Poll<io::Result<()>> {
        assert!(self.lent.is_none());
        self.lends = false;
        Poll::Ready(Ok(()))
    }

    fn poll_send_file(
        &mut self,
        _: &mut Context<'_>,
        _: &File,
        _: u64,
        _: usize,
    ) -> Poll<io::Result<usize>> {
        unreachable!("it would not be encrypted")
    }

    fn poll_send_held(
        &mut self,
        _: &mut Context<'_>,
        _: BorrowedFd<'_>,
        _: usize,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        unreachable!("it would not be encrypted")
    }

    fn is_drained(&self) -> bool {
        self.coming.is_empty()
    }

    fn has_arrived(&self) -> bool {
        !self.coming.is_empty()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }

    fn reset_at_end(&mut self) {}

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut = true;
        Poll::Ready(Ok(()))
    }
}

/// Both ends of a connection, and the bytes that the client has received.
struct Bed {
    tls: Tls<Fickle>,
    client: ClientMachine,
    random: Random,
    received: Vec<u8>,
    client_saw_end: bool,
}

fn settings() -> (ListenerTls, ClientTls) {
    let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let certificates = Arc::new(Certificates::default());
    certificates.replace(&[Certificate::read(chain.as_bytes(), key.as_bytes(), None).unwrap()]);
    let tickets = Arc::new(TicketKeys::default());
    tickets.rotate(3600);
    let server = ServerSettings { tickets: 2, ..ServerSettings::default() };
    let verify = Verify::Authorities(read_chain(chain.as_bytes()).unwrap());
    let client = ClientSettings { verify, ..ClientSettings::default() };
    let server = ServerTls::new(&server, &certificates, &tickets).unwrap();
    (ListenerTls::new(server), ClientTls::new(&client, &[]).unwrap())
}

impl Bed {
    fn new(seed: u64, lends: bool, (server, client): &(ListenerTls, ClientTls)) -> Self {
        let tls = Tls::new(Fickle::new(seed), server, &Rc::new(TlsBuffers::default())).unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let client = ClientMachine::new(client, name).unwrap();
        let random = Random::new(seed ^ 1);
        let mut bed = Self { tls, client, random, received: Vec::new(), client_saw_end: false };
        bed.shake();
        bed.tls.below.lends = lends;
        bed
    }

    fn shake(&mut self) {
        let mut hello = Vec::new();
        self.client.process(&mut [], &mut self.received, &mut hello).unwrap();
        self.tls.below.coming.extend(hello);
        while !self.poll(|tls, cx| tls.poll_handshake(cx)).unwrap() {}
    }

    /// Polls until it is ready, as a task does. The client reads all the while.
    fn poll<R>(
        &mut self,
        mut what: impl FnMut(&mut Tls<Fickle>, &mut Context<'_>) -> Poll<R>,
    ) -> R {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..10_000 {
            let done = what(&mut self.tls, &mut cx);
            self.client_reads();
            if let Poll::Ready(done) = done {
                return done;
            }
        }
        panic!("it hangs")
    }

    fn client_reads(&mut self) {
        let mut answer = Vec::new();
        let gone = &mut self.tls.below.gone;
        let progress = self.client.process(gone, &mut self.received, &mut answer).unwrap();
        self.client_saw_end |= progress.peer_closed;
        gone.clear();
        self.tls.below.coming.extend(answer);
    }

    fn client_sends(&mut self, bytes: &[u8]) {
        let mut out = Vec::new();
        self.client.encrypt(bytes, &mut out).unwrap();
        self.tls.below.coming.extend(out);
    }

    /// Receives until these bytes are there.
    fn receive(&mut self, expected: &[u8]) {
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let mut room = vec![0; 1 + self.random.below(20_000)];
            let n = self.poll(|tls, cx| tls.poll_receive(cx, &mut room)).unwrap();
            assert!(n > 0, "an end after {} bytes", got.len());
            got.extend_from_slice(&room[..n]);
        }
        assert!(got == expected);
    }

    /// Sends as a connection does: first the gathered bytes as a whole, then the rest of them.
    fn send(&mut self, bytes: &[u8]) {
        let mut gathered = bytes.to_vec();
        let mut sent =
            self.poll(|tls, cx| tls.poll_send_gathered(cx, &mut gathered, false)).unwrap();
        assert_eq!(gathered, bytes, "they are back");
        while sent < bytes.len() {
            sent += self.poll(|tls, cx| tls.poll_send(cx, &bytes[sent..], false)).unwrap();
        }
    }

    fn send_file(&mut self, file: &File, len: usize) {
        let mut sent = 0;
        while sent < len {
            let (at, left) = (sent as u64, len - sent);
            sent += self.poll(|tls, cx| tls.poll_send_file(cx, file, at, left)).unwrap();
        }
    }

    fn flush(&mut self) {
        if !self.tls.is_flushed() {
            self.poll(Tls::poll_flush).unwrap();
        }
        assert!(self.tls.is_flushed());
    }
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let len = match random.below(3) {
        0 => random.below(100),
        1 => random.below(40_000),
        _ => random.below(200_000),
    };
    (0..=len).map(|at| (at ^ at >> 8) as u8).collect()
}

#[test]
fn both_directions_carry_everything_whatever_is_taken_and_given_at_a_time() {
    let settings = settings();
    for seed in 0..60 {
        for lends in [false, true] {
            let mut bed = Bed::new(seed, lends, &settings);
            let mut random = Random::new(seed ^ 2);
            let mut expected = Vec::new();
            for _ in 0..6 {
                let said = bytes(&mut random);
                match random.below(4) {
                    0 => {
                        bed.send(&said);
                        expected.extend(said);
                    }
                    1 => {
                        let mut file = tempfile::tempfile().unwrap();
                        file.write_all(&said).unwrap();
                        bed.poll(|tls, cx| tls.poll_leave_ring(cx, Leaving::LongAnswer)).unwrap();
                        bed.send_file(&file, said.len());
                        expected.extend(said);
                    }
                    _ => {
                        bed.client_sends(&said);
                        bed.receive(&said);
                    }
                }
                if random.below(2) == 0 {
                    bed.flush();
                }
            }
            bed.flush();
            assert!(bed.received == expected, "seed {seed}, lends {lends}");
            let mut last = Vec::new();
            bed.client.close(&mut last).unwrap();
            bed.tls.below.coming.extend(last);
            assert_eq!(bed.poll(|tls, cx| tls.poll_receive(cx, &mut [0; 10])).unwrap(), 0);
            bed.send(b"still");
            bed.flush();
            assert!(bed.received.ends_with(b"still"), "the other direction is open");
            if seed % 2 == 0 {
                bed.poll(Tls::poll_shutdown).unwrap();
                assert!(bed.client_saw_end && bed.tls.below.shut);
            } else {
                // It does not wait for the client, which may see nothing of it.
                bed.poll(Tls::poll_goodbye);
                assert!(bed.tls.below.lent.is_none());
            }
        }
    }
}

#[test]
fn a_hello_that_came_with_the_connection_and_is_wrong_is_told_so() {
    let (server, _) = settings();
    let take = |hello: &[u8]| {
        // Seed 1 begins by taking all of it.
        let below = Fickle::new(1);
        let mut tls = Tls::new(below, &server, &Rc::new(TlsBuffers::default())).unwrap();
        let failure = tls.take(&mut hello.to_vec()).unwrap_err();
        (failure.reason, tls.below.gone.first().copied())
    };
    assert_eq!(take(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]), (Reason::Malformed, Some(21)), "an alert");
    assert_eq!(take(b"no record\r\n\r\n"), (Reason::NotTls, None));
}
