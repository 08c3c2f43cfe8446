//! The content of a response, as it passes: unchanged, compressed, or withheld.

use afpa_framework::ClientStream;

use super::{Broken, Download, GATHERED, Phase};
use crate::exchange::tap::Tap;
use crate::exchange::upload::put_chunk;
use crate::pool::Pool;
use crate::response::Delivery;
use crate::trailers::put_last_chunk;

/// Content that the client does not get is read up to this length.
const MOST_WITHHELD: u64 = 2 << 20;

impl Download {
    pub(super) fn digest_content(
        &mut self,
        mut tap: Option<&mut (dyn Tap + '_)>,
        client: &(impl ClientStream + ?Sized),
    ) -> Result<(), Broken> {
        let Phase::Content(content, delivery) = &mut self.phase else { return Ok(()) };
        let Some(buffer) = self.buffer.as_deref() else { return Ok(()) };
        let mut done = false;
        while !done && !self.raw.is_empty() {
            let input = buffer.get(self.raw.clone()).unwrap_or_default();
            let progress = content.feed(input).map_err(|_| Broken::Content)?;
            let data = input.get(progress.data.clone()).unwrap_or_default();
            let at = self.raw.start + progress.data.start;
            self.raw.start += progress.consumed;
            done = progress.done;
            self.read += data.len() as u64;
            let data = match &mut self.encoder {
                None => data,
                Some(encoder) => {
                    self.coded.clear();
                    encoder.write(data, &mut self.coded).map_err(|_| Broken::Content)?;
                    &self.coded
                }
            };
            self.summary.content += data.len() as u64;
            if let Some(tap) = tap.as_deref_mut() {
                tap.content(data);
            }
            if self.withheld && self.read > MOST_WITHHELD {
                // Nobody gets the rest: the connection is closed instead.
                (self.summary.keeps, self.summary.exact, self.raw) = (false, false, 0..0);
                self.phase = Phase::Last;
                return Ok(());
            }
            match delivery {
                _ if self.withheld => {}
                Delivery::Chunked => put_chunk(&mut self.out, data),
                // Only content that lies in one piece can be sent from the buffer.
                Delivery::Length(_)
                    if data.len() > GATHERED || (self.out.is_empty() && !client.gathers()) =>
                {
                    self.direct = at..at + data.len();
                }
                _ => self.out.extend_from_slice(data),
            }
        }
        if done {
            self.finish_content(tap, client)?;
        }
        Ok(())
    }

    /// Has the client get all content that has come, because the server pauses. Returns whether there is any.
    pub(super) fn flush_encoder(
        &mut self,
        pool: &Pool,
        tap: Option<&mut (dyn Tap + '_)>,
    ) -> Result<bool, Broken> {
        let Some(encoder) = self.encoder.as_mut().filter(|encoder| encoder.holds()) else {
            return Ok(false);
        };
        self.coded.clear();
        encoder.flush(&mut self.coded).map_err(|_| Broken::Content)?;
        if self.out.capacity() == 0 {
            self.out = pool.text();
        }
        self.put_coded(tap);
        Ok(true)
    }

    /// Gathers compressed content.
    fn put_coded(&mut self, tap: Option<&mut (dyn Tap + '_)>) {
        self.summary.content += self.coded.len() as u64;
        if let Some(tap) = tap {
            tap.content(&self.coded);
        }
        match &self.phase {
            _ if self.withheld => {}
            Phase::Content(_, Delivery::Chunked) => put_chunk(&mut self.out, &self.coded),
            _ => self.out.extend_from_slice(&self.coded),
        }
    }

    fn finish_content(
        &mut self,
        mut tap: Option<&mut (dyn Tap + '_)>,
        client: &(impl ClientStream + ?Sized),
    ) -> Result<(), Broken> {
        if let Some(encoder) = self.encoder.take() {
            self.coded.clear();
            encoder.finish(&mut self.coded).map_err(|_| Broken::Content)?;
            self.put_coded(tap.as_deref_mut());
            self.coded = Vec::new();
        }
        if let Some(tap) = tap {
            tap.whole(client.cached_now());
        }
        if let Phase::Content(content, Delivery::Chunked) = &self.phase
            && !self.withheld
        {
            put_last_chunk(&mut self.out, content.trailers(), &self.may_trail);
        }
        self.phase = Phase::Last;
        Ok(())
    }

    pub(super) fn end_of_stream(
        &mut self,
        tap: Option<&mut (dyn Tap + '_)>,
        client: &(impl ClientStream + ?Sized),
    ) -> Result<(), Broken> {
        match &mut self.phase {
            Phase::Head => {
                return Err(Broken::Reset { silent: self.summary.first_byte_us == 0 });
            }
            Phase::Content(content, _) => content.end_of_stream().map_err(|_| Broken::Content)?,
            Phase::Last | Phase::Tunnel => {}
        }
        self.finish_content(tap, client)
    }
}
