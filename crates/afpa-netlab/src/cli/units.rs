//! Values as words of the command line.

use anyhow::{Context, Result};

pub(super) use afpa_netlab::units::{duration, probability, rate};

/// `Name: value`.
pub(super) fn header(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once(':').with_context(|| format!("{text}: no colon"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_its_name_at_the_first_colon() {
        assert_eq!(header("A: b:c").unwrap(), ("A".into(), "b:c".into()));
        assert!(header("A").is_err());
    }
}
