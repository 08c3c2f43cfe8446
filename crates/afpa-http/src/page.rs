//! Small HTML pages that stand in for content.

use crate::Status;

/// The media type of the pages.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// The page for an error: its code, its reason phrase, and a sentence of help.
pub fn error_page(status: Status) -> Vec<u8> {
    page(status, help(status))
}

/// The page for a redirect, with a link for clients that do not follow it (RFC 9110 section 15.4).
///
/// `location` is escaped here.
pub fn redirect_page(status: Status, location: &[u8]) -> Vec<u8> {
    let location = escape(location);
    page(status, &format!("The page is at <a href=\"{location}\">{location}</a>."))
}

/// Escapes text for HTML content and quoted attributes. Bytes that are not UTF-8 become U+FFFD.
pub fn escape(text: &[u8]) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            plain => safe.push(plain),
        }
    }
    safe
}

/// A page with a sentence that tells more than the status does.
pub fn page(status: Status, sentence: &str) -> Vec<u8> {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{status}</title>\n\
         <h1>{status}</h1>\n<p>{sentence}</p>\n</html>\n"
    )
    .into_bytes()
}

/// A sentence of help for a status.
pub fn help(status: Status) -> &'static str {
    match status {
        Status::BAD_REQUEST => "The server did not understand the request.",
        Status::FORBIDDEN => "You may not see this page.",
        Status::NOT_FOUND => "There is no page at this address.",
        Status::METHOD_NOT_ALLOWED => "This page cannot be used in this way.",
        Status::REQUEST_TIMEOUT => "The request took too long to arrive.",
        Status::PRECONDITION_FAILED => "The page is not in the state the request asked for.",
        Status::CONTENT_TOO_LARGE => "The request carried more content than the server takes.",
        Status::URI_TOO_LONG => "The address is longer than the server takes.",
        Status::RANGE_NOT_SATISFIABLE => "The page does not have the part that was asked for.",
        Status::EXPECTATION_FAILED => "The server cannot meet the expectation of the request.",
        Status::MISDIRECTED_REQUEST => "The request reached a server that does not answer for it.",
        Status::FIELDS_TOO_LARGE => "The fields of the request are larger than the server takes.",
        Status::INTERNAL_SERVER_ERROR => "The server failed. It is not your fault.",
        Status::NOT_IMPLEMENTED => "The server does not know how to do this.",
        Status::TOO_EARLY => "The request came before the connection was secure. Send it again.",
        Status::TOO_MANY_REQUESTS => "You asked too often. Wait a moment.",
        Status::BAD_GATEWAY => "The server of this page did not answer as it should.",
        Status::GATEWAY_TIMEOUT => "The server of this page took too long to answer.",
        Status::SERVICE_UNAVAILABLE => "The server is busy. Try again in a moment.",
        Status::VERSION_NOT_SUPPORTED => "The server speaks HTTP/1.0 and HTTP/1.1.",
        _ => "The request could not be answered.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_name_the_status_and_stay_small() {
        for &status in Status::ALL {
            let page = String::from_utf8(error_page(status)).unwrap();
            assert!(page.contains(&format!("<h1>{status}</h1>")) && page.len() < 512);
        }
    }

    #[test]
    fn a_location_cannot_break_out_of_the_page() {
        let location = b"/\"><script>alert('&')</script>\xff";
        let page = redirect_page(Status::MOVED_PERMANENTLY, location);
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("<script>"), "{page}");
        let safe = "/&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;\u{fffd}";
        assert!(page.contains(&format!("<a href=\"{safe}\">{safe}</a>")), "{page}");
    }
}
