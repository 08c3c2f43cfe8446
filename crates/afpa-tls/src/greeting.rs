//! Sites of one listener that make different demands on their clients. The name that a client asks for (SNI, RFC 6066
//! section 3) chooses the settings, so its first message is read before the connection begins. The certificate for that
//! name may also still be on its way.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::server::Acceptor;

use crate::resolver::{Waiter, asks_for_challenge};
use crate::server::ServerTls;

/// The settings for the connections of a listener, by the name that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    default: ServerTls,
    /// By name in lower case; those for `*.example.org` by `.example.org`. Empty: there is no choice.
    by_name: Arc<HashMap<Box<str>, ServerTls>>,
}

impl ListenerTls {
    /// The same settings for all connections.
    pub fn new(all: ServerTls) -> Self {
        Self { default: all, by_name: Arc::default() }
    }

    /// Settings by name. The `names` are in lower case, and some begin with `*.`; of two equal names the first decides.
    /// `default` is for all other names, and for clients that ask for none.
    pub fn by_name<N: AsRef<str>>(
        default: ServerTls,
        names: impl IntoIterator<Item = (N, ServerTls)>,
    ) -> Self {
        let mut by_name = HashMap::new();
        for (name, tls) in names {
            let name = name.as_ref();
            by_name.entry(name.strip_prefix('*').unwrap_or(name).into()).or_insert(tls);
        }
        if by_name.values().all(|tls| *tls == default) {
            by_name.clear();
        }
        Self { default, by_name: Arc::new(by_name) }
    }

    /// The settings for any connection, if there is no choice by its first message.
    pub fn only(&self) -> Option<&ServerTls> {
        let is_one = self.by_name.is_empty() && !self.default.certificates().waits_on_demand();
        is_one.then_some(&self.default)
    }

    /// The settings for every name; `None`: the name decides.
    pub(crate) fn same_for_all(&self) -> Option<&ServerTls> {
        self.by_name.is_empty().then_some(&self.default)
    }

    /// The longest name decides, as in routing.
    fn find(&self, name: &str) -> &ServerTls {
        let dots = name.match_indices('.').filter_map(|(at, _)| name.get(at..));
        let found = std::iter::once(name).chain(dots).find_map(|part| self.by_name.get(part));
        found.unwrap_or(&self.default)
    }
}

/// The first message of a client, as far as it has arrived.
pub struct Greeting {
    settings: ListenerTls,
    acceptor: Acceptor,
    arrived: Vec<u8>,
}

/// A client's first message, and the settings chosen for its connection.
#[derive(Debug)]
pub struct Greeted {
    /// The settings for the connection.
    pub tls: ServerTls,
    /// All ciphertext that has arrived.
    pub arrived: Vec<u8>,
    /// The name whose certificate the client wants.
    name: Option<Box<str>>,
    /// The wait for that certificate. Its drop ends the wait, as when the client goes away.
    waiter: Waiter,
}

impl Greeted {
    /// Waits for that certificate, if it is on its way.
    pub fn poll_certificate(&mut self, cx: &Context<'_>) -> Poll<()> {
        match &self.name {
            Some(name) => self.waiter.poll(self.tls.certificates(), cx, name),
            None => Poll::Ready(()),
        }
    }
}

/// More ciphertext than this is not waited for: no greeting is that long.
const MOST: usize = 64 * 1024;

impl Greeting {
    /// Nothing has arrived yet.
    pub fn new(settings: ListenerTls) -> Self {
        Self { settings, acceptor: Acceptor::default(), arrived: Vec::new() }
    }

    /// Takes ciphertext until the first message is complete. A faulty message gets the default settings: the connection
    /// finds the fault by itself.
    pub fn take(&mut self, arrived: &[u8]) -> Option<Greeted> {
        self.arrived.extend_from_slice(arrived);
        let (tls, name) = match self.ask(arrived) {
            Ok(None) if self.arrived.len() <= MOST => return None,
            Ok(Some(asked)) => asked,
            Ok(None) | Err(_) => (self.settings.default.clone(), None),
        };
        let (arrived, waiter) = (std::mem::take(&mut self.arrived), Waiter::default());
        Some(Greeted { tls, arrived, name, waiter })
    }

