//! `client_rate` and `rate`: how often clients may ask in a place.

use std::fmt;

use afpa_police::{Quota, Rate};

use crate::reader::Section;
use crate::units::Unfit;

/// The rates of a place; `None`: as outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// That of each client.
    pub client: Option<RateLimit>,
    /// That of all clients together.
    pub all: Option<RateLimit>,
}

/// A rate, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// No limit.
    None,
    /// At most this.
    Most(Quota),
}

const NONE: &str = "none";

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateLimit::None => f.write_str(NONE),
            RateLimit::Most(quota) => quota.fmt(f),
        }
    }
}

impl Rates {
    /// `word` stands for the value outside.
    pub(crate) fn read(s: &mut Section<'_, '_>, word: &'static str) -> Self {
        let kind = match word {
            NONE => "rate",
            _ => "rate, or `none`",
        };
        Self {
            client: s.text_or("client_rate", kind, word, rate),
            all: s.text_or("rate", kind, word, rate),
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `300/m`, or `300/m burst 20`.
fn rate(text: &str) -> Result<RateLimit, Unfit> {
    if text == NONE {
        return Ok(RateLimit::None);
    }
    let remedy = "write a number and a unit of s, m or h: \"5/s\", \"300/m\", \"300/m burst 20\"";
    let unfit = || Unfit::new(format!("\"{text}\" is not a rate"), remedy);
    let (rate, burst) = match text.split_once(" burst ") {
        Some((rate, burst)) => (rate, Some(burst)),
        None => (text, None),
    };
    let (count, unit) = rate.split_once('/').ok_or_else(unfit)?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u32>().ok().filter(|_| digits);
        number.filter(|number| *number > 0).ok_or_else(unfit)
    };
    let period = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(unfit()),
    };
    let count = number(count)?;
    let quota = Quota { count, period, burst: burst.map_or(Ok(count), number)? };
    if u64::from(count) > u64::from(Rate::MOST) * u64::from(period) || count > 1_000_000_000 {
        let cause = format!("\"{text}\" is more than {} in a second", Rate::MOST);
        return Err(Unfit::new(cause, "remove it: nobody comes so often"));
    }
    if quota.seconds() > u64::from(Rate::LONGEST_SECONDS) {
        let cause = format!("\"{text}\" has a burst of more than an hour");
        return Err(Unfit::new(cause, "write a smaller burst"));
    }
    Ok(RateLimit::Most(quota))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_in_a_time() {
        for text in ["5/s", "300/m", "300/m burst 20", "1/h", "1000000/s", "1/s burst 3600", "none"]
        {
            assert_eq!(rate(text).map(|rate| rate.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(rate("5/s burst 5").map(|rate| rate.to_string()), Ok("5/s".to_owned()));
        for text in [
            "5",
            "5/",
            "/s",
            "0/s",
            "5/d",
            "-5/s",
            "+5/s",
            "5/s burst",
            "5/s burst 0",
            "5 /s",
            "1000001/s",
            "1/h burst 2",
            "1/s burst 3601",
            "99999999999/s",
            "",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
