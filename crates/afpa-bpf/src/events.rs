//! Answered requests on their way to the access log.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use afpa_abi::{Event, FlowKey};
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::load::FastPath;

/// Reader of the ring buffer; one is enough, and it stays on its thread.
pub struct Events<'f> {
    ring: RingBuffer<'f>,
    read: Rc<RefCell<Vec<Event>>>,
}

impl FastPath {
    /// Open the stream of answered requests. Programs do not wake the reader: ask it every now and then.
    pub fn events(&self) -> libbpf_rs::Result<Events<'_>> {
        let read = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.events, move |bytes| {
            into.borrow_mut().extend(parse(bytes));
            0
        })?;
        Ok(Events { ring: builder.build()?, read })
    }
}

impl Events<'_> {
    /// Everything that is there, without waiting.
    pub fn drain(&self) -> libbpf_rs::Result<Vec<Event>> {
        self.ring.poll(Duration::ZERO)?;
        self.ring.consume()?;
        Ok(self.read.take())
    }
}

/// `struct afpa_event`
fn parse(bytes: &[u8]) -> Option<Event> {
    let bytes: &[u8; size_of::<Event>()] = bytes.try_into().ok()?;
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Some(Event {
        flow: flow_key(bytes.first_chunk()?),
        listener: word(36),
        site: word(40),
        date: word(44),
        version: u64::from_ne_bytes(bytes[48..56].try_into().ok()?),
        length: word(56),
        weight: word(60),
        kind: bytes[64],
        head: bytes[65],
        reserved: [0; 2],
        block: word(68),
        block_sequence: word(72),
        spare: 0,
    })
}

/// `struct afpa_flow_key`
pub(crate) fn flow_key(bytes: &[u8; size_of::<FlowKey>()]) -> FlowKey {
    let mut key = FlowKey::default();
    key.client.copy_from_slice(&bytes[..16]);
    key.server.copy_from_slice(&bytes[16..32]);
    key.client_port = u16::from_ne_bytes([bytes[32], bytes[33]]);
    key.server_port = u16::from_ne_bytes([bytes[34], bytes[35]]);
    key
}

/// And back.
pub(crate) fn flow_key_bytes(key: &FlowKey) -> [u8; size_of::<FlowKey>()] {
    let mut bytes = [0; size_of::<FlowKey>()];
    bytes[..16].copy_from_slice(&key.client);
    bytes[16..32].copy_from_slice(&key.server);
    bytes[32..34].copy_from_slice(&key.client_port.to_ne_bytes());
    bytes[34..].copy_from_slice(&key.server_port.to_ne_bytes());
    bytes
}
