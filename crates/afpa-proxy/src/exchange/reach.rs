//! A connection to the server for an attempt, from its choice to its return.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::{ClientStream, give_way};

use super::failure::{Failure, Fault, connect_fault};
use super::wait::{Interrupted, while_client_stays};
use super::{Exchange, download, millis};
use crate::pool::http2::{Http2Connection, Idle, LONG_MS, MadeFor, Reached, reach};
use crate::pool::{FastCgiTerms, ServerStream, To, lack};
use crate::request::Upgrade;
use crate::select::{AttemptOutcome, Group, Lack, Lease};

impl<C: ClientStream + ?Sized> Exchange<'_, C> {
    /// A connection, and whether it was there before. `None`: the client went away meanwhile.
    pub(super) async fn reach(
        &mut self,
        lease: &Lease,
        reuse: bool,
    ) -> Result<Option<(ServerStream, bool)>, Fault> {
        if let Some(params) = &self.job.fastcgi {
            let terms = FastCgiTerms {
                params: Arc::clone(params),
                keeps: self.job.settings.idle_connections > 0,
                head_limit: self.job.settings.head_limit,
            };
            return self.reach_by_fastcgi(lease, terms, reuse).await;
        }
        if let Some(limits) = self.job.group.http2() {
            let made_for = MadeFor { tls: self.job.group.tls().cloned(), limits };
            let by_http2 = match self.job.head.upgrade() {
                Upgrade::None => return self.reach_by_http2(lease, &made_for, reuse).await,
                Upgrade::Http1 => None,
                Upgrade::Tunnel | Upgrade::WithoutKey => {
                    self.reach_for_tunnel(lease, &made_for, reuse).await?
                }
            };
            if let Some(reached) = by_http2 {
                return Ok(reached);
            }
        }
        if reuse && let Some(stream) = self.pooled(lease) {
            return Ok(Some((stream, true)));
        }
        let stream = self.connect(lease, None).await?;
        Ok(stream.map(|stream| (stream, false)))
    }

    /// A connection for a request of FastCGI. Others go first before it is made, not before the request is sent: a process that
    /// waits for a connection is woken by it, and would sleep again until the request comes.
    async fn reach_by_fastcgi(
        &mut self,
        lease: &Lease,
        terms: FastCgiTerms,
        reuse: bool,
    ) -> Result<Option<(ServerStream, bool)>, Fault> {
        if self.core.pool.has_company() {
            give_way().await;
        }
        let now = self.client.cached_now().steady_ms();
        if reuse
            && let Some(ServerStream::FastCgi(mut stream)) =
                self.core.pool.take(lease.id(), now, self.most_idle())
        {
            stream.begin(terms);
            return Ok(Some((ServerStream::FastCgi(stream), true)));
        }
        let stream = self.connect(lease, Some(terms)).await?;
        Ok(stream.map(|stream| (stream, false)))
    }

    /// A stream for an extended CONNECT. `None`: the server does not take it (RFC 8441 section 3). The request then has
    /// to ask for a change of protocols, which only HTTP/1.1 has (RFC 9113 section 8.6).
    async fn reach_for_tunnel(
        &mut self,
        lease: &Lease,
        made_for: &MadeFor,
        reuse: bool,
    ) -> Result<Option<Option<(ServerStream, bool)>>, Fault> {
        if self.core.pool.http2.takes_tunnels(lease.id(), made_for) == Some(false) {
            return Ok(None);
        }
        let reached = self.reach_by_http2(lease, made_for, reuse).await?;
        match &reached {
            Some((ServerStream::Http2(stream), _)) if !stream.takes_tunnels() => Ok(None),
            Some((ServerStream::Http2(_), _)) if self.job.head.upgrade() == Upgrade::WithoutKey => {
                Err(Fault::nobodys(Failure::WebSocketKey))
            }
            _ => Ok(Some(reached)),
        }
    }

    /// A stream on a connection of HTTP/2 that is there, or that is being made. If the server chooses HTTP/1.1, it is a
    /// connection of that.
    async fn reach_by_http2(
        &mut self,
        lease: &Lease,
        made_for: &MadeFor,
        reuse: bool,
    ) -> Result<Option<(ServerStream, bool)>, Fault> {
        let (core, group) = (Rc::clone(self.core), Arc::clone(&self.job.group));
        let servers = &core.pool.http2;
        let until = self.connect_deadline();
        let mut may_relieve = true;
        loop {
            let now = self.client.cached_now().steady_ms();
            let silence = (now, self.most_idle().min(LONG_MS));
            if let Some(stream) = servers.take(lease.id(), made_for, silence) {
                return Ok(Some((ServerStream::Http2(Box::new(stream)), true)));
            }
            if let Some(connection) = servers.silent(lease.id(), made_for, silence) {
                match self.answers(&connection, now, until).await {
                    Ok(()) => continue,
                    Err(Interrupted::ClientGone) => return Ok(None),
                    Err(Interrupted::Over) => return Err(too_late()),
                }
            }
            if reuse && let Some(stream) = self.pooled(lease) {
                return Ok(Some((stream, true)));
            }
            let most = made_for.limits.streams as usize;
            let Some(connecting) = servers.may_connect((lease.id(), lease.wanted()), most) else {
                match while_client_stays(self.patient_client(), until, servers.changed(lease.id()))
                    .await
                {
                    Ok(None) => continue,
                    Ok(Some(error)) => return Err(self.not_connected(lease, &error)),
                    Err(Interrupted::ClientGone) => return Ok(None),
                    Err(Interrupted::Over) => return Err(too_late()),
                }
            };
            let reaching = reach(core.pool.connector(), Self::to(lease, &group), made_for.clone());
            let reached =
                while_client_stays(self.patient_client(), until, Box::pin(reaching)).await;
            self.connected_us = self.client.now().unix_us;
            match reached {
                Ok(Ok(Reached::Http2(connection))) => {
                    let settings = &self.job.settings;
                    let ms = millis(settings.idle_connection_timeout);
                    let idle = Idle { ms, most: settings.idle_connections };
                    let Some(stream) = connecting.made(&connection, idle) else {
                        // It lets us open no stream at all.
                        connection.close();
                        return Err(connect_fault(&io::ErrorKind::ConnectionRefused.into()));
                    };
                    return Ok(Some((ServerStream::Http2(Box::new(stream)), false)));
                }
                Ok(Ok(Reached::Http1(carrier))) => {
                    connecting.chose_http1();
                    return Ok(Some((carrier.into(), false)));
                }
                // Requests that wait for this connection look for one anew, too.
                Ok(Err(error))
                    if may_relieve
                        && lack(&error) == Some(Lack::Descriptors)
                        && core.pool.relieve() =>
                {
                    may_relieve = false;
                }
                Ok(Err(error)) => {
                    return Err(self.not_connected(lease, &connecting.failed(error)));
                }
                Err(Interrupted::ClientGone) => return Ok(None),
                Err(Interrupted::Over) => {
                    connecting.failed(io::ErrorKind::TimedOut.into());
                    return Err(too_late());
                }
            }
        }
    }

    /// Asks a server that was silent for long whether it is still there. If it does not say so soon, the connection gets no
    /// more requests.
    async fn answers(
        &mut self,
        connection: &Http2Connection,
        now_ms: u64,
        until: u64,
    ) -> Result<(), Interrupted> {
        let left = until.saturating_sub(now_ms);
        if left == 0 {
            return Err(Interrupted::Over);
        }
        // Most of the time is for another connection.
        let patience = now_ms + left / 4;
        match while_client_stays(self.patient_client(), patience, Box::pin(connection.answers()))
            .await
        {
            Err(Interrupted::Over) => connection.close(),
            Err(gone) => return Err(gone),
            Ok(_) => {}
        }
        Ok(())
    }

    /// An idle connection. A request that must not be sent twice takes only one that was in use a moment
    /// ago, because the server may be closing the others (Z6 of docs/rules). None is there for a connection that names
    /// its client.
    fn pooled(&self, lease: &Lease) -> Option<ServerStream> {
        let now = self.client.cached_now().steady_ms();
        if self.job.preface.is_some() {
            return None;
        }
        let taken = self.core.pool.take(lease.id(), now, self.most_idle())?;
        // A connection of another configuration may be unencrypted, or trust another authority.
        taken.is_of(self.job.group.tls()).then_some(taken)
    }

    /// How many milliseconds ago a connection has to have been in use.
    fn most_idle(&self) -> u64 {
        if self.job.idempotent { u64::MAX } else { 1_000 }
    }

    /// `None`: the client went away meanwhile.
    async fn connect(
        &mut self,
        lease: &Lease,
        fastcgi: Option<FastCgiTerms>,
    ) -> Result<Option<ServerStream>, Fault> {
        let until = self.connect_deadline();
        let mut connected = self.connect_once(lease, fastcgi.clone(), until).await;
        if let Ok(Err(error)) = &connected
            && lack(error) == Some(Lack::Descriptors)
            && self.core.pool.relieve()
        {
            connected = self.connect_once(lease, fastcgi, until).await;
        }
        match connected {
            Ok(Ok(stream)) => {
                self.connected_us = self.client.now().unix_us;
                Ok(Some(stream))
            }
            Ok(Err(error)) => Err(self.not_connected(lease, &error)),
            Err(Interrupted::ClientGone) => Ok(None),
            Err(Interrupted::Over) => Err(too_late()),
        }
    }

    async fn connect_once(
        &mut self,
        lease: &Lease,
        fastcgi: Option<FastCgiTerms>,
        until: u64,
    ) -> Result<io::Result<ServerStream>, Interrupted> {
        let (core, group) = (Rc::clone(self.core), Arc::clone(&self.job.group));
        let preface = self.job.preface.clone();
        let to = To { preface: preface.as_deref().unwrap_or_default(), ..Self::to(lease, &group) };
        let connector = core.pool.connector();
        if let Some(terms) = fastcgi {
            let connecting = ServerStream::connect_by_fastcgi(connector, to, terms);
            return while_client_stays(self.patient_client(), until, Box::pin(connecting)).await;
        }
        let connecting = ServerStream::connect(connector, to, group.tls());
        while_client_stays(self.patient_client(), until, Box::pin(connecting)).await
    }

    /// Where a connection to the server of a lease leads.
    fn to<'l>(lease: &'l Lease, group: &'l Group) -> To<'l> {
        let (address, name) = (lease.address(), lease.name());
        To { address, name, sources: group.sources(), preface: &[], tally: Some(lease.tally()) }
    }

    /// The fault of a connection that could not be made. If this machine lacks something for it, that is counted and
    /// logged.
    fn not_connected(&self, lease: &Lease, error: &io::Error) -> Fault {
        if let Some(lack) = lack(error)
            && lease.tally().lacked(lack, self.client.cached_now().steady_ms())
        {
            tracing::warn!(server = lease.name(), %error, "{}", lack.remedy());
        }
        connect_fault(error)
    }

    fn connect_deadline(&self) -> u64 {
        let deadline = self.client.cached_now().steady_ms() + millis(self.job.settings.connect);
        self.total_ms.map_or(deadline, |total| total.min(deadline))
    }

    /// Puts a connection whose response has ended on the list it belongs to.
    pub(super) fn put_away(
        &self,
        lease: &Lease,
        mut stream: ServerStream,
        reusable: bool,
        summary: &download::Summary,
    ) {
        if matches!(stream, ServerStream::Http2(_)) {
            // Its connection was never away.
            return;
        }
        let is_kept = match &mut stream {
            ServerStream::FastCgi(stream) => stream.is_kept(),
            // A connection that names its client is not for another one.
            _ => self.job.preface.is_none(),
        };
        let (settings, now) = (&self.job.settings, self.client.cached_now().steady_ms());
        let pool = &self.core.pool;
        if reusable && summary.keeps && is_kept {
            let until = now + millis(settings.idle_connection_timeout);
            pool.keep(lease.as_server(), stream, (now, until), settings.idle_connections);
        } else if reusable && summary.exact {
            pool.leave_to_server(stream, now);
        } else if summary.exact {
            // Nobody will read further bytes of the server.
            stream.reset_at_end();
        }
    }
}

const fn too_late() -> Fault {
    Fault::unsent(Failure::ConnectTimeout, AttemptOutcome::ConnectTimeout)
}
