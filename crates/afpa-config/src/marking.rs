//! `request_id` and `traceparent`: which requests have ids and belong to traces, and who learns of them.

use crate::choice::choice;
use crate::reader::Section;
use crate::rules;

choice! {
    /// The parties that learn the id of a request.
    IdMode {
        /// No requests get ids.
        Off = "off",
        /// Servers and the access log.
        Servers = "servers",
        /// The client, too, from the answer.
        On = "on",
    }
}

choice! {
    /// Whose traces go on.
    TraceMode {
        /// No traces: AFPA takes no part.
        Off = "off",
        /// Traces of routers in front that the site believes.
        Trusted = "trusted",
        /// Traces of any client.
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
    /// Whether requests belong to traces.
    pub traceparent: TraceMode,
    /// Per cent of new traces that are to be recorded.
    pub trace_share: u8,
}

/// The settings of a path or content group; `None`: as outside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnMarks {
    /// Whether requests have ids.
    pub request_id: Option<IdMode>,
    /// Whether requests belong to traces.
    pub traceparent: Option<TraceMode>,
}

impl SiteMarks {
    pub(crate) fn read(s: &mut Section<'_, '_>) -> Self {
        let field = "X-Request-Id".to_owned();
        Self {
            request_id: s.choice("request_id", IdMode::Off),
            request_id_field: s.text("request_id_field", "field name", field, rules::id_field),
            traceparent: s.choice("traceparent", TraceMode::Off),
            trace_share: u8::try_from(s.count("trace_share", 100, 0..=100)).unwrap_or(100),
        }
    }

    /// Whether no request of the site itself has any.
    pub fn is_off(&self) -> bool {
        self.request_id == IdMode::Off && self.traceparent == TraceMode::Off
    }
}

impl OwnMarks {
    pub(crate) fn read(s: &mut Section<'_, '_>) -> Self {
        Self {
            request_id: s.choice_or("request_id", "site"),
            traceparent: s.choice_or("traceparent", "site"),
        }
    }
}
