//! `request_id`: which requests have ids, and where the ids stand.

use crate::choice::choice;
use crate::reader::Section;
use crate::rules;

choice! {
    /// The parties that learn the id of a request.
    IdMode {
        /// Nobody: there are none.
        Off = "off",
        /// Servers and the access log.
        Servers = "servers",
        /// The client, too, from the answer.
        On = "on",
    }
}

/// The marks of the requests of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteMarks {
    /// Whether requests have ids.
    pub request_id: IdMode,
    /// The field that carries an id.
    pub request_id_field: String,
}

/// Those of a path or content group; `None`: as outside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnMarks {
    /// Whether requests have ids.
    pub request_id: Option<IdMode>,
}

impl SiteMarks {
    pub(crate) fn read(s: &mut Section<'_, '_>) -> Self {
        let field = "X-Request-Id".to_owned();
        Self {
            request_id: s.choice("request_id", IdMode::Off),
            request_id_field: s.text("request_id_field", "field name", field, rules::id_field),
        }
    }

    /// Whether no request of the site itself has any.
    pub fn is_off(&self) -> bool {
        self.request_id == IdMode::Off
    }
}

impl OwnMarks {
    pub(crate) fn read(s: &mut Section<'_, '_>) -> Self {
        Self { request_id: s.choice_or("request_id", "site") }
    }
}
