//! Moves request and response at the same time, and applies the time-out of each wait.

use std::future::poll_fn;
use std::task::{Context, Poll};

use afpa_framework::{BreakOff, ClientStream, extended, give_way};
use afpa_http::edits::KeptEdits;

use super::download::{Broken, Complete, Download, Summary, Terms};
use super::failure::{Failure, Fault, RetryPolicy};
use super::upload::{Stopped, Upload};
use super::wait::has_left;
use super::{Exchange, Job, millis, tunnel};
use crate::pool::ServerStream;
use crate::response::BadResponse;
use crate::select::{AttemptOutcome, Lease};

/// One attempt with one server.
pub(super) struct Relay<'x, 'a, C: ?Sized> {
    exchange: &'x mut Exchange<'a, C>,
    stream: &'x mut ServerStream,
    lease: &'x Lease,
    upload: Upload,
    download: Download,
    /// The cause of the wait whose time-out is set, if one is.
    armed: Option<WaitCause>,
    /// The end of that time-out, in steady milliseconds.
    until_ms: u64,
    /// Bytes that the client had moved when the time-out was set.
    moved: u64,
}

/// How an attempt ended.
pub(super) enum Relayed {
    /// The response was sent to the client.
    Whole {
        /// The connection to the server can carry another request.
        reusable: bool,
    },
    /// The protocol was changed, and that connection has ended.
    Tunnelled,
    /// The client went away.
    ClientGone,
    /// The response broke off; the outcome that the server is blamed for, if any.
    Broken(Option<AttemptOutcome>),
    /// It failed before the client had a byte of a final response.
    Failed(Fault),
}

/// The cause of an attempt's wait; it decides which time-out applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitCause {
    ClientReads,
    ClientSends,
    ServerReads,
    FirstByte,
    ServerSends,
}

impl<'x, 'a, C: ClientStream + ?Sized> Relay<'x, 'a, C> {
    pub(super) fn new(
        exchange: &'x mut Exchange<'a, C>,
        lease: &'x Lease,
        stream: &'x mut ServerStream,
    ) -> Self {
        let (job, pool) = (&exchange.job, &exchange.core.pool);
        let upload = match &exchange.held {
            Some(content) => Upload::again(content, &job.head, pool),
            None => Upload::new(job.body, job.settings.largest_content, &job.head, pool),
        };
        Self {
            upload,
            download: Download::new(),
            exchange,
            stream,
            lease,
            armed: None,
            until_ms: 0,
            moved: 0,
        }
    }

    pub(super) async fn run(&mut self) -> Relayed {
        if let Err(stopped) = self.upload.gather(self.exchange.client) {
            return self.stopped(stopped);
        }
        // On a connection of HTTP/2 another task sends, and has gathered by then what others ask; with FastCGI others went first
        // before the connection was made.
        let is_plain = matches!(self.stream, ServerStream::Plain(_) | ServerStream::Tls(_));
        if is_plain && self.exchange.core.pool.has_company() {
            give_way().await;
        }
        let relayed = poll_fn(|cx| self.poll(cx)).await;
        match relayed {
            Relayed::Tunnelled => self.tunnel().await,
            relayed => relayed,
        }
    }

