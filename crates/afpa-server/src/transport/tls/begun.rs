//! A connection before and after it is known how it is taken.

use afpa_tls::machine::{Closed, Progress};
use std::task::{Context, Poll, ready};

use afpa_tls::{Failure, Greeted, Greeting, ListenerTls, ServerMachine, ServerTls};

/// How far a connection has come.
pub(super) enum Begun {
    /// The name that its client asks for is not known yet.
    Greeting(Box<Greeting>),
    /// The certificate that its client asks for may be on its way.
    Waiting(Box<Greeted>),
    /// It was begun with these settings.
    Machine(Box<ServerMachine>, ServerTls),
}

impl Begun {
    pub(super) fn new(settings: &ListenerTls) -> Result<Self, Failure> {
        match settings.only() {
            Some(only) => Self::with(only.clone()),
            None => Ok(Self::Greeting(Box::new(Greeting::new(settings.clone())))),
        }
    }

    fn with(settings: ServerTls) -> Result<Self, Failure> {
        Ok(Self::Machine(Box::new(ServerMachine::new(&settings)?), settings))
    }

    /// As [`ServerMachine::process`].
    pub(super) fn process(
        &mut self,
        arrived: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        match self {
            Self::Machine(machine, _) => machine.process(arrived, plain, out),
            Self::Greeting(greeting) => match greeting.take(arrived) {
                None => Ok(Progress { handshaking: true, peer_closed: false }),
                Some(greeted) => {
                    *self = Self::Waiting(Box::new(greeted));
                    Ok(Progress { handshaking: true, peer_closed: false })
                }
            },
            Self::Waiting(greeted) => {
                greeted.arrived.extend_from_slice(arrived);
                Ok(Progress { handshaking: true, peer_closed: false })
            }
        }
    }

    /// Begins when the certificate is there that the client asks for, or is not going to come. Nothing has to arrive
    /// for that; `None`: it does.
    pub(super) fn poll_begin(
        &mut self,
        cx: &Context<'_>,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<Result<Progress, Failure>>> {
        let Self::Waiting(greeted) = self else { return Poll::Ready(None) };
        ready!(greeted.poll_certificate(cx));
        let (tls, mut arrived) = (greeted.tls.clone(), std::mem::take(&mut greeted.arrived));
        Poll::Ready(Some(Self::with(tls).and_then(|begun| {
            *self = begun;
            self.process(&mut arrived, plain, out)
        })))
    }

    pub(super) fn machine(&mut self) -> Result<&mut ServerMachine, Closed> {
        match self {
            Self::Machine(machine, _) => Ok(machine),
            Self::Greeting(_) | Self::Waiting(_) => Err(Closed),
        }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        match self {
            Self::Machine(machine, _) => machine.is_handshaking(),
            Self::Greeting(_) | Self::Waiting(_) => true,
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Machine(machine, _) => machine.is_drained(),
            Self::Greeting(_) | Self::Waiting(_) => false,
        }
    }
}
