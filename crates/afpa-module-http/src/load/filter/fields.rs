//! Filters that change the description of the content: its charset, fields, and the codings to come.

use afpa_cache::Keep;
use afpa_http::{CodingSet, media};

use super::pipeline::{Draft, Filter, Origin};
use crate::load::fault::BuildError;
use crate::settings::{Charset, DocRootSettings};

/// Names the charset of text, or leaves it to the file.
pub(super) struct NamedCharset(pub(super) Charset);

impl Filter for NamedCharset {
    fn filter(&self, draft: &mut Draft, _: &mut Origin<'_>) -> Result<(), BuildError> {
        draft.content_type = self.of(&draft.content_type);
        Ok(())
    }
}

impl NamedCharset {
    fn of(&self, content_type: &str) -> String {
        let mut parts = content_type.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let is_charset = |part: &str| part.to_ascii_lowercase().starts_with("charset=");
        let (charsets, others): (Vec<_>, Vec<_>) = parts.partition(|part| is_charset(part));
        if !media.starts_with("text/") && charsets.is_empty() {
            return content_type.to_owned();
        }
        let mut named = media.to_owned();
        others.iter().for_each(|other| named.push_str(&format!("; {other}")));
        match &self.0 {
            Charset::Keep => return content_type.to_owned(),
            Charset::None => {}
            Charset::Named(charset) => named.push_str(&format!("; charset={charset}")),
        }
        named
    }
}

/// Adds fields, or replaces those of the same name. A field without a value is removed.
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Filter for Fields {
    fn filter(&self, draft: &mut Draft, _: &mut Origin<'_>) -> Result<(), BuildError> {
        for (name, value) in &self.0 {
            draft.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                draft.fields.push((name.clone(), value.clone()));
            }
        }
        Ok(())
    }
}

/// Says which codings are to be made. The compressor makes them when the object is asked for again, so that no
/// request waits for them.
pub(super) struct Codings;

impl Filter for Codings {
    fn filter(&self, draft: &mut Draft, origin: &mut Origin<'_>) -> Result<(), BuildError> {
        let settings = origin.doc_root.settings();
        let size = draft.len(origin.sources);
        if draft.hint.keep == Keep::Never
            || !is_compressed_here(settings, &draft.content_type, size)
        {
            return Ok(());
        }
        let stored: CodingSet = origin.sources.stored.iter().map(|(coding, _)| *coding).collect();
        let configured = settings.compression.codings.iter().map(|(coding, _)| *coding);
        draft.due = configured.filter(|coding| !stored.contains(*coding)).collect();
        Ok(())
    }
}

fn is_compressed_here(settings: &DocRootSettings, content_type: &str, size: u64) -> bool {
    let compression = &settings.compression;
    let media = content_type.split(';').next().unwrap_or_default().trim();
    (compression.min_size..=compression.max_size).contains(&size)
        && (media::compressible(content_type)
            || compression.types.iter().any(|known| known.eq_ignore_ascii_case(media)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charset_is_named_where_there_may_be_one() {
        let latin = NamedCharset(Charset::Named("iso-8859-1".to_owned()));
        for (before, after) in [
            ("text/html; charset=utf-8", "text/html; charset=iso-8859-1"),
            ("text/plain", "text/plain; charset=iso-8859-1"),
            ("text/x; a=b; Charset=utf-8", "text/x; a=b; charset=iso-8859-1"),
            ("application/xml; charset=utf-8", "application/xml; charset=iso-8859-1"),
            ("application/json", "application/json"),
            ("image/png", "image/png"),
        ] {
            assert_eq!(latin.of(before), after);
        }
        let none = NamedCharset(Charset::None);
        assert_eq!(none.of("text/html; charset=utf-8; a=b"), "text/html; a=b");
        assert_eq!(none.of("image/png"), "image/png");
    }
}
