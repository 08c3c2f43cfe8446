//! Numbers for people, and back.

use anyhow::{Context, Result, bail};

pub use afpa_netlab::units::{
    duration as parse_duration, probability as parse_share, rate as parse_rate,
};

/// Three significant digits with the usual prefix: `94.1 k/s`, `5.02 GB/s`, `689 us`.
pub fn number(value: f64, unit: &str) -> String {
    const STEPS: [(f64, &str); 6] =
        [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u")];
    let steps = match unit {
        "s" => &STEPS[3..],
        _ if value >= 1.0 || value == 0.0 => &STEPS[..4],
        _ => &STEPS[..],
    };
    let found = steps.iter().find(|(size, _)| significant(value) >= *size);
    let (size, prefix) = found.unwrap_or(&steps[steps.len() - 1]);
    let space = if prefix.is_empty() && unit.is_empty() { "" } else { " " };
    format!("{}{space}{prefix}{unit}", digits(value / size))
}

/// Three significant digits without an exponent.
pub fn digits(value: f64) -> String {
    let rounded = significant(value);
    let decimals = match rounded.abs() {
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    format!("{rounded:.decimals$}")
}

fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let magnitude = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * magnitude).round() / magnitude
}

/// A length in bytes as a label of an axis or a point: `512 B`, `4 KB`, `1 MB` (powers of two),
/// and bytes as they are when they are no whole number of these.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KB", b >> 10),
        b => format!("{b} B"),
    }
}

/// `512`, `4k`, `4K`, `1M`: the reverse, for the command line.
///
/// # Errors
///
/// When it is no size.
pub fn parse_size(text: &str) -> Result<u64> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end();
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        unit => bail!("'{unit}' is no unit of size: k or m"),
    };
    let value: u64 = digits.trim().parse().with_context(|| format!("'{text}' is no size"))?;
    value.checked_mul(factor).with_context(|| format!("'{text}' is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_prefix() {
        assert_eq!(number(94_123.0, "/s"), "94.1 k/s");
        assert_eq!(number(5.02e9, "B/s"), "5.02 GB/s");
        assert_eq!(number(0.000689, "s"), "689 us");
        assert_eq!(number(999_900.0, "/s"), "1.00 M/s");
        assert_eq!(number(0.0, "/s"), "0.00 /s");
        assert_eq!(number(7.0, ""), "7.00");
        let others = [
            (93_412.0, "/s", "93.4 k/s"),
            (305.0, "/s", "305 /s"),
            (3.2e9, "B/s", "3.20 GB/s"),
            (0.001_012, "s", "1.01 ms"),
            (0.000_666, "s", "666 us"),
            (2.5, "s", "2.50 s"),
        ];
        for (value, unit, text) in others {
            assert_eq!(number(value, unit), text);
        }
    }

    #[test]
    fn sizes_go_there_and_back() {
        for (text, bytes) in [("64", 64), ("4k", 4096), ("1M", 1 << 20), ("5000 B", 5000)] {
            assert_eq!(parse_size(text).unwrap(), bytes);
            assert_eq!(parse_size(&size(bytes)).unwrap(), bytes);
        }
        for wrong in ["", "k", "1g", "-1", "99999999999999999m"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
