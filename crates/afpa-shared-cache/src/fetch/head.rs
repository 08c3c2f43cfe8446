//! Compares the answer to a HEAD request with the stored response to GET (RFC 9111 section 4.3.5).

use afpa_framework::Now;
use afpa_http::caching::{HeadSays, Version, head_says};
use afpa_proxy::exchange::{Passing, Tap};
use afpa_proxy::response::Response;

use crate::fetch::question::Question;
use crate::store::stored;

/// The tap of a HEAD request for which there is a stored response that could not answer it.
#[derive(Debug)]
pub(crate) struct Comparing<'a>(pub(crate) &'a Question<'a>);

impl Comparing<'_> {
    fn compare(&self, response: &Response<'_, '_>, now: Now) {
        let question = self.0;
        let Some((object, stored)) = question.stored_response() else { return };
        match head_says(&stored.version(), &version(response)) {
            HeadSays::Nothing => {}
            HeadSays::Other => {
                question.cache.responses.cache().recall(object.key(), |_| stored.recall())
            }
            HeadSays::Same => self.freshen(stored, response, now),
        }
    }

    fn freshen(&self, stored: &stored::Response, response: &Response<'_, '_>, now: Now) {
        let question = self.0;
        let about = question.circumstances(now);
        let Ok((draft, facts)) = stored.draft.freshened(response.end_to_end(), about) else {
            return;
        };
        match question.judge_draft(&draft, &facts) {
            Ok(()) => drop(question.freshen(draft, now)),
            Err(why) => question.drop_stored(why),
        }
    }
}

fn version<'r>(response: &'r Response<'_, '_>) -> Version<'r> {
    let field = |known: &str| {
        let mut lines = response.end_to_end();
        let line = lines.find(|(name, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        line.map(|(_, value)| value)
    };
    let (etag, last_modified) = (field("etag"), field("last-modified"));
    Version { etag, last_modified, length: response.announced() }
}

impl Tap for Comparing<'_> {
    fn head(&mut self, response: &Response<'_, '_>, now: Now) -> Passing {
        if response.status == 200 && !response.is_makeshift {
            self.compare(response, now);
        }
        Passing::On
    }

    fn put_fields(&self, _: &mut Vec<u8>) {}

    fn content(&mut self, _: &[u8]) {}

    fn whole(&mut self, _: Now) {}
}
