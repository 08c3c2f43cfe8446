//! A connection before and after it is known how it is taken.

use afpa_tls::machine::{Closed, Progress};
use afpa_tls::{Failure, Greeting, ListenerTls, ServerMachine, ServerTls};

/// How far a connection has come.
pub(super) enum Begun {
    /// What its client asks for is not known yet.
    Greeting(Box<Greeting>),
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
                Some((settings, mut arrived)) => {
                    *self = Self::with(settings)?;
                    self.process(&mut arrived, plain, out)
                }
            },
        }
    }

    pub(super) fn machine(&mut self) -> Result<&mut ServerMachine, Closed> {
        match self {
            Self::Machine(machine, _) => Ok(machine),
            Self::Greeting(_) => Err(Closed),
        }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        match self {
            Self::Machine(machine, _) => machine.is_handshaking(),
            Self::Greeting(_) => true,
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Machine(machine, _) => machine.is_drained(),
            Self::Greeting(_) => false,
        }
    }
}