    /// Gives its memory back. Returns the facts known of the response.
    pub(super) fn end(mut self) -> Summary {
        let pool = &self.exchange.core.pool;
        self.upload.end(pool);
        self.download.end(pool);
        self.exchange.replaced = self.download.replaced.take();
        self.download.summary
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Relayed> {
        let Self { exchange, stream, upload, download, lease, .. } = self;
        let core = exchange.core;
        let Job {
            head,
            asked,
            version,
            keep_alive,
            settings,
            over_tls,
            hsts,
            lines,
            edits,
            replaces,
            compress,
            ..
        } = &mut *exchange.job;
        let client = &mut *exchange.client;
        let tap = exchange.tap.as_deref_mut();

        let uploaded = match upload.step(cx, head.bytes(), client, stream, &core.pool) {
            Ok(moved) => moved,
            Err(stopped) => return Poll::Ready(self.stopped(stopped)),
        };
        let terms = Terms {
            asked: *asked,
            request: head.bytes(),
            version: *version,
            // If the request was not sent as a whole, the rest of its content would be read as a request.
            keep: *keep_alive && upload.is_done() && !core.draining.get(),
            gives_way: upload.is_done() && core.pool.has_company(),
            head_limit: settings.head_limit.min(super::Settings::MOST_HEAD),
            set_cookie: lease.set_cookie(*over_tls),
            hsts: hsts.as_deref(),
            lines: lines.as_deref().unwrap_or_default(),
            edits: edits.as_ref().map(KeptEdits::as_edits),
            replaces: replaces.as_deref(),
            compress: compress.as_ref(),
        };
        let downloaded = match download.step(cx, &terms, client, stream, (&core.pool, tap)) {
            Ok((_, Some(Complete::Tunnel))) => return Poll::Ready(Relayed::Tunnelled),
            Ok((_, Some(Complete::Response { surplus }))) => {
                let reusable = !surplus && upload.is_done();
                return Poll::Ready(Relayed::Whole { reusable });
            }
            Ok((moved, None)) => moved,
            Err(broken) => return Poll::Ready(self.broken(broken)),
        };
        if upload.expects_nothing() && has_left(client, settings.half_closed, cx) {
            return Poll::Ready(Relayed::ClientGone);
        }
        self.poll_time(cx, uploaded || downloaded)
    }

    /// Sets the time-out of the present wait. Ready when that has expired.
    fn poll_time(&mut self, cx: &mut Context<'_>, moved: bool) -> Poll<Relayed> {
        let waiting = self.waiting();
        if moved || self.armed != Some(waiting) {
            let goes_on = self.armed.replace(waiting) == Some(waiting);
            let by_client = self.moved_by_client(waiting);
            let client = &mut *self.exchange.client;
            let settings = &self.exchange.job.settings;
            let timeout = match waiting {
                WaitCause::ClientReads => client.timeouts().write,
                WaitCause::ClientSends => client.timeouts().body,
                WaitCause::ServerReads | WaitCause::ServerSends => settings.idle,
                WaitCause::FirstByte => settings.first_byte,
            };
            let (now, timeout) = (client.cached_now().steady_ms(), millis(timeout));
            self.until_ms = match by_client {
                Some(all) if goes_on => {
                    let moved = all.saturating_sub(self.moved);
                    extended(self.until_ms, now, timeout, moved, client.timeouts().least_rate)
                }
                _ => now + timeout,
            };
            self.moved = by_client.unwrap_or_default();
            let (deadline, total) = (self.until_ms, self.exchange.total_ms);
            client.wait_until(Some(total.map_or(deadline, |total| total.min(deadline))));
        }
        match self.exchange.client.is_over(cx) {
            true => Poll::Ready(self.over(waiting)),
            false => Poll::Pending,
        }
    }

    /// Bytes that the client has moved in the direction that is waited for; `None`: it need not keep to a rate. A
    /// client that sends is exempt once a response has begun, and where its content has no announced length: client and
    /// server may be in a conversation.
    fn moved_by_client(&self, waiting: WaitCause) -> Option<u64> {
        match waiting {
            WaitCause::ClientReads => Some(self.download.taken()),
            WaitCause::ClientSends if self.download.summary.status == 0 => self.upload.announced(),
            _ => None,
        }
    }

    fn waiting(&self) -> WaitCause {
        if self.download.waits_for_client() {
            return WaitCause::ClientReads;
        }
        match (self.upload.is_going(), self.upload.waits_for_server()) {
            (true, true) => WaitCause::ServerReads,
            (true, false) => WaitCause::ClientSends,
            (false, _) if self.download.summary.status == 0 => WaitCause::FirstByte,
            (false, _) => WaitCause::ServerSends,
        }
    }

    /// A time-out has expired.
    fn over(&mut self, waiting: WaitCause) -> Relayed {
        let total = self.exchange.total_ms;
        if total.is_some_and(|total| total <= self.exchange.client.now().steady_ms()) {
            let outcome = match waiting {
                WaitCause::FirstByte => Some(AttemptOutcome::FirstByteTimeout),
                WaitCause::ServerReads | WaitCause::ServerSends => {
                    Some(AttemptOutcome::IdleTimeout)
                }
                WaitCause::ClientReads | WaitCause::ClientSends => None,
            };
            let fault = Fault::nobodys(Failure::TotalTimeout);
            return self.failed(Fault { outcome, ..fault });
        }
        match waiting {
            WaitCause::ClientReads => {
                // The server did not fail: a stream of HTTP/2 says so.
                self.exchange.client.breaks_off(BreakOff::Cancelled);
                Relayed::ClientGone
            }
            WaitCause::ClientSends => self.failed(Fault::nobodys(Failure::ClientTimeout)),
            WaitCause::FirstByte => self
                .failed(Fault::of_server(Failure::ServerTimeout, AttemptOutcome::FirstByteTimeout)),
            WaitCause::ServerReads | WaitCause::ServerSends => {
                self.failed(Fault::of_server(Failure::ServerTimeout, AttemptOutcome::IdleTimeout))
            }
        }
    }

    fn stopped(&mut self, stopped: Stopped) -> Relayed {
        match stopped {
            Stopped::ClientGone => Relayed::ClientGone,
            Stopped::Malformed => self.failed(Fault::nobodys(Failure::BadRequestContent)),
            Stopped::TooLarge => self.failed(Fault::nobodys(Failure::RequestTooLarge)),
            Stopped::NoLength => self.failed(Fault::nobodys(Failure::LengthRequired)),
            Stopped::NoRoom => self.failed(Fault::nobodys(Failure::ContentRoom)),
        }
    }

    fn broken(&mut self, broken: Broken) -> Relayed {
        match broken {
            Broken::ClientGone => Relayed::ClientGone,
            Broken::Reset { silent } => {
                let fault = Fault::of_server(Failure::Reset, AttemptOutcome::Reset);
                self.failed(Fault { stale: silent, ..fault })
            }
            Broken::Overloaded => {
                self.failed(Fault::unsent(Failure::Overloaded, AttemptOutcome::Overloaded))
            }
            Broken::Unprocessed => {
                self.failed(Fault::unprocessed(Failure::Reset, AttemptOutcome::Reset))
            }
            // Whether the server has a tunnel at this path is up to the client.
            Broken::Bad(why @ BadResponse::NoTunnel) => {
                self.failed(Fault::nobodys(Failure::BadResponse(why)))
            }
            Broken::Bad(why) => self
                .failed(Fault::of_server(Failure::BadResponse(why), AttemptOutcome::BadResponse)),
            Broken::Content => {
                self.failed(Fault::of_server(Failure::BadContent, AttemptOutcome::Truncated))
            }
        }
    }

    /// The effect of a fault on the client: no response yet, or one that breaks off.
    fn failed(&mut self, mut fault: Fault) -> Relayed {
        if self.download.summary.begun {
            return Relayed::Broken(fault.outcome);
        }
        if fault.stale && !self.upload.has_sent() {
            // The server had closed before the first byte: it has accepted nothing.
            fault.retry = RetryPolicy::Always;
        }
        if self.upload.has_taken() {
            match self.upload.held() {
                Some(content) if self.exchange.held.is_none() => {
                    self.exchange.held = Some(content.into());
                }
                Some(_) => {}
                // Content that was taken from the client, and was passed on, cannot be sent again.
                None => {
                    fault.retry = RetryPolicy::Never;
                    fault.stale = false;
                }
            }
        }
        Relayed::Failed(fault)
    }

    async fn tunnel(&mut self) -> Relayed {
        let Self { exchange, stream, download, .. } = self;
        let settings = &exchange.job.settings;
        stream.become_tunnel();
        let moved = tunnel::run(
            exchange.client,
            stream,
            download.beyond(),
            millis(settings.tunnel_idle),
            &exchange.core.pool,
        );
        let moved = Box::pin(moved).await;
        download.summary.content = moved.to_client;
        if moved.broken {
            // Else the client would take it for the end of all that the server has to say.
            exchange.client.reset_at_end();
        }
        Relayed::Tunnelled
    }
}
