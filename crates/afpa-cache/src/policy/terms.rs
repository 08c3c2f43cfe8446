//! The properties of an object beside its size: its family, and the configured hint.

/// The family of an object's content. Objects of one family are asked for in the same way: a page by people, its
/// parts once for each page, images after both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Documents that people ask for: HTML, and text.
    Page,
    /// Files that pages are made with: style sheets, scripts, fonts, data.
    Part,
    /// Images.
    Image,
    /// All the rest: sound, video, archives, documents.
    #[default]
    Other,
}

impl Family {
    /// The family of a media type (`Content-Type`, parameters included or not).
    pub fn of(content_type: &str) -> Family {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        let media = media.to_ascii_lowercase();
        let part = ["javascript", "json", "css", "wasm", "xml"];
        match media.split_once('/') {
            Some(("image", _)) => Family::Image,
            Some(("font", _)) => Family::Part,
            Some(("application", "xhtml+xml")) => Family::Page,
            Some((_, name)) if part.iter().any(|part| name.ends_with(part)) => Family::Part,
            Some(("text", _)) => Family::Page,
            _ => Family::Other,
        }
    }
}

/// Whether an object stays in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keep {
    /// As long as the policy finds room for it.
    #[default]
    Auto,
    /// It is not ejected, as far as the room for such objects goes.
    Always,
    /// It answers the requests that wait for it and is not listed.
    Never,
}

/// The configured hint about an object (JAWS's *hinted* caching).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hint {
    /// Whether it stays.
    pub keep: Keep,
    /// How often the policy has to choose it before it goes: a use counts that often. 0: it goes before all
    /// others.
    pub weight: u8,
    /// Age in seconds at which it is made anew, even if its files are unchanged; `None`: no age.
    pub expiry: Option<u32>,
}

impl Default for Hint {
    fn default() -> Self {
        Hint { keep: Keep::Auto, weight: 1, expiry: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_have_families() {
        for (content_type, family) in [
            ("text/html; charset=utf-8", Family::Page),
            ("text/plain", Family::Page),
            ("application/xhtml+xml", Family::Page),
            ("text/css", Family::Part),
            ("Text/JavaScript; charset=utf-8", Family::Part),
            ("application/json", Family::Part),
            ("font/woff2", Family::Part),
            ("image/svg+xml", Family::Image),
            ("video/mp4", Family::Other),
            ("application/octet-stream", Family::Other),
            ("nonsense", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::of(content_type), family, "{content_type}");
        }
    }
}
