//! Tells secondaries that a zone is new (RFC 1996), until they have said that they know.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use afpa_dns::Zone;
use afpa_dns::query::SignedAt;
use afpa_dns::transfer::{is_answer_to_notify, notify};
use afpa_dns::tsig::{Key, Signer};
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::udp::now;

/// Attempts, and the pause after the first, which doubles.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Tells one secondary. It returns when that has answered, or does not answer.
///
/// # Errors
/// When nothing can be sent there, or nothing has come back.
pub fn tell(zone: &Zone, key: Option<&Arc<Key>>, secondary: SocketAddr) -> io::Result<()> {
    let own: SocketAddr = match secondary {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(own)?;
    socket.connect(secondary)?;
    let mut random: StdRng = rand::make_rng();
    let id: u16 = random.random();
    let mut message = notify(zone, id);
    let mut signer = key.map(Signer::of);
    if let Some(signer) = &mut signer {
        signer.sign(&mut message, 0, now().unix());
    }
    // An answer to a signed message is signed, too.
    let is_theirs = |answer: &[u8]| {
        let is_right = |signer: &Signer| {
            let signature = SignedAt::find(answer);
            signature.is_some_and(|signature| signer.accepts(answer, signature, now().unix()))
        };
        is_answer_to_notify(answer, id) && signer.as_ref().is_none_or(is_right)
    };
    let mut pause = PAUSE;
    for _ in 0..ATTEMPTS {
        socket.send(&message)?;
        socket.set_read_timeout(Some(pause))?;
        let mut answer = [0; 512];
        match socket.recv(&mut answer) {
            Ok(length) if is_theirs(answer.get(..length).unwrap_or_default()) => return Ok(()),
            // Something else, or nothing yet.
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => std::thread::sleep(pause),
        }
        pause *= 2;
    }
    Err(io::ErrorKind::TimedOut.into())
}
