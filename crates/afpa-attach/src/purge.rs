//! The parameters of `afpa purge`.

use afpa_framework::Arguments;
use afpa_http::target::normalise;

use crate::kept::Which;

/// Reads the parameters of an order. Kept answers have neither tags nor a host of their own: each target is asked for
/// under all names of the server, and a purge is about all of them.
///
/// # Errors
/// With the text for `afpa purge` to print.
pub(crate) fn which(arguments: &Arguments<'_>) -> Result<Which, String> {
    let value = |name: &str| match (arguments.has(name), arguments.bytes(name)) {
        (true, None) => Err("an escape in the order is not of the form %XX".to_owned()),
        (_, value) => Ok(value),
    };
    if arguments.has("tag") {
        return Err("an attached server's answers are kept without their tags: purge URLs".into());
    }
    let Some(typed) = value("path")? else {
        let all = arguments.has("host");
        return if all { Ok(Which::All) } else { Err("purge needs path=/the/path".into()) };
    };
    let mut scratch = Vec::new();
    let path = normalise(&typed, &mut scratch).map_err(|why| format!("the path: {why}"))?.to_vec();
    match arguments.has("below") {
        true => Ok(Which::Below(path)),
        false => Ok(Which::Url(path, value("query")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_every_form() {
        let which = |order: &str| super::which(&Arguments::new(Some(order.as_bytes())));
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
