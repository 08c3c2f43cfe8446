//! The heads of a response: interim ones, that of a new protocol, and the final one.

use afpa_framework::{ClientStream, Persistence};
use afpa_http::{Connection, Version};

use super::{Broken, Download, Phase, Terms};
use crate::coding::Places;
use crate::end::Content;
use crate::exchange::job::lies_in;
use crate::exchange::tap::{Passing, Tap};
use crate::response::{self, Added, BadResponse, Delivery, Slots};
use crate::switch;

/// Interim responses of one exchange.
const MOST_INTERIMS: u32 = 32;

impl Download {
    /// Returns whether a whole head had arrived.
    pub(super) fn digest_head(
        &mut self,
        terms: &Terms<'_>,
        client: &(impl ClientStream + ?Sized),
        places: &Places,
        mut tap: Option<&mut (dyn Tap + '_)>,
    ) -> Result<bool, Broken> {
        let input = self.buffer.as_deref().and_then(|buffer| buffer.get(self.raw.clone()));
        let mut slots = Slots::default();
        let limit = terms.head_limit;
        let parsed = response::parse(input.unwrap_or_default(), &mut slots, limit, terms.asked);
        let Some(mut response) = parsed.map_err(Broken::Bad)? else { return Ok(false) };
        self.raw.start += response.head_len;

        if response.is_interim() {
            self.interims += 1;
            if self.interims > MOST_INTERIMS {
                return Err(Broken::Bad(BadResponse::TooLong));
            }
            // HTTP/1.0 has none (RFC 9110 section 15.2).
            let passes = tap.as_deref().is_none_or(Tap::passes_interim);
            if terms.version != Version::Http10 && passes {
                put_interim(&mut self.out, terms, &response);
            }
            return Ok(!self.raw.is_empty());
        }
        self.summary.status = response.status;
        if response.status == 101 {
            let has_streams = terms.version.has_streams();
            if !switch::is_as_asked(terms.request, &response, has_streams) {
                return Err(Broken::Bad(BadResponse::Upgrade));
            }
            let Terms { set_cookie, hsts, lines, .. } = *terms;
            let begin = self.out.len();
            response.write_switch(&mut self.out, Added { set_cookie, hsts, lines });
            if let Some(edits) = terms.edits {
                edits.apply(&mut self.out, begin, response.status, None);
            }
            self.phase = Phase::Tunnel;
            return Ok(true);
        }
        let now = client.cached_now();
        let keeps = || tap.as_deref().is_some_and(|tap| tap.would_keep(&response, now));
        let (head, recoded) = terms
            .compress
            .and_then(|compress| compress.recode(&response, terms.asked, (places, &keeps)))
            .unzip();
        let mut slots = Slots::default();
        let new = head
            .as_ref()
            .zip(recoded)
            .and_then(|(head, recoded)| recoded.read(head, &mut slots, (&response, terms.asked)));
        // Without the line of Vary it answers only this request.
        response.is_makeshift = head.is_some() && new.is_none();
        let (content, keeps, exact) =
            (Content::new(&response.ending), response.keeps, response.ending.is_exact());
        // A cache knows what its own question was about.
        let for_tap = new.as_ref().map_or(&response, |(new, _)| new);
        let for_tap = if response.status == 304 { &response } else { for_tap };
        let passing = tap.as_deref_mut().map_or(Passing::On, |tap| tap.head(for_tap, now));
        let response = match new {
            Some((new, recoded)) => {
                (self.encoder, self.summary.coded) = (recoded.encoder, recoded.coded);
                new
            }
            None => response,
        };
        let delivery = match passing {
            Passing::HeadAlone => Delivery::None,
            Passing::On | Passing::Withheld => response.delivery(terms.version),
        };
        let keep = terms.keep && delivery != Delivery::Close;
        self.closes = !keep;
        let connection = match (keep, terms.version) {
            (false, _) => Connection::Close,
            (true, Version::Http11 | Version::Http2 | Version::Http3) => Connection::Implied,
            (true, Version::Http10) => Connection::KeepAlive,
        };
        self.withheld = passing == Passing::Withheld;
        if !self.withheld && lies_in(terms.replaces, response.status) {
            self.withheld = true;
            self.replaced = Some(status_fields(&response));
        }
        if self.withheld {
            // Neither the client nor a cache gets its content compressed.
            (self.encoder, self.summary.coded) = (None, None);
        } else {
            let Terms { set_cookie, hsts, lines, .. } = *terms;
            let added = Added { set_cookie, hsts, lines };
            let begin = self.out.len();
            response.write(&mut self.out, delivery, connection, now.unix(), added);
            if let Some(tap) = tap.as_deref() {
                // Before the empty line.
                self.out.truncate(self.out.len().saturating_sub(2));
                tap.put_fields(&mut self.out);
                self.out.extend_from_slice(b"\r\n");
            }
            if let Some(edits) = terms.edits {
                edits.apply(&mut self.out, begin, response.status, None);
            }
            self.withheld = passing == Passing::HeadAlone;
        }
        (self.summary.keeps, self.summary.exact) = (keeps, exact);
        self.summary.ends_with_connection = delivery == Delivery::Close;
        self.summary.persistence = if keep { Persistence::Keep } else { Persistence::Close };
        // Trailer fields that were not announced may be about the bytes as the server has sent them.
        if delivery == Delivery::Chunked && self.encoder.is_none() {
            self.may_trail = response.may_trail(terms.asked);
            if let Some(edits) = terms.edits.filter(|edits| edits.rules.id.is_some()) {
                self.may_trail.leave_id_out(edits.rules);
            }
        }
        self.phase = match content.is_done() {
            true => {
                if let Some(tap) = tap {
                    tap.whole(now);
                }
                Phase::Last
            }
            false => Phase::Content(content, delivery),
        };
        Ok(true)
    }
}

/// Fields that tell a client what to do about a status, as lines: its owner writes them in its own answer.
fn status_fields(response: &response::Response<'_, '_>) -> Box<[u8]> {
    const NAMES: [&str; 6] = [
        "allow",
        "cache-control",
        "content-range",
        "retry-after",
        "set-cookie",
        "www-authenticate",
    ];
    let is_one = |name: &[u8]| NAMES.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes()));
    let mut lines = Vec::new();
    for (name, value) in response.end_to_end().filter(|(name, _)| is_one(name)) {
        for part in [name, b": ", value, b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines.into_boxed_slice()
}

/// Writes an interim response without an id of the server's own.
fn put_interim(out: &mut Vec<u8>, terms: &Terms<'_>, response: &response::Response<'_, '_>) {
    let begin = out.len();
    response.write_interim(out);
    if let Some(edits) = terms.edits {
        edits.remove_id(out, begin);
    }
}
