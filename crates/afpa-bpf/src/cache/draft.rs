//! A variant in the form that the kernel has.

use afpa_abi::{ANSWER_MAX, Answer, DATE_LENGTH, PAGE, Slot, UNIT_MIN};

use super::variant::{
    AGE_DIGITS, BEFORE_AGE, Freshness, PinError, Response, TTL_DIGITS, Ttl, Variant,
};
use crate::conn::SiteNumber;
use crate::net::sum::sum;

/// A slot without its version and pages, and the contents of the pages.
pub(super) struct Draft {
    pub(super) slot: Slot,
    /// The whole answer with its Date zeroed, if it is longer than the slot; else empty.
    pub(super) long: Vec<u8>,
}

impl Draft {
    /// Answers of more than `longest` bytes are refused.
    pub(super) fn new(
        site: SiteNumber,
        path: &[u8],
        variant: &Variant<'_>,
        longest: usize,
    ) -> Result<Self, PinError> {
        let mut draft = Self { slot: Slot { site, ..Slot::ZERO }, long: Vec::new() };
        let slot = &mut draft.slot;
        slot.path_length = path.len() as u16;
        slot.etag_length = variant.etag.len() as u16;
        copy(&mut slot.path, path, "path")?;
        copy(&mut slot.etag, variant.etag, "entity tag")?;
        let last_modified = variant.last_modified.map_or(&[][..], |date| date);
        copy(&mut slot.last_modified, last_modified, "last modified")?;
        let written = match &variant.freshness {
            None => Written::Date,
            Some(freshness) => slot_age(slot, freshness)?,
        };
        if let Some(not_modified) = &variant.not_modified {
            let room = &mut slot.not_modified_bytes;
            slot.not_modified = store(room, not_modified, written, "304 head")?;
        }
        if let Some(whole) = &variant.whole {
            draft.keep(whole, written, longest)?;
        }
        Ok(draft)
    }

    /// Pages that it needs.
    pub(super) fn pages(&self) -> usize {
        self.long.len().div_ceil(PAGE)
    }

    fn keep(
        &mut self,
        whole: &Response<'_>,
        written: Written,
        longest: usize,
    ) -> Result<(), PinError> {
        let slot = &mut self.slot;
        let length = whole.head.len() + whole.body.len();
        if length <= ANSWER_MAX {
            slot.whole = store(&mut slot.bytes[..ANSWER_MAX], whole, written, "response")?;
            return Ok(());
        }
        if length > longest {
            return Err(PinError::TooLong("response"));
        }
        // The fields that the programs write must lie within the first segment, and no segment but the last is
        // smaller than UNIT_MIN.
        if whole.date_offset + DATE_LENGTH > UNIT_MIN {
            return Err(PinError::TooLong("head"));
        }
        // The head alone answers HEAD. It stands in the slot, as answers of one segment do.
        let head = Response { body: &[], ..*whole };
        let head = store(&mut slot.bytes[..ANSWER_MAX], &head, written, "head")?;
        self.long = [&slot.bytes[..whole.head.len()], whole.body].concat();
        slot.whole = Answer { length: length as u32, sum: 0, ..head };
        Ok(())
    }
}

fn copy(to: &mut [u8], from: &[u8], what: &'static str) -> Result<(), PinError> {
    to.get_mut(..from.len()).ok_or(PinError::TooLong(what))?.copy_from_slice(from);
    Ok(())
}

/// The fields that the programs write into a head.
#[derive(Clone, Copy)]
enum Written {
    Date,
    Age {
        digits: usize,
    },
    /// The `ttl` of Cache-Status, and the Age in the next line.
    TtlAndAge {
        ttl: usize,
        digits: usize,
    },
}

impl Written {
    /// Zeroes its place, which begins at `offset`.
    fn clear(self, head: &mut [u8], offset: usize) -> Result<(), PinError> {
        let (misplaced, length) = match self {
            Self::Date => (PinError::TooLong("date"), DATE_LENGTH),
            Self::Age { digits } => (PinError::TooLong("age"), digits),
            Self::TtlAndAge { ttl, digits } => {
                (PinError::Misplaced("age"), ttl + BEFORE_AGE.len() + digits)
            }
        };
        let Some(place) = head.get_mut(offset..).and_then(|rest| rest.get_mut(..length)) else {
            return Err(misplaced);
        };
        if let Self::TtlAndAge { ttl, .. } = self
            && !place.get(ttl..).is_some_and(|rest| rest.starts_with(BEFORE_AGE))
        {
            return Err(misplaced);
        }
        place.fill(0);
        Ok(())
    }
}

/// Stores an answer's age in its slot, and returns the fields that the programs write of it.
fn slot_age(slot: &mut Slot, freshness: &Freshness) -> Result<Written, PinError> {
    let number = |digits: u32, most: usize| {
        let digits = u16::try_from(digits).ok();
        digits.filter(|digits| (1..=most).contains(&usize::from(*digits)))
    };
    let age = number(freshness.digits, AGE_DIGITS).ok_or(PinError::TooLong("age"))?;
    slot.age_digits = age;
    slot.born = freshness.born;
    slot.fresh_for = freshness.fresh_for;
    slot.asked = freshness.asked;
    let digits = usize::from(age);
    let Some(Ttl { lifetime, digits: of_ttl }) = freshness.ttl else {
        return Ok(Written::Age { digits });
    };
    let of_ttl = number(of_ttl, TTL_DIGITS).ok_or(PinError::TooLong("ttl"))?;
    slot.ttl_digits = of_ttl;
    slot.lifetime = lifetime;
    Ok(Written::TtlAndAge { ttl: usize::from(of_ttl), digits })
}

/// Copies head and body into `room`, and adds them up. The place of the fields that the programs write is zeroed.
fn store(
    room: &mut [u8],
    response: &Response<'_>,
    written: Written,
    what: &'static str,
) -> Result<Answer, PinError> {
    let head = response.head.len();
    let length = head + response.body.len();
    let bytes = room.get_mut(..length).ok_or(PinError::TooLong(what))?;
    bytes[..head].copy_from_slice(response.head);
    bytes[head..].copy_from_slice(response.body);
    written.clear(&mut bytes[..head], response.date_offset)?;
    Ok(Answer {
        length: length as u32,
        head_length: head as u16,
        date_offset: response.date_offset as u16,
        sum: sum(bytes),
        head_sum: sum(&bytes[..head]),
    })
}
