//! The generators of the load.

mod fetch;
mod generator;
mod h2load;
mod http2;
mod http3;
mod socket;

mod tc;
mod tool;
mod wrk;

pub use fetch::fetch_all;
pub use generator::Generator;
pub use http2::Http2;
pub use http3::Http3;

/// All that need no certificate.
pub fn generators() -> Vec<Box<dyn Generator>> {
    vec![Box::new(tc::Tc), Box::new(socket::Socket), Box::new(wrk::Wrk), Box::new(h2load::H2load)]
}
