//! Packets by hand: TCP segments in Ethernet frames over IPv4 and IPv6, built and parsed field by field.
//!
//! - [`Segment`]: one segment, to send or as it came.
//! - [`TcpView`]: a segment in a frame that stays where it is, for code that looks at every packet.
//! - [`checksum`]: the sum of RFC 1071.
//! - [`PacketSocket`]: whole frames in and out of an interface.

pub mod checksum;
mod segment;
mod socket;
mod view;

pub use segment::{ACK, CWR, ECE, FIN, MacPair, PSH, RST, SYN, Segment, SynOptions, URG};
pub use socket::PacketSocket;
pub use view::TcpView;
