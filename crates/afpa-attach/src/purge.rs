//! The parameters of `afpa purge`.

use afpa_http::target::normalise;

use crate::kept::Which;

/// Reads the parameters of an order. Kept answers have neither tags nor a host of their own: each target is asked for
/// under all names of the server, and a purge is about all of them.
///
/// # Errors
/// With the line for `afpa purge` to print.
pub(crate) fn which(order: &str) -> Result<Which, String> {
    let value = |name: &str| {
        let mut pairs = order.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(have, _)| *have == name).map(|(_, value)| unescape(value))
    };
    let escape = || "an escape in the order is not of the form %XX\n".to_owned();
    if value("tag").is_some() {
        return Err(
            "what an attached server's answers are tagged with is not kept: purge URLs\n".into()
        );
    }
    let Some(typed) = value("path") else {
        let all = value("host").is_some();
        return if all { Ok(Which::All) } else { Err("purge needs ?path=/the/path\n".into()) };
    };
    let typed = typed.ok_or_else(escape)?;
    let mut scratch = Vec::new();
    let path =
        normalise(&typed, &mut scratch).map_err(|why| format!("the path: {why}\n"))?.to_vec();
    if value("below").is_some() {
        return Ok(Which::Below(path));
    }
    match value("query") {
        None => Ok(Which::Url(path, None)),
        Some(query) => Ok(Which::Url(path, Some(query.ok_or_else(escape)?))),
    }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        plain.push(match byte {
            b'%' => u8::try_from(digit()? * 16 + digit()?).ok()?,
            byte => byte,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_every_form() {
        let url = |path: &str, query: Option<&str>| {
            Ok(Which::Url(path.into(), query.map(|query| query.as_bytes().to_vec())))
        };
        assert_eq!(which("path=%2Fa%2520b"), url("/a b", None));
        assert_eq!(which("path=/a&query=x%3D1"), url("/a", Some("x=1")));
        assert_eq!(which("path=/a/&below=yes&soft=yes"), Ok(Which::Below(b"/a/".to_vec())));
        assert_eq!(which("host=www.example.org"), Ok(Which::All));
        for wrong in ["", "path=a", "path=/%2", "path=/%zz", "path=/a&query=%", "tag=x"] {
            assert!(which(wrong).is_err(), "{wrong}");
        }
    }
}
