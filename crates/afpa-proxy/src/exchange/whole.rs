//! The content of a request for FastCGI, before a server is chosen.
//!
//! A program of CGI knows the length of the content before it reads any (RFC 3875 section 4.1.2), so chunked content
//! has to have arrived as a whole. So has short content with a length: a process of PHP serves one client at a time, and
//! must not be kept by one that sends slowly.

use std::future::poll_fn;
use std::task::Poll;

use afpa_framework::{ClientStream, extended};
use afpa_http::BodyLength;

use super::upload::{Stopped, Upload};
use super::{Exchange, Failure, Stop, millis};
use crate::pool::Share;

/// Bytes of content with a length that are waited for.
const MOST_SHORT: usize = 64 * 1024;

/// Bytes of content without a length.
const MOST_CHUNKED: usize = 1024 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl<C: ClientStream + ?Sized> Exchange<'_, C> {
    /// Puts the content of a request behind its head, if the server is one of FastCGI.
    pub(super) async fn take_content(&mut self) -> Result<(), Stop> {
        let mut share = self.core.pool.share(self.job.sharer);
        let room = match self.job.body {
            _ if self.job.fastcgi.is_none() => return Ok(()),
            BodyLength::None => return Ok(()),
            BodyLength::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            BodyLength::Chunked => 0,
        };
        // Content with a length can be passed on as it comes, too.
        if room > MOST_SHORT || !share.reach(room) {
            return Ok(());
        }
        if self.job.head.expects_continue() && self.client.arrived().is_empty() {
            self.say_continue().await?;
        }
        let largest = self.job.settings.largest_content;
        let mut upload = Upload::of_whole(self.job.body, largest, room);
        let taken = self.wait_for(&mut upload, &mut share).await;
        if taken.is_ok() {
            self.job.head.put_content(upload.gathered());
            self.job.body = BodyLength::None;
            self.gathered = Some(share);
        }
        upload.end(&self.core.pool);
        taken
    }

    async fn say_continue(&mut self) -> Result<(), Stop> {
        let mut rest = CONTINUE;
        while !rest.is_empty() {
            match poll_fn(|cx| self.client.poll_send(cx, rest, false)).await {
                Ok(n) if n > 0 => rest = rest.get(n..).unwrap_or_default(),
                _ => return Err(Stop::ClientGone),
            }
        }
        Ok(())
    }

    async fn wait_for(&mut self, upload: &mut Upload, share: &mut Share) -> Result<(), Stop> {
        let (client, pool, total_ms) = (&mut *self.client, &self.core.pool, self.total_ms);
        let timeouts = client.timeouts();
        let timeout = millis(timeouts.body);
        let mut until = client.cached_now().steady_ms() + timeout;
        client.wait_until(Some(total_ms.map_or(until, |total| total.min(until))));
        poll_fn(|cx| {
            let before = upload.gathered().len();
            match upload.poll_whole(cx, client, pool, MOST_CHUNKED, share) {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(stopped)) => return Poll::Ready(Err(stopped.into())),
                Poll::Pending => {}
            }
            let moved = (upload.gathered().len() - before) as u64;
            if moved > 0 {
                let now = client.cached_now().steady_ms();
                until = extended(until, now, timeout, moved, timeouts.least_rate);
                client.wait_until(Some(total_ms.map_or(until, |total| total.min(until))));
            }
            match client.is_over(cx) {
                true => Poll::Ready(Err(Stop::Failed(Failure::ClientTimeout))),
                false => Poll::Pending,
            }
        })
        .await
    }
}

impl From<Stopped> for Stop {
    fn from(stopped: Stopped) -> Self {
        Stop::Failed(match stopped {
            Stopped::ClientGone => return Stop::ClientGone,
            Stopped::Malformed => Failure::BadRequestContent,
            Stopped::TooLarge => Failure::RequestTooLarge,
            Stopped::NoLength => Failure::LengthRequired,
            Stopped::NoRoom => Failure::ContentRoom,
        })
    }
}
