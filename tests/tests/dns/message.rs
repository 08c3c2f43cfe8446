//! Questions, and answers as the `domain` crate reads them.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use domain::base::message::RecordSection;
use domain::base::{Message, Name, ParsedName, ParsedRecord};
use domain::rdata::AllRecordData;

/// A question.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) rtype: u16,
    /// Bytes that an answer may have, and whether signatures are wanted; `None`: without EDNS.
    pub(super) edns: Option<(u16, bool)>,
}

impl Question {
    pub(super) fn new(name: &str, rtype: u16) -> Self {
        Self { name: name.to_owned(), rtype, edns: None }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let name: Name<Vec<u8>> = self.name.parse().expect("a name");
        let mut message =
            vec![0xab, 0xcd, 0, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(self.edns.is_some())];
        message.extend_from_slice(name.as_slice());
        message.extend_from_slice(&self.rtype.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        if let Some((size, wants_signatures)) = self.edns {
            message.extend_from_slice(&[0, 0, 41]);
            message.extend_from_slice(&size.to_be_bytes());
            message.extend_from_slice(&[0, 0, if wants_signatures { 0x80 } else { 0 }, 0, 0, 0]);
        }
        message
    }

    pub(super) fn ask(&self, server: SocketAddr) -> Answer {
        Answer::read(
            &exchange(server, &self.bytes()).unwrap_or_else(|| panic!("no answer to {self:?}")),
        )
    }

    pub(super) fn ask_by_tcp(&self, server: SocketAddr) -> Answer {
        let mut stream = TcpStream::connect(server).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let bytes = self.bytes();
        let length = u16::try_from(bytes.len()).expect("short").to_be_bytes();
        stream.write_all(&[&length[..], &bytes].concat()).expect("written");
        Answer::read(&read_framed(&mut stream))
    }
}

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn read_framed(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).expect("a length");
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message).expect("a message");
    message
}

/// Sends a datagram, and waits for another one. Either may be lost, so it asks again, as resolvers do.
pub(super) fn exchange(server: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
    (0..3).find_map(|_| exchange_once(server, message))
}

fn exchange_once(server: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
    let own = if server.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let socket = UdpSocket::bind(own).expect("bound");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket.connect(server).expect("connected");
    socket.send(message).ok()?;
    let mut room = [0; 65_535];
    let length = socket.recv(&mut room).ok()?;
    Some(room[..length].to_vec())
}

/// An answer: its code, its flags, and its sections as sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) rcode: String,
    pub(super) aa: bool,
    pub(super) tc: bool,
    pub(super) answer: BTreeSet<String>,
    pub(super) authority: BTreeSet<String>,
    /// Without EDNS.
    pub(super) additional: BTreeSet<String>,
}

impl Answer {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let message = Message::from_octets(bytes).expect("a message");
        let (_, answer, authority, additional) = message.sections().expect("sections");
        Self {
            rcode: message.header().rcode().to_string(),
            aa: message.header().aa(),
            tc: message.header().tc(),
            answer: set(answer),
            authority: set(authority),
            additional: set(additional),
        }
    }
}

fn set(section: RecordSection<'_, &[u8]>) -> BTreeSet<String> {
    let records = section.map(|record| record.expect("a record"));
    records.filter(|record| record.rtype().to_int() != 41).map(shown).collect()
}

/// Names are compared without case: servers may write the zone's or the question's.
fn shown(record: ParsedRecord<'_, &[u8]>) -> String {
    let record = record.to_any_record::<AllRecordData<_, ParsedName<_>>>().expect("known data");
    let (owner, data) = (record.owner().to_string(), record.data().to_string());
    format!("{} {} {} {data}", owner.to_lowercase(), record.ttl().as_secs(), record.rtype())
}
