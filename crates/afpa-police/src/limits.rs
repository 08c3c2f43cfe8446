//! Rates.

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens a second; 0: no limit. At most [`Rate::MOST`].
    pub per_second: u32,
    /// Tokens of a full bucket: so much may happen at once. At least 1.
    pub burst: u32,
}

/// The rates, and the length of the prefix that counts as one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// New connections of one client.
    pub client_connections: Rate,
    /// New connections of all clients together.
    pub connections: Rate,
    /// Requests of one client.
    pub client_requests: Rate,
    /// Requests of all clients together.
    pub requests: Rate,
    /// Bits of an IPv4 address that make a client, 0 to 32.
    pub ipv4_bits: u8,
    /// Bits of an IPv6 address that make a client, 0 to 128.
    pub ipv6_bits: u8,
}

impl Rate {
    /// The highest rate that a bucket can count.
    pub const MOST: u32 = 1_000_000;
    /// A bucket must be full again within an hour, because the clocks of buckets wrap around.
    pub const LONGEST_SECONDS: u32 = 3600;

    /// No limit.
    pub const fn none(burst: u32) -> Self {
        Self { per_second: 0, burst }
    }

    /// Seconds until an empty bucket is full, rounded up; 0 without a limit.
    pub fn seconds(self) -> u32 {
        match self.per_second {
            0 => 0,
            rate => self.burst.div_ceil(rate),
        }
    }

    /// Whether there is a limit.
    pub fn limits(self) -> bool {
        self.per_second != 0
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_connections: Rate::none(100),
            connections: Rate::none(1000),
            client_requests: Rate::none(200),
            requests: Rate::none(10_000),
            ipv4_bits: 32,
            ipv6_bits: 64,
        }
    }
}