    fn ask(&mut self, mut arrived: &[u8]) -> io::Result<Option<(ServerTls, Option<Box<str>>)>> {
        while !arrived.is_empty() {
            if self.acceptor.read_tls(&mut arrived)? == 0 {
                break;
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let hello = accepted.client_hello();
                    let name = hello.server_name().map(str::to_ascii_lowercase);
                    let tls = match &name {
                        Some(name) => self.settings.find(name),
                        None => &self.settings.default,
                    };
                    let name = name.filter(|_| !asks_for_challenge(&hello)).map(Into::into);
                    return Ok(Some((tls.clone(), name)));
                }
                Err((error, _)) => return Err(io::Error::other(error)),
            }
        }
        Ok(None)
    }
}

impl std::fmt::Debug for Greeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Greeting({} bytes)", self.arrived.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::Certificate;
    use crate::machine::{ClientMachine, ServerName};
    use crate::resolver::Certificates;
    use crate::server::ServerSettings;
    use crate::testing::Authority;
    use crate::tickets::TicketKeys;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn server() -> ServerTls {
        let (certificates, tickets) = (Arc::default(), Arc::<TicketKeys>::default());
        let certificates: Arc<Certificates> = certificates;
        ServerTls::new(&ServerSettings::default(), &certificates, &tickets).unwrap()
    }

    fn hello(name: &str) -> Vec<u8> {
        let client = Authority::new("Root").client(|_| {});
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut out = Vec::new();
        let mut machine = ClientMachine::new(&client, name).unwrap();
        machine.process(&mut [], &mut Vec::new(), &mut out).unwrap();
        out
    }

    #[test]
    fn the_name_decides_in_whatever_pieces_it_arrives() {
        let [default, exact, below, deeper] = std::array::from_fn(|_| server());
        let names = [
            ("a.example", exact.clone()),
            ("*.example", below.clone()),
            ("*.b.example", deeper.clone()),
            ("a.example", default.clone()),
        ];
        let settings = ListenerTls::by_name(default.clone(), names);
        assert_eq!(settings.only(), None);
        for (name, expected) in [
            ("a.example", &exact),
            ("A.EXAMPLE", &exact),
            ("c.example", &below),
            ("a.a.example", &below),
            ("b.example", &below),
            ("x.y.b.example", &deeper),
            ("example", &default),
            ("other.org", &default),
            ("127.0.0.1", &default),
        ] {
            let hello = hello(name);
            for step in [1, 7, 4096] {
                let mut greeting = Greeting::new(settings.clone());
                let mut pieces = hello.chunks(step);
                let greeted = pieces.find_map(|piece| greeting.take(piece)).expect("it is known");
                assert_eq!(&greeted.tls, expected, "{name} {step}");
                assert!(greeted.arrived == hello && pieces.next().is_none());
            }
        }
    }

    #[test]
    fn without_a_difference_nothing_is_looked_at() {
        let all = server();
        let settings = ListenerTls::by_name(all.clone(), [("a.example", all.clone())]);
        assert_eq!(settings.only(), Some(&all));
        assert_eq!(settings, settings.clone());
    }

    #[test]
    fn what_is_no_greeting_is_the_default_s_affair_and_nothing_is_kept_without_bound() {
        let default = server();
        let settings = ListenerTls::by_name(default.clone(), [("a.example", server())]);
        let http = b"GET / HTTP/1.1\r\n\r\n";
        let taken = Greeting::new(settings.clone()).take(http);
        let taken = taken.expect("it is known");
        assert!(taken.tls == default && taken.arrived == http && taken.name.is_none());
        let mut greeting = Greeting::new(settings);
        let begin = [1, 0, 0xea, 0x60].into_iter().chain(std::iter::repeat_n(0, 60_000));
        let mut total = 0;
        for byte in begin {
            total += 6;
            if let Some(greeted) = greeting.take(&[22, 3, 1, 0, 1, byte]) {
                assert!(greeted.tls == default && greeted.arrived.len() == total);
                assert!(total <= MOST + 6);
                return;
            }
        }
        panic!("{total} bytes were kept");
    }

    #[test]
    fn who_asks_for_a_certificate_that_is_on_its_way_waits() {
        let certificates: Arc<Certificates> = Arc::default();
        let tickets: Arc<TicketKeys> = Arc::default();
        let tls = ServerTls::new(&ServerSettings::default(), &certificates, &tickets).unwrap();
        let settings = ListenerTls::new(tls);
        assert!(settings.only().is_some(), "nobody waits");
        let coming = Arc::new(AtomicBool::new(true));
        let (seen, order) = (Arc::clone(&coming), Ordering::Relaxed);
        certificates
            .wait_on_demand(Some(Box::new(move |name, _| name == "a.example" && seen.load(order))));
        assert!(settings.only().is_none());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let times = || woken.0.load(order);
        let greeted =
            |name| Greeting::new(settings.clone()).take(&hello(name)).expect("it is known");
        let mut those_who_wait = Vec::new();
        let mut poll = |name| {
            let mut greeted = greeted(name);
            let poll = greeted.poll_certificate(&Context::from_waker(&waker));
            those_who_wait.push(greeted);
            poll
        };
        assert_eq!(poll("b.example"), Poll::Ready(()), "nothing is on its way");
        assert_eq!(poll("A.example"), Poll::Pending);
        let certificate = |name| {
            let (chain, key) = Authority::new("Root").issue(&[name]);
            Certificate::read(chain.as_bytes(), key.as_bytes(), None).unwrap()
        };
        certificates.replace(&[certificate("b.example")]);
        certificates.settled();
        assert_eq!(times(), 1);
        assert_eq!(poll("a.example"), Poll::Pending, "that was another one");
        certificates.replace(&[certificate("a.example")]);
        certificates.settled();
        assert_eq!((times(), poll("a.example")), (2, Poll::Ready(())));
        certificates.replace(&[]);
        assert_eq!(poll("a.example"), Poll::Pending);
        coming.store(false, order);
        certificates.settled();
        assert_eq!((times(), poll("a.example")), (3, Poll::Ready(())), "it has failed");
    }

    #[test]
    fn who_goes_away_leaves_room_for_others_who_wait() {
        let certificates: Arc<Certificates> = Arc::default();
        let tickets: Arc<TicketKeys> = Arc::default();
        let tls = ServerTls::new(&ServerSettings::default(), &certificates, &tickets).unwrap();
        let settings = ListenerTls::new(tls);
        certificates.wait_on_demand(Some(Box::new(|_, _| true)));
        let hello = hello("a.example");
        let context = Context::from_waker(Waker::noop());
        let wait = || {
            let mut greeted = Greeting::new(settings.clone()).take(&hello).expect("it is known");
            assert_eq!(greeted.poll_certificate(&context), Poll::Pending);
            assert_eq!(greeted.poll_certificate(&context), Poll::Pending);
            greeted
        };
        for _ in 0..2 * crate::resolver::MOST_WAITING {
            drop(wait());
        }
        let all: Vec<_> = (0..crate::resolver::MOST_WAITING).map(|_| wait()).collect();
        let mut more = Greeting::new(settings.clone()).take(&hello).expect("it is known");
        assert_eq!(more.poll_certificate(&context), Poll::Ready(()), "there are too many");
        drop(all);
        wait();
    }

    /// rustls shows nothing but names of hosts, as RFC 6066 has them.
    #[test]
    fn what_is_no_name_of_a_host_is_not_asked_for() {
        let certificates: Arc<Certificates> = Arc::default();
        let tickets: Arc<TicketKeys> = Arc::default();
        let tls = ServerTls::new(&ServerSettings::default(), &certificates, &tickets).unwrap();
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        certificates.wait_on_demand(Some(Box::new(move |name, _| {
            seen.lock().unwrap().push(name.to_owned());
            false
        })));
        let known = hello("xxx.a.example");
        let at = known.windows(13).position(|bytes| bytes == b"xxx.a.example").unwrap();
        for name in
            ["*.a.a.example", "x..a.example.", "xx/../example", "127.127.0.001", "x\0x.a.example"]
        {
            let mut hello = known.clone();
            hello[at..at + 13].copy_from_slice(name.as_bytes());
            let greeted = Greeting::new(ListenerTls::new(tls.clone())).take(&hello);
            let mut greeted = greeted.expect("it is known");
            assert!(greeted.poll_certificate(&Context::from_waker(Waker::noop())).is_ready());
            println!("{name:?}: {:?}", asked.lock().unwrap());
        }
        assert!(asked.lock().unwrap().is_empty(), "{asked:?}");
    }
}
