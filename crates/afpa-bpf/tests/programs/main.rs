//! The programs in the kernel: packet in and packet out, and in front of an unmodified server.

mod bypass;
mod bypass_after;
mod cost;
mod keep_alive;
mod life;
mod load;
mod object;
mod packets;
mod requests;
mod retransmission;
mod segments;
mod support;
mod transfer;
mod transfer_ends;
mod transfer_segments;
