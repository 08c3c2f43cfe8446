//! Values with units, as words of the command line.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// `5%`, or a fraction such as `0.05`.
///
/// # Errors
///
/// When it is not between 0 and 1.
pub fn probability(text: &str) -> Result<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>()? / 100.0,
        None => text.parse()?,
    };
    ensure!((0.0..=1.0).contains(&value), "{text} is not between 0 and 100 %");
    Ok(value)
}

/// `250us`, `10ms`, `1.5s`, `20m`.
///
/// # Errors
///
/// When it is no time.
pub fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let seconds = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        unit => bail!("{text}: the unit is us, ms, s or m, not '{unit}'"),
    };
    let value: f64 = digits.parse().with_context(|| format!("{text} is no time"))?;
    Duration::try_from_secs_f64(value * seconds).with_context(|| format!("{text} is no time"))
}

/// Bits per second: `20mbit`, `1gbit`, `64kbit`.
///
/// # Errors
///
/// When it is no rate.
pub fn rate(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor = match &text[digits.len()..] {
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        unit => bail!("{text}: the unit is kbit, mbit or gbit, not '{unit}'"),
    };
    let value: f64 = digits.parse().with_context(|| format!("{text} is no rate"))?;
    ensure!(value > 0.0 && value.is_finite(), "{text} is no rate");
    Ok((value * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_nonsense_is_not() {
        assert_eq!(probability("5%").unwrap(), 0.05);
        assert_eq!(probability("0.5").unwrap(), 0.5);
        assert_eq!(duration("10ms").unwrap(), Duration::from_millis(10));
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("20m").unwrap(), Duration::from_secs(1200));
        assert_eq!(rate("20mbit").unwrap(), 20_000_000);
        assert!(probability("101%").is_err());
        for wrong in ["10", "ms", "-1s", "1e400s", "ten ms"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(rate("0mbit").is_err());
    }
}
