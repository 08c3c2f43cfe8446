//! Media types by file name (RFC 9110 section 8.3).

use std::borrow::Cow;
use std::collections::HashMap;

/// The media type of files of an unknown type (RFC 2046 section 4.5.1).
const UNKNOWN: &str = "application/octet-stream";

/// The only registered name that is not obsolete (RFC 9239 section 6).
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The table of media types: the registry's, with overrides of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaTypes {
    overrides: HashMap<Box<str>, Box<str>>,
}

impl MediaTypes {
    /// Gives an extension another type. It is given without its dot and compared without regard to case. The type is sent
    /// as it is, so it brings its own charset.
    pub fn set(&mut self, extension: &str, content_type: &str) {
        self.overrides.insert(plain(extension), content_type.into());
    }

    /// Gives an extension the registry's type again.
    pub fn remove(&mut self, extension: &str) {
        self.overrides.remove(&plain(extension));
    }

    /// Extensions, in lower case, and their types that are not the registry's.
    pub fn overrides(&self) -> Vec<(String, String)> {
        let overrides = self.overrides.iter();
        overrides.map(|(extension, kind)| (extension.to_string(), kind.to_string())).collect()
    }

    /// The Content-Type for a path or file name, by its last extension.
    ///
    /// Text and JavaScript are taken to be UTF-8 and say so; JSON is UTF-8 by definition (RFC 8259
    /// section 11) and XML says it itself. Without a known extension it is
    /// `application/octet-stream`.
    pub fn content_type(&self, path: &[u8]) -> Cow<'_, str> {
        let Some(extension) = extension(path) else { return Cow::Borrowed(UNKNOWN) };
        if let Some(content_type) = self.overrides.get(extension.as_str()) {
            return Cow::Borrowed(content_type);
        }
        match mime_guess::from_ext(&extension).first_raw() {
            None => Cow::Borrowed(UNKNOWN),
            Some("application/javascript") => Cow::Borrowed(JAVASCRIPT),
            Some(media) if media.starts_with("text/") => {
                Cow::Owned(format!("{media}; charset=utf-8"))
            }
            Some(media) => Cow::Borrowed(media),
        }
    }
}

fn plain(extension: &str) -> Box<str> {
    extension.trim_start_matches('.').to_ascii_lowercase().into_boxed_str()
}

/// The Content-Type for a path without overrides; see [`MediaTypes::content_type`].
pub fn content_type(path: &[u8]) -> Cow<'static, str> {
    Cow::Owned(MediaTypes::default().content_type(path).into_owned())
}

/// Whether content of a type is worth compressing: text in the wider sense, and the few binary
/// formats without a compression of their own.
pub fn compressible(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media.starts_with("text/")
        || media.ends_with("+json")
        || media.ends_with("+xml")
        || matches!(
            media.as_str(),
            "application/javascript"
                | "application/json"
                | "application/xml"
                | "application/wasm"
                | "application/rtf"
                | "application/sql"
                | "application/x-sh"
                | "application/vnd.ms-fontobject"
                | "font/ttf"
                | "font/otf"
                | "font/collection"
                | "image/bmp"
                | "image/x-icon"
                | "image/vnd.microsoft.icon"
        )
}

/// Whether a Content-Type is one of these media types, in lower case; `type/*` stands for all of a kind.
pub fn is_listed(content_type: &[u8], types: &[String]) -> bool {
    let media = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    types.iter().any(|known| match known.strip_suffix('*') {
        Some(group) => media
            .get(..group.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(group.as_bytes())),
        None => media.eq_ignore_ascii_case(known.as_bytes()),
    })
}

/// The last extension of the last segment, in lower case; a leading dot makes none.
fn extension(path: &[u8]) -> Option<String> {
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    let dot = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0)?;
    let extension = std::str::from_utf8(name.get(dot + 1..)?).ok()?;
    (!extension.is_empty()).then(|| extension.to_ascii_lowercase())
}

/// Whether a media type, with its parameters, is that of server-sent events (HTML, section 9.2).
pub fn is_events(value: &[u8]) -> bool {
    let kind = value.split(|&byte| byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_extension() {
        for (path, expected) in [
            ("/index.html", "text/html; charset=utf-8"),
            ("/A.HTM", "text/html; charset=utf-8"),
            ("/a.css", "text/css; charset=utf-8"),
            ("/a.txt", "text/plain; charset=utf-8"),
            ("/a.js", "text/javascript; charset=utf-8"),
            ("/a.mjs", "text/javascript; charset=utf-8"),
            ("/a.json", "application/json"),
            ("/a.svg", "image/svg+xml"),
            ("/a.png", "image/png"),
            ("/a.jpg", "image/jpeg"),
            ("/a.webp", "image/webp"),
            ("/a.wasm", "application/wasm"),
            ("/a.woff2", "font/woff2"),
            ("/a.pdf", "application/pdf"),
            ("/a.mp4", "video/mp4"),
            ("/a.tar.gz", "application/gzip"),
            ("/a", UNKNOWN),
            ("/a.", UNKNOWN),
            ("/.html", UNKNOWN),
            ("/a.html/b", UNKNOWN),
            ("/a.nobody-knows", UNKNOWN),
        ] {
            assert_eq!(content_type(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(content_type(b"/a.\xff"), UNKNOWN);
    }

    #[test]
    fn overrides_win() {
        let mut types = MediaTypes::default();
        types.set(".Md", "text/markdown; charset=latin1");
        assert_eq!(types.content_type(b"/x.MD"), "text/markdown; charset=latin1");
        assert_eq!(types.content_type(b"/x.png"), "image/png");
        assert_eq!(
            types.overrides(),
            [("md".to_owned(), "text/markdown; charset=latin1".to_owned())]
        );
        types.remove("MD");
        assert_eq!(types, MediaTypes::default());
    }

    #[test]
    fn text_is_compressible_and_pictures_are_not() {
        for path in ["/a.html", "/a.js", "/a.json", "/a.svg", "/a.wasm", "/a.xml", "/a.ico"] {
            assert!(compressible(&content_type(path.as_bytes())), "{path}");
        }
        for path in ["/a.png", "/a.woff2", "/a.zip", "/a.mp4", "/a"] {
            assert!(!compressible(&content_type(path.as_bytes())), "{path}");
        }
    }
}
